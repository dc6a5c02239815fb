"""The batches of a run in order: samples, their views and their integer columns, each a function of its step.

B samples in the global batch, n of them on this rank; a pass is the views of one size, V a sample: (n·V, C, h, w).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pipeline import collectives
from pipeline.keys import permutation
from pipeline.loading import ViewLoader
from pipeline.machine import Machine
from pipeline.shards import DataCard, Shards
from pipeline.space import LatentSpace
from pipeline.views.roles import Partners, with_partners

PICTURED = 8
"""Samples of the first batch whose views are kept for the report."""


@dataclass(frozen=True)
class Batch:
    """This rank's part of one step's batch: n samples, their passes, and the integer columns of each."""

    step: int
    epoch: int
    share: float
    """Of the training that is done before it."""
    samples: np.ndarray
    passes: tuple[Tensor, ...]
    columns: tuple[dict[str, Tensor], ...]


class Batches:
    """The batches of a run in order, each a function of its step."""

    def __init__(self, space: LatentSpace, size: int, epochs: int, seed: int, shards: Shards, machine: Machine):
        self.space, self.size, self.epochs, self.seed = space, size, epochs, seed
        self.count = usable(space, shards.card)
        self.per_epoch = self.count // size
        self.steps = self.per_epoch * epochs
        self.labels = {name: shards.labels("train")[name] for name in space.reads()}
        self.loader = view_loader(space, seed, shards, machine)
        self.rows = np.arange(self.count) if self.loader.codes is None else with_partners(self.loader.codes)

    def order(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (epoch, samples (n,)) of every step: this rank's part of the batch, a function of the seed alone."""
        for epoch in range(self.epochs):
            order = self.rows[permutation(self.seed, epoch, len(self.rows))]
            for start in range(0, len(self.rows) // self.size * self.size, self.size):
                yield epoch, collectives.own(torch.from_numpy(order[start : start + self.size])).numpy()

    def after(self, steps: int) -> Iterator[Batch]:
        """Yield the batches that are left when ``steps`` are done."""
        order = itertools.islice(self.order(), steps, None)
        for step, ((epoch, samples), passes) in enumerate(paired(order, self.loader.batches), steps):
            yield self.batch(step, epoch, samples, passes)

    def batch(self, step: int, epoch: int, samples: np.ndarray, passes: tuple[Tensor, ...]) -> Batch:
        """Some samples' views as one step's batch."""
        numbers, device = self.loader.view_numbers(), self.loader.device
        columns = tuple(row_columns(samples, views, self.labels, device) for views in numbers)
        if isinstance(self.space.views, Partners):
            columns[0]["group"] = columns[0][self.space.views.column]
        return Batch(step, epoch, step / self.steps, samples, passes, columns)

    def pictured(self) -> Tensor:
        """The first views of the run, as they were seen: (2 x pictured, C, H, W)."""
        epoch, samples = next(self.order())
        return self.loader.views(epoch, samples[:PICTURED])[0].cpu()


def usable(space: LatentSpace, card: DataCard) -> int:
    """Pictures of the training split that an epoch goes through: all, or those that have a partner."""
    if isinstance(space.views, Partners):
        return sum(count for count in card.columns[space.views.column].counts["train"] if count > 1)
    return card.splits["train"]


def view_loader(space: LatentSpace, seed: int, shards: Shards, machine: Machine, split: str = "train") -> ViewLoader:
    """What makes the views of a split, as the space declares them."""
    codes = shards.labels(split)[space.views.column] if isinstance(space.views, Partners) else None
    return ViewLoader(
        shards,
        split,
        space.roles(),
        seed,
        machine.chosen_device(),
        codes,
        machine.chosen_workers(),
        machine.resident_gib << 30,
    )


def paired(
    order: Iterable[tuple[int, np.ndarray]],
    made: Callable[[Iterable[tuple[int, np.ndarray]]], Iterator[tuple[Tensor, ...]]],
) -> Iterator[tuple[tuple[int, np.ndarray], tuple[Tensor, ...]]]:
    """Yield each (epoch, samples) with its views, which may be made ahead."""
    asked, kept = itertools.tee(order)
    return zip(kept, made(asked), strict=True)


def row_columns(
    samples: np.ndarray, views: Sequence[int], labels: Mapping[str, np.ndarray], device: torch.device | str
) -> dict[str, Tensor]:
    """The integer columns of a pass, each (n·V,): sample, view, and the labels (N,) of a whole split."""
    return {
        **{name: torch.from_numpy(np.repeat(codes[samples], len(views))).to(device) for name, codes in labels.items()},
        "sample": torch.from_numpy(np.repeat(samples, len(views))).to(device),
        "view": torch.tensor(views, device=device).repeat(len(samples)),
    }
