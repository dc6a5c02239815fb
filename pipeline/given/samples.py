"""Samples of a folder or archive through a given encoder: vectors, two views of each where some are declared.

The samples are sharded into a temporary folder first, so that every file is decoded once, by several processes, and
accounted for: kept or in the ledger. Vectors are in the order of the shards: train, then test.

Legend: N samples that are kept, D the width of h, C channels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from pipeline.data import DataSpec, HashSplit
from pipeline.encoding import VIEW_EPOCH
from pipeline.given.encoder import GivenEncoder
from pipeline.images import Input
from pipeline.ledger import Ledger, Unsharded
from pipeline.loading import ViewLoader
from pipeline.looking import look
from pipeline.looking.recipe import kept_columns, number_columns
from pipeline.samples import several
from pipeline.sharding import shard
from pipeline.shards import Shards
from pipeline.sources import ColumnKind, Item
from pipeline.spec import Refusal
from pipeline.views import Invariance
from pipeline.views.roles import Role

Rows = npt.NDArray[np.float32]
SPLITS = ("train", "test")
MANY = 100
"""samples of which a fifth is enough to test probes on; of fewer it is half"""
BATCH, RESIDENT, SEED = 64, 2**28, 0
"""Samples of a pass, bytes of decoded ones that may be kept, and the seed of splits and views."""


@dataclass(frozen=True)
class Encoded:
    """What came out of the encoder."""

    rows: Rows
    views: tuple[Rows, Rows] | None
    """two views of each sample (N, D)"""
    channels: npt.NDArray[np.float64]
    """mean and mean square of each sample's channels on the canvas, as an encoder reads them (N, 2, C)"""


def sharded(
    samples: Path, encoder: GivenEncoder, folder: Path, workers: int, told: Callable[[Iterable[Item]], Iterable[Item]]
) -> tuple[Shards, Ledger, str]:
    """Shard the samples at a path onto the encoder's canvas, into an empty folder: (shards, ledger, what was found).

    Raises:
        Refusal: nothing there can be used, or too few samples.
    """
    try:
        seen = look(samples, encoder.canvas)
    except Refusal as refusal:
        raise Refusal(str(refusal).replace("--data", "--samples")) from None
    if not isinstance(seen.canvas, type(encoder.canvas) | None):
        raise Refusal(f"--samples {samples}: holds no {several(encoder.canvas.word)}, which {encoder.name} reads")
    canvas: Any = encoder.canvas
    if isinstance(seen.canvas, Input) and canvas.range is None:
        canvas = canvas.model_copy(update={"range": seen.canvas.range})
    manifest = None if seen.table is None else seen.table.manifest
    own = seen.source.splits_itself or (manifest is not None and manifest.split is not None)
    columns = (*kept_columns(seen), *number_columns(seen))
    spec = DataSpec(
        source=seen.source,
        manifest=manifest,
        input=canvas,
        split=None if own else HashSplit(test=0.2 if seen.count >= MANY else 0.5, seed=SEED),
        labels=columns,
    )
    try:
        _, ledger = shard(spec, samples.stem, seen.raw, folder, told, workers=workers, editable=False)
    except Unsharded as refusal:
        text = str(refusal).replace(f"data set {samples.stem}", f"--samples {samples}")
        raise Unsharded(text, refusal.ledger) from None
    labels = f"labels: {', '.join(columns)}" if columns else "no labels found"
    return Shards(folder), ledger, f"{seen.words}: {ledger.summary()}; {labels}"


def encode_all(
    shards: Shards,
    encoder: GivenEncoder,
    views: tuple[tuple[Invariance, ...], tuple[Invariance, ...]] | None,
    workers: int,
    told: Callable[[int], object] = int,
) -> Encoded:
    """Encode every sample, and two views of each.

    Args:
        views: what each of the two views goes through; None: no views.
        told: hears how many samples were encoded, after each pass.
    """
    plain: list[Rows] = []
    moved: tuple[list[Rows], list[Rows]] = ([], [])
    moments: list[npt.NDArray[np.float64]] = []
    for split in SPLITS:
        count = shards.card.splits[split]
        roles = [] if views is None else [Role(f"view{place}", (place,), each) for place, each in enumerate(views)]
        loaders = [ViewLoader(shards, split, [role], SEED, workers=workers, resident=RESIDENT) for role in roles]
        for start in range(0, count, BATCH):
            places = np.arange(start, min(start + BATCH, count))
            batch = shards.batch(split, places)
            moments.append(_moments(batch))
            plain.append(encoder.encode(batch))
            told(len(places))
            for loader, rows in zip(loaders, moved, strict=False):
                (seen,) = loader.views(VIEW_EPOCH, places)
                rows.append(encoder.encode(seen))
                told(len(places))
    both = None if views is None else (np.concatenate(moved[0]), np.concatenate(moved[1]))
    return Encoded(np.concatenate(plain), both, np.concatenate(moments))


def texts_of(shards: Shards) -> dict[str, tuple[ColumnKind, list[str]]]:
    """Every label column: its kind, and the label of each sample in the order of the vectors; "" where none is."""
    parts = [shards.labels(split) for split in SPLITS]
    found: dict[str, tuple[ColumnKind, list[str]]] = {}
    for name, column in shards.card.columns.items():
        values = np.concatenate([part[name] for part in parts]).tolist()
        if column.kind == "class":
            found[name] = ("class", ["" if code < 0 else column.classes[code] for code in values])
        else:
            found[name] = ("number", ["" if math.isnan(value) else repr(value) for value in values])
    return found


def place_of(shards: Shards, row: int) -> tuple[str, int]:
    """The split and the row in it of vector number ``row``."""
    train = shards.card.splits["train"]
    return ("train", row) if row < train else ("test", row - train)


def _moments(batch: torch.Tensor) -> npt.NDArray[np.float64]:
    """samples (n, C, …) → means and mean squares (n, 2, C)."""
    values = batch.double().flatten(2)
    found: npt.NDArray[np.float64] = torch.stack([values.mean(2), values.square().mean(2)], 1).numpy()
    return found
