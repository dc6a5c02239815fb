"""How the samples of a step go through the network: in groups that share batch statistics and what is drawn at random.

A group is ``norm_group`` samples with all views of a pass; its statistics and its dropout are functions of the group,
wherever it is computed: so neither ranks nor micro-batches change a number. The running statistics move once a step, by
the mean over all groups in global order (with one group and one pass: as torch does).

B samples in the global batch, n of them on this rank, V views of a pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from pipeline import collectives
from pipeline.keys import Keys


@dataclass(frozen=True)
class Division:
    """A rank's samples: ``groups`` groups of ``size``, the last perhaps smaller, ``together`` of them in memory."""

    samples: int
    size: int
    together: int
    first: int
    """The number of this rank's first group in the global batch."""

    @staticmethod
    def of(samples: int, rank: int, norm_group: int | None, micro_batch: int | None) -> Division:
        """The division of n ``samples``; see ``indivisible`` for what does not fit."""
        size = min(norm_group or micro_batch or samples, samples)
        return Division(samples, size, max(1, (micro_batch or samples) // size), rank * samples // size)

    @property
    def groups(self) -> list[slice]:
        """The samples of each group."""
        return [slice(at, min(at + self.size, self.samples)) for at in range(0, self.samples, self.size)]

    @property
    def parts(self) -> list[list[int]]:
        """The groups of each micro-batch."""
        numbers = list(range(len(self.groups)))
        return [numbers[at : at + self.together] for at in range(0, len(numbers), self.together)]


def indivisible(
    batch: int, ranks: int, device: str, norm_group: int | None, micro_batch: int | None, dealt: bool = False
) -> str | None:
    """Why ranks or micro-batches would split a group; None where they do not. ``dealt``: keys are, see ``dealt``."""
    if norm_group is None:
        return None
    own = batch // ranks
    place = f"training.norm_group = {norm_group}"
    if norm_group > own:
        if norm_group != batch:
            fitting = max(size for size in range(1, own + 1) if own % size == 0 and size <= norm_group)
            return f"{place}: {ranks} ranks of {own} samples split it; take {fitting}, or {batch}, or other processes"
        if device != "cuda":
            remedy = "set processes = 1 in machine.yaml"
            return f"{place}: {ranks} ranks on a CPU cannot share statistics; {remedy}"
        if micro_batch is not None and micro_batch < own:
            return f"micro_batch = {micro_batch}: splits norm_group ({norm_group}) over the ranks; take {own}, or null"
        return None
    if own % norm_group:
        fitting = max(size for size in range(1, norm_group + 1) if own % size == 0)
        return f"{place}: does not divide the {own} samples of a rank; take {fitting}, or other processes"
    if micro_batch is not None and micro_batch % norm_group:
        fitting = max(1, micro_batch // norm_group) * norm_group
        return f"micro_batch = {micro_batch}: splits norm_group ({norm_group}); take {fitting}"
    if dealt and own % (2 * norm_group):
        remedy = "take fewer processes, or a smaller norm_group"
        return f"{place}: keys are dealt between two groups, and a rank has {own // norm_group}; {remedy}"
    return None


def rows_of(samples: slice, views: int) -> slice:
    """The rows of some samples in a pass that is ordered by sample, then view."""
    return slice(samples.start * views, samples.stop * views)


def dealt(seed: int, step: int, samples: int, size: int, first: int) -> NDArray[np.int64]:
    """An order (n,) that deals the samples of every two neighbouring groups anew, so that keys share their batch
    statistics with others than their queries do (He et al. 2020, section 3.3, shuffling BN): a function of (seed, step,
    group), and so of no rank. The first of this rank's groups has the even number ``first``.
    """
    pairs = samples // (2 * size)
    keys = Keys.of(seed, step, np.arange(pairs) + first // 2)
    orders = keys.orders("dealt", 2 * size).numpy()
    order: NDArray[np.int64] = (orders + 2 * size * np.arange(pairs)[:, None]).reshape(-1)
    return order


@contextmanager
def drawn(seed: int, step: int, group: int, number: int, device: torch.device) -> Iterator[None]:
    """Within, torch's generators begin where (seed, step, group, pass ``number``) says; afterwards where they were."""
    word = int(Keys.of(seed, step, [group], number).fold("dropout").words[0] >> np.uint64(1))
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(word)
        yield


class Statistics:
    """The batch statistics of a network's layers, put aside group by group and applied once."""

    def __init__(self, network: nn.Module):
        self.layers = [
            each
            for each in network.modules()
            if isinstance(each, _BatchNorm) and each.training and each.running_mean is not None
        ]
        self.found: dict[tuple[int, int], Tensor] = {}

    @contextmanager
    def aside(self, key: tuple[int, int]) -> Iterator[None]:
        """Within, one (pass, group) goes through; its statistics are kept under its key, however often it is."""
        before = [
            (each.running_mean, each.running_var, each.num_batches_tracked, each.momentum) for each in self.layers
        ]
        for each in self.layers:
            assert each.running_mean is not None
            assert each.running_var is not None
            each.running_mean, each.running_var = (
                torch.zeros_like(each.running_mean),
                torch.zeros_like(each.running_var),
            )
            each.momentum = 1.0  # so they become the group's own
            each.num_batches_tracked = None
        try:
            yield
            if self.layers:
                halves = [half for each in self.layers for half in (each.running_mean, each.running_var)]
                self.found[key] = torch.cat([half for half in halves if half is not None])
        finally:
            for each, (mean, variance, count, momentum) in zip(self.layers, before, strict=True):
                each.running_mean, each.running_var = mean, variance
                each.num_batches_tracked, each.momentum = count, momentum

    @torch.no_grad()
    def apply(self) -> None:
        """Move the running statistics by the mean over all passes, and over the groups of all ranks in their order."""
        if not self.found:
            return
        passes = sorted({number for number, _ in self.found})
        of_group = {
            group: torch.stack([self.found[number, group] for number in passes]).mean(0)
            for group in sorted({group for _, group in self.found})
        }
        mean = collectives.gather(torch.stack(list(of_group.values()))).mean(0)
        for each in self.layers:
            assert each.running_mean is not None
            assert each.running_var is not None
            counter = each.num_batches_tracked
            if counter is not None:
                counter.add_(1)
            share = each.momentum if each.momentum is not None else 1.0 / float(counter if counter is not None else 1)
            for running in (each.running_mean, each.running_var):
                running.lerp_(mean[: len(running)].to(running.dtype), share)
                mean = mean[len(running) :]
        self.found = {}
