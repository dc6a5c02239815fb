"""The batches of a run in order: samples, their views and their integer columns, each a function of its step.

B samples in the global batch, n of them on this rank; a pass is the views of one size, V a sample: (n·V, C, h, w).
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline import collectives
from pipeline.keys import permutation
from pipeline.loading import ViewLoader
from pipeline.machine import Machine
from pipeline.objectives import class_prior
from pipeline.samplers import NoDuplicates, Stratified, stratified
from pipeline.shards import DataCard, Shards
from pipeline.space import LatentSpace
from pipeline.spec import Refusal
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
        if isinstance(space.sampler, NoDuplicates):
            self.labels["content"] = content_codes(shards, "train")
        self.loader = view_loader(space, seed, shards, machine)
        self.rows = np.arange(self.count) if self.loader.codes is None else with_partners(self.loader.codes)

    def order(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (epoch, samples (n,)) of every step: this rank's part of the batch, a function of the seed alone."""
        for epoch in range(self.epochs):
            order = self.rows[self.places(epoch)]
            for start in range(0, len(self.rows) // self.size * self.size, self.size):
                yield epoch, collectives.own(torch.from_numpy(order[start : start + self.size])).numpy()

    def places(self, epoch: int) -> NDArray[np.int64]:
        """The order of an epoch's rows, a function of the seed: any is as likely, or dealt by the sampler's column."""
        if isinstance(self.space.sampler, Stratified):
            return stratified(self.labels[self.space.sampler.column][self.rows], self.seed, epoch)
        return permutation(self.seed, epoch, len(self.rows))

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

    def fixed(self, count: int, epoch: int) -> Tensor:
        """The same views whenever it is called: the first pass of the first ``count`` rows in a given epoch."""
        return self.loader.views(epoch, self.rows[:count])[0]

    def pictured(self) -> Tensor:
        """The first views of the run, as they were seen: (2 x pictured, C, H, W)."""
        epoch, samples = next(self.order())
        return self.loader.views(epoch, samples[:PICTURED])[0].cpu()

    def seen(self) -> dict[str, Tensor]:
        """The first samples of the run as they are stored, then every view of them, as it was seen, by its role: name
        to (pictured, C, h, w)."""
        epoch, samples = next(self.order())
        samples = samples[:PICTURED]
        found = {"sample": self.loader.shards.batch(self.loader.split, samples)}
        names = {view: role.called(view) for role in self.space.roles() for view in role.views}
        passes = self.loader.views(epoch, samples)
        for views, images in zip(self.loader.view_numbers(), passes, strict=True):
            found |= {names[view]: images[place :: len(views)].cpu() for place, view in enumerate(views)}
        return found


def settled(space: LatentSpace, card: DataCard) -> LatentSpace:
    """The space with the number that the data has for a prior that names a column.

    Raises:
        Refusal: the column has one class.
    """
    column = space.prior_column()
    if column is None:
        return space
    prior = class_prior(card.columns[column].counts["train"])
    if prior >= 1:
        raise Refusal(f"space.objective.prior.column = {column}: all training samples are of one class; give a number")
    return space.model_copy(update={"objective": space.objective.model_copy(update={"prior": prior})})


def usable(space: LatentSpace, card: DataCard) -> int:
    """Pictures of the training split that an epoch goes through: all, or those that have a partner."""
    if isinstance(space.views, Partners):
        return sum(count for count in card.columns[space.views.column].counts["train"] if count > 1)
    return card.splits["train"]


def content_codes(shards: Shards, split: str) -> NDArray[np.int64]:
    """Integers (N,) that are equal where pictures are the same bytes; every picture is read once."""
    digests = [hashlib.sha256(shards.read(split, row)).digest() for row in range(shards.card.splits[split])]
    codes: NDArray[np.int64] = np.unique(np.array(digests, dtype="S32"), return_inverse=True)[1].astype(np.int64)
    return codes


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
