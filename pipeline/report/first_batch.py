"""The first batch of a training, by its labels: which samples it is made of is a function of the seed alone.

``order`` is ``pipeline.keys.permutation`` in numpy, since the report does without torch; a test holds the two equal.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.report.results import DataCard

SHOWN = 8
"""Samples of the small batch: those whose views training kept as a picture."""
DEALT = {
    "queue": "its negatives are the keys of earlier steps, not the batch's",
    "stratified": "its batches are dealt by class",
    "no_duplicates": "which samples are copies of one another is not written down",
    "threshold": "which of the batch are negatives depends on what was learned by then",
    "hardest": "which of the batch are negatives depends on what was learned by then",
}
"""Samplers whose first batch is not drawn, and why."""


@dataclass(frozen=True)
class FirstBatch:
    """The samples of the first step by the class of one label column."""

    label: str
    classes: tuple[str, ...]
    codes: tuple[int, ...]
    """(B,) the class of every sample, in the order of the batch."""
    crossed: bool
    """An anchor meets the candidates of the other view alone."""
    supervised: bool
    """Samples of the anchor's class are its positives."""


def first_batch(content: Mapping[str, Any], card: DataCard, codes: Mapping[str, NDArray[Any]]) -> FirstBatch | str:
    """The first batch of a spec as it is written, or why there is none to draw.

    Args:
        content: the parsed spec, whatever its form.
        codes: name of a label column to the classes (N,) of the training samples.
    """
    space, training = (part if isinstance(part := content.get(name), Mapping) else {} for name in ("space", "training"))
    sampler, objective, views = (_kind(space.get(name)) for name in ("sampler", "objective", "views"))
    batch, seed = training.get("global_batch"), training.get("seed")
    if objective == "regression":
        return "its loss has no negatives"
    if sampler in DEALT:
        return DEALT[sampler]
    if sampler not in ("in_batch", "same_label") or views not in ("pair", "asymmetric"):
        return "only batches of two views a sample, all contrasted with all, are drawn"
    label = _label(space, card, sampler == "same_label")
    if label is None or label not in codes:
        return "there is no label column of classes"
    count = card.splits.get("train", 0)
    if not isinstance(batch, int) or not isinstance(seed, int):
        return "the spec gives no batch and seed"
    if not 2 <= batch <= count or len(codes[label]) != count:
        return "batch, labels and number of samples do not fit together"
    chosen = codes[label][order(seed, 0, count)[:batch]]
    classes = card.columns[label].classes
    if chosen.dtype.kind not in "iu" or chosen.min() < 0 or chosen.max() >= len(classes):
        return "the labels do not fit the data card"
    crossed = _kind(space.get("target", "same")) != "same" and sampler != "same_label"
    return FirstBatch(label, classes, tuple(chosen.tolist()), crossed, sampler == "same_label")


def order(seed: int, epoch: int, count: int) -> NDArray[np.int64]:
    """The order of an epoch: (count,) int64, a function of (seed, epoch) only."""
    root = np.zeros(1, np.uint64)
    for word in (seed, epoch, 0, 0, _NAME):
        root = _absorb(root, np.array([word & (1 << 64) - 1], np.uint64))
    return np.argsort(_absorb(root, np.arange(count, dtype=np.uint64)), kind="stable").astype(np.int64)


def class_codes(path: Path) -> dict[str, NDArray[Any]]:
    """The label columns of the training split in a data set's index.npz, by name; none where there is no such file.

    Raises:
        ValueError: the file is damaged.
    """
    start = "train.label."
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            names = [name for name in arrays.files if name.startswith(start)]
            return {name.removeprefix(start): arrays[name] for name in names}
    except FileNotFoundError:
        return {}
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"not an index ({type(error).__name__})") from None


_NAME = int.from_bytes(hashlib.blake2b(b"order of the epoch", digest_size=8).digest(), "little") | 1 << 63
_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def _absorb(state: NDArray[np.uint64], word: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return _mix(_mix(state + np.uint64(_STEP)) ^ word)


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    words = (words ^ words >> np.uint64(30)) * np.uint64(_FIRST)
    words = (words ^ words >> np.uint64(27)) * np.uint64(_SECOND)
    return words ^ words >> np.uint64(31)


def _kind(part: Any) -> str:
    return str(part.get("kind", "")) if isinstance(part, Mapping) else str(part)


def _label(space: Mapping[str, Any], card: DataCard, supervised: bool) -> str | None:
    """The column that false negatives are told by: what the loss reads, else what must be kept, else the first."""
    sampler, preserves = space.get("sampler"), space.get("preserves")
    wanted = [sampler.get("column")] if supervised and isinstance(sampler, Mapping) else []
    wanted += preserves if isinstance(preserves, list) else []
    held = [name for name, column in card.columns.items() if column.kind == "class"]
    return next((name for name in [*wanted, *held] if name in held), None)
