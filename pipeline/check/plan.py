"""What this machine will need for a training: the first steps of the real loop are run, and nothing is kept of them.

Memory is taken at half a batch and at a whole one, so that what a sample adds can be told from what is always there.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise

from pipeline.machine import Machine, read_machine
from pipeline.shards import Shards
from pipeline.space import LatentSpace
from pipeline.training import train
from pipeline.training_section import Training

STEPS = 4  # measured at a batch size; the first, which warms up, is not timed


class _Enough(Exception):
    """As many steps as were asked for."""


def plan(space: LatentSpace, training: Training, shards: Shards, name: str) -> Iterator[str]:
    """Yield the lines of a forecast for this machine."""
    machine = read_machine()
    device, batch = machine.chosen_device(), training.global_batch
    half = max(2, batch // 2)
    _, less = _measured(space, training, shards, machine, half)
    seconds, most = _measured(space, training, shards, machine, batch)
    steps = shards.card.splits["train"] // batch * training.epochs
    where = "GPU" if device == "cuda" else f"{machine.chosen_threads()} CPU threads"
    yield f"plan {name}: {where}, one process"
    yield f"  a step of {batch} samples: {seconds:.3f} s, {batch / seconds:,.0f} samples a second"
    yield f"  {steps:,} steps over {training.epochs} epochs: {_duration(steps * seconds)}"
    each = (most - less) / (batch - half) if batch > half else 0.0
    free = _free(device)
    yield f"  memory at its peak: {_size(most)}; each sample of a step adds about {_size(max(each, 0.0))}"
    if each > 0 and free is not None:
        fits = int(batch + (free / each))
        yield f"  free now: {_size(free)}; the largest batch or micro_batch that fits is about {max(2, fits):,} samples"
    ranks = machine.ranks()
    if ranks > 1:
        yield f"  {ranks} processes share a step: {batch // ranks} samples each"


def _measured(
    space: LatentSpace, training: Training, shards: Shards, machine: Machine, batch: int
) -> tuple[float, float]:
    """Seconds of a step and bytes at the peak, of the first steps of the real loop."""
    fits = training.norm_group is None or batch % training.norm_group == 0
    group = training.norm_group if fits else batch
    shorter = training.model_copy(update={"global_batch": batch, "norm_group": group})
    times: list[float] = []

    def told(_: object) -> None:
        times.append(time.perf_counter())
        print(f"step {len(times)} of {STEPS} with {batch} samples", file=sys.stderr)
        if len(times) == STEPS:
            raise _Enough

    with suppress(_Enough):
        train(space, shorter, shards, machine, told)
    laps = sorted(later - earlier for earlier, later in pairwise(times))
    return (laps[len(laps) // 2] if laps else 0.0), _peak(machine.chosen_device())


def _peak(device: str) -> float:
    """Bytes that this process held at most so far, on the device that trains."""
    if device == "cuda":
        import torch

        return float(torch.cuda.max_memory_allocated())
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


def _free(device: str) -> float | None:
    """Bytes that are free now, where that can be asked."""
    if device == "cuda":
        import torch

        return float(torch.cuda.mem_get_info()[0])
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (ValueError, OSError):
        return None


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _size(count: float) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.1f} MiB"
