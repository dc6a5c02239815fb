"""One step's loss and gradient: views to vectors, group by group; keys by the target; every anchor against all.

What meets whom: anchors are the vectors of all views of all passes (behind the predictor, where there is one). Their
candidates are those of the first pass by the target, of all ranks, and, with a queue, keys of earlier steps. Where the
target is the network itself anchors and candidates are the same vectors, and both have a gradient.

B samples in the global batch, n of them on this rank, V views of a pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pipeline import collectives
from pipeline.batches import Batch
from pipeline.caching import gradient
from pipeline.divergence import check_loss, check_vectors
from pipeline.groups import Division, Statistics, dealt, drawn, rows_of
from pipeline.network import Network
from pipeline.queue import KeyQueue
from pipeline.reduction import reduced
from pipeline.samplers import Beside, Queue
from pipeline.space import LatentSpace
from pipeline.state import State

Model = Callable[[Tensor], tuple[Tensor, Tensor]]
KEYS = -1
"""The pass whose draws are the first view's keys'; the second's are two below, and a look at old keys has -2."""


@dataclass(frozen=True)
class Measured:
    """What the loss is of one batch."""

    value: float
    """Over all ranks."""
    gathered: Tensor
    """(V·B, D) the network's z of the first pass of all ranks, without a gradient."""
    temperature: float
    keys: Tensor
    """(V·B, D) the candidates of this batch, without a gradient."""
    columns: Mapping[str, Tensor]
    """Of the keys."""


@dataclass(frozen=True)
class Stepper:
    """What a step is made with, besides the state: how the network is called, and how a batch is divided."""

    space: LatentSpace
    seed: int
    division: Division
    model: Model
    """The network in its precision."""
    target: Model | None
    """The momentum copy in its precision; None where there is none."""

    def differentiate(self, state: State, batch: Batch, statistics: Statistics) -> Measured:
        """Measure the loss of a batch, and add this rank's part of its gradient to every parameter.

        Raises:
            Diverged: z or the loss is not finite; the samples are named.
        """
        keys = None if self.target is None or state.target is None else self.keys(self.target, state.target, batch)
        passes = len(batch.passes)
        scalars = dict(state.network.scalars)

        def forward(part: int) -> tuple[Tensor, ...]:
            return self.vectors(state.network, batch, self.division.parts[part], statistics)

        def loss(vectors: tuple[Tensor, ...]) -> tuple[Tensor, Measured]:
            z = vectors[passes] if len(vectors) > passes else vectors[0]
            return measure(self.space, scalars, batch, vectors[:passes], z.detach(), keys, state.queue)

        return gradient(forward, len(self.division.parts), loss)

    def vectors(self, network: Network, batch: Batch, groups: list[int], statistics: Statistics) -> tuple[Tensor, ...]:
        """The anchors of some groups, a tensor a pass (rows, D); behind a predictor the first pass's z besides."""
        found: list[list[Tensor]] = [[] for _ in batch.passes]
        first: list[Tensor] = []
        apart = self.apart(network)
        for group in groups:
            for number, views in enumerate(batch.passes):
                each = len(views) // self.division.samples
                rows = views[rows_of(self.division.groups[group], each)]
                shares = rows.reshape(-1, each, *rows.shape[1:]).unbind(1) if apart else (rows,)
                of_run = self.division.first + group
                anchors, before = [], []
                for view, some in enumerate(shares, number):
                    with drawn(self.seed, batch.step, of_run, view, views.device), statistics.aside((view, group)):
                        before.append(wide(self.model(some)[1]))
                        anchors.append(before[-1] if network.predictor is None else network.predictor(before[-1]))
                found[number].append(torch.stack(anchors, 1).flatten(0, 1))
                if number == 0 and network.predictor is not None:
                    first.append(torch.stack(before, 1).flatten(0, 1))
        return (*map(torch.cat, found), *([torch.cat(first)] if first else []))

    @torch.no_grad()
    def keys(self, target: Model, network: nn.Module, batch: Batch) -> Tensor:
        """The first pass by the target, (n·V, D), in the batch's order; with a queue samples are dealt over groups."""
        order = self.order_of_keys(batch, network)
        views = batch.passes[0].reshape(self.division.samples, -1, *batch.passes[0].shape[1:])  # (n, V, C, h, w)
        statistics = Statistics(network)  # its own running statistics follow the network's
        found = []
        for number, group in enumerate(self.division.groups):
            rows = views[group] if order is None else views[torch.from_numpy(order[group]).to(views.device)]
            of_run = self.division.first + number
            each = []
            for view, some in enumerate([rows.flatten(0, 1)] if order is None else rows.unbind(1)):
                with drawn(self.seed, batch.step, of_run, KEYS - 2 * view, views.device), statistics.aside((0, number)):
                    each.append(wide(target(some)[1]))
            found.append(each[0].reshape(len(rows), -1, each[0].shape[1]) if order is None else torch.stack(each, 1))
        z = torch.cat(found)  # (n, V, D)
        if order is not None:
            z = z[torch.from_numpy(np.argsort(order)).to(z.device)]
        return z.flatten(0, 1)

    def apart(self, network: nn.Module) -> bool:
        """Whether each view has batch statistics of its own: with a queue, or a key's would tell of its query's."""
        return isinstance(self.space.sampler, Queue) and bool(Statistics(network).layers)

    def order_of_keys(self, batch: Batch, network: nn.Module) -> NDArray[np.int64] | None:
        """How keys are dealt over groups, so that no batch statistic tells whose they are; None where none could."""
        if not self.apart(network):
            return None
        return dealt(self.seed, batch.step, self.division.samples, self.division.size, self.division.first)


def measure(
    space: LatentSpace,
    scalars: dict[str, Tensor],
    batch: Batch,
    anchors: tuple[Tensor, ...],
    z: Tensor,
    keys: Tensor | None,
    queue: KeyQueue | None,
) -> tuple[Tensor, Measured]:
    """The loss of one batch: (the differentiable part of this rank, what it is over all).

    Args:
        anchors: of each pass (n·V, D).
        z: the first pass before the predictor, without a gradient.
        keys: the first pass by a momentum target; None: there is none.

    Raises:
        Diverged: a vector or the loss is not finite; the samples are named.
    """
    own_keys = anchors[0] if not space.crossed else z if keys is None else keys
    gathered = collectives.gather(own_keys)
    check_vectors(gathered, anchors if not space.crossed else (own_keys, *anchors), batch)
    temperature = None if space.temperature is None else space.temperature.at(batch.share, scalars)
    columns = {name: collectives.gather(column) for name, column in batch.columns[0].items()}
    alone = collectives.world() == 1 and len(anchors) == 1 and not space.crossed
    first = anchors[0] if space.crossed else collectives.own(gathered)
    contrast = space.sampler.contrast(
        torch.cat([first, *anchors[1:]]) if len(anchors) > 1 else first,
        {name: torch.cat([each[name] for each in batch.columns]) for name in batch.columns[0]},
        space.metric,
        temperature,
        space.normalization,
        candidates=None if alone else gathered,
        candidate_columns=None if alone else columns,
        beside=Beside(space.crossed, None if queue is None else queue.valid, batch.share),
    )
    terms = space.objective.terms(contrast, scalars)
    loss, value = reduced(terms)
    check_loss(value, terms, batch)
    seen = collectives.gather(z).detach() if space.crossed else gathered.detach()
    return loss, Measured(value, seen, _plain(temperature), gathered.detach(), columns)


def wide(z: Tensor) -> Tensor:
    """Float32 or better: the loss is never computed in half a type."""
    return z.to(torch.promote_types(z.dtype, torch.float32))


def _plain(temperature: Tensor | float | None) -> float:
    if temperature is None:
        return math.nan
    return float(temperature.detach() if isinstance(temperature, Tensor) else temperature)
