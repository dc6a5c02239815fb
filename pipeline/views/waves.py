"""A list of invariances applied to what has a time axis, in order, in blocks that stay in the cache.

A view is a function of its own row, so blocks change nothing. Each invariance is told the rate, so that milliseconds
and hertz become samples and bins where they are applied.

N waves (N, C, T) floating point, or a list of N (C, T_i); parameters on the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pipeline.samples import Size
from pipeline.spec import Refusal
from pipeline.views.window import Parameters, Window

BLOCK = 2**20  # values that are worked on at a time on a CPU: 4 MiB


def apply_waves(
    waves: Tensor | Sequence[Tensor], invariances: Sequence[Any], parameters: Sequence[Parameters], size: Size
) -> Tensor:
    """Apply the invariances in their order: N waves → (N, C, T) floating point.

    Args:
        size: T and the rate.
    """
    length, rate = size
    steps = list(zip(invariances, parameters, strict=True))
    if not isinstance(waves, Tensor):
        (first, drawn), steps = steps[0], steps[1:]
        if not isinstance(first, Window):
            raise TypeError("samples of several lengths need a window first")
        waves = first.cut(waves, drawn, length)
    if not waves.is_floating_point():
        raise ValueError(f"waves must be floating point, not {waves.dtype}")
    if not len(waves) or not steps:
        return waves
    each = waves.shape[1] * waves.shape[2]
    count = len(waves) if waves.device.type != "cpu" else max(1, BLOCK // max(1, each))
    views = None
    for start in range(0, len(waves), count):
        rows = slice(start, min(start + count, len(waves)))
        block = waves[rows]
        for invariance, drawn in steps:
            block = invariance.apply(block, {name: values[rows] for name, values in drawn.items()}, rate=rate)
        if count >= len(waves):
            return block
        views = torch.empty_like(waves) if views is None else views
        views[rows] = block
    assert views is not None
    return views


def wave_channels(waves: Tensor | Sequence[Tensor], invariances: Sequence[Any], size: Size) -> int:
    """The channels of a batch that is one of waves, as its views of ``size`` need it.

    Raises:
        Refusal: they have several lengths, and no window comes first.
        ValueError: no such batch.
    """
    if isinstance(waves, Tensor):
        if waves.ndim != 3 or waves.shape[-1] != size[0]:
            raise ValueError(f"waves must be (N,C,{size[0]}), not {tuple(waves.shape)}")
        return waves.shape[1]
    if not waves or any(wave.ndim != 2 or len(wave) != len(waves[0]) for wave in waves):
        raise ValueError("waves must be (C,T) with as many channels, and not none")
    if not (invariances and isinstance(invariances[0], Window)):
        first = invariances[0].kind if invariances else "nothing"
        remedy = "begin with window"
        raise Refusal(f"invariance {first}: comes first, where samples are brought to {size[0]} steps; {remedy}")
    return len(waves[0])
