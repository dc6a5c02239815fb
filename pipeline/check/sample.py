"""The pictures that are looked at: a bounded part of train and of test, kept apart, the same in every run.

With a group column (patient, place, recording) both splits are pooled and cut between groups instead, so that no group
stands on both sides; the folds of the training part are cut between groups as well.

Legend: n samples of a part, pictures (n, C, H, W) with C, H, W the canvas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pipeline.check.section import Check
from pipeline.keys import Keys, permutation
from pipeline.modalities import Modality
from pipeline.modalities.proofs import Proof, proof_of
from pipeline.shards import Shards
from pipeline.spec import Refusal

SPLITS = ("train", "test")
FOLDS = 4  # of the training part
TESTED = 3  # one part in so many is for testing, at most
EPOCH = -2  # of the views that the check draws: an epoch that no training and no evaluation has
ORDER = -3  # of the order in which pictures are taken


@dataclass(frozen=True)
class Part:
    """Pictures with all that is known of them."""

    images: Tensor
    """(n, C, H, W) float32 in [0, 1], or what else the modality's samples are"""
    numbers: npt.NDArray[np.int64]
    """(n,) what the views are keyed by: different for all pictures of both parts"""
    labels: Mapping[str, npt.NDArray[Any]]
    """column to (n,)"""
    groups: npt.NDArray[np.int64]
    """(n,) equal numbers belong together"""
    contract: Modality
    shards: Shards | None = None
    """what the samples were taken from, where they are as they were taken"""

    @property
    def proof(self) -> Proof:
        """What there is to ask of the samples."""
        return proof_of(self.contract)

    def __len__(self) -> int:
        return len(self.images)

    @cached_property
    def longer(self) -> npt.NDArray[np.bool_]:
        """Which samples have another size of their own than the canvas, so that views may be cut from them: (n,)."""
        if self.shards is None:
            return np.zeros(len(self), bool)
        shapes = np.concatenate([self.shards.shapes(split) for split in SPLITS])[self.numbers]
        return np.array([self.contract.own_size(shape[None]) for shape in shapes])

    def whole(self, row: int) -> Tensor:
        """A sample at its own size, read from its file."""
        assert self.shards is not None
        number, first = int(self.numbers[row]), self.shards.card.splits[SPLITS[0]]
        split, place = (SPLITS[0], number) if number < first else (SPLITS[1], number - first)
        return torch.from_numpy(self.shards.original(split, place))

    def keys(self, seed: int, view: int) -> Keys:
        """The keys of a view of every picture."""
        return Keys.of(seed, EPOCH, self.numbers, view)

    def folds(self) -> Tensor:
        """(n,) a fold for each picture, the same for a whole group."""
        _, group = np.unique(self.groups, return_inverse=True)
        return torch.from_numpy(permutation(0, ORDER, int(group.max()) + 1)[group] % FOLDS)


def take(shards: Shards, check: Check) -> tuple[Part, Part]:
    """The training and the testing part of a sharded data set.

    Raises:
        Refusal: one of them has no picture.
    """
    counts = [shards.card.splits[split] for split in SPLITS]
    columns = {name: np.concatenate([shards.labels(split)[name] for split in SPLITS]) for name in shards.card.columns}
    order = [permutation(check.seed, ORDER, counts[0]), counts[0] + permutation(check.seed, ORDER - 1, counts[1])]
    if check.group is not None:
        order = _by_group(columns[check.group], counts[1] / sum(counts), check.seed)
    tested = min(len(order[1]), max(1, check.samples // TESTED))
    trained = min(len(order[0]), check.samples - tested)
    if not tested or not trained:
        raise Refusal(
            f"{shards.card.name}: {len(order[0])} samples to train a probe on and {len(order[1])} to test it; "
            "check needs both; change split (or check.group)"
        )
    return _part(shards, columns, order[0][:trained], check), _part(shards, columns, order[1][:tested], check)


def _by_group(values: npt.NDArray[Any], share: float, seed: int) -> list[npt.NDArray[np.int64]]:
    """Rows in a random order of their groups, cut where the test part has its ``share``."""
    _, group = np.unique(values, return_inverse=True)
    place = permutation(seed, ORDER, int(group.max()) + 1)
    rows = np.argsort(place[group], kind="stable").astype(np.int64)
    cut = round(share * len(rows))
    while 0 < cut < len(rows) and group[rows[cut]] == group[rows[cut - 1]]:
        cut += 1
    return [part[permutation(seed, ORDER, len(part))] for part in (rows[cut:], rows[:cut])]


def _part(shards: Shards, columns: Mapping[str, npt.NDArray[Any]], rows: npt.NDArray[np.int64], check: Check) -> Part:
    """Rows of train and test, numbered one behind the other, as a part."""
    rows, first = np.sort(rows), shards.card.splits["train"]
    pictures = [
        shards.batch(split, rows[chosen] - start)
        for split, chosen, start in (("train", rows < first, 0), ("test", rows >= first, first))
        if chosen.any()
    ]
    images = torch.cat(pictures)
    groups = rows if check.group is None else np.unique(columns[check.group], return_inverse=True)[1][rows]
    labels = {name: values[rows] for name, values in columns.items()}
    order = permutation(check.seed, ORDER - 2, len(rows))  # batches of 256 are cut from this order
    return Part(
        images[torch.from_numpy(order)],
        rows[order],
        {name: values[order] for name, values in labels.items()},
        groups[order].astype(np.int64),
        shards.card.input,
        shards,
    )
