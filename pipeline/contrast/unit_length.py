"""Vectors scaled to Euclidean length 1, in float32 or better, without overflow, underflow or a NaN at zero.

Shapes: N vectors, D dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

CHUNK = 4096
"""Rows whose temporaries are in memory at once."""
ORDINARY = 1e-15, 1e15
"""Lengths between these are right in float32: no square overflows, or underflows and matters."""


def wide(dtype: torch.dtype) -> torch.dtype:
    """The type that is computed in: float32 for half types."""
    return torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype


def unit(vectors: Tensor) -> Tensor:
    """Rows (N, D) of length 1, float32 or better. A zero (or subnormal) row becomes 0 and has gradient 0."""
    found: Tensor = Unit.apply(vectors, lengths(vectors))
    return found


@torch.no_grad()
def lengths(vectors: Tensor) -> tuple[Tensor, bool]:
    """The Euclidean length of every row (N,), and whether all are ordinary: finite, not 0, not out of range."""
    found = torch.linalg.vector_norm(vectors, dim=1, dtype=wide(vectors.dtype))
    return found, bool(((found > ORDINARY[0]) & (found < ORDINARY[1])).all())


class Unit(torch.autograd.Function):
    """``unit`` of vectors whose lengths were measured already."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, measured: tuple[Tensor, bool]) -> Tensor:
        length, ordinary = measured
        result = vectors.to(length.dtype, copy=True)
        if ordinary:
            inverse = length.reciprocal()[:, None]
            result.mul_(inverse)
        else:  # divided by the largest element first: squares of 1e-30 or 1e30 do not fit float32
            peak = result.abs().amax(1, keepdim=True)
            present = peak >= torch.finfo(result.dtype).tiny
            result.div_(torch.where(present, peak, 1.0))
            rest = torch.linalg.vector_norm(result, dim=1, keepdim=True)
            result.mul_(torch.where(present, 1.0 / rest, 0.0))
            inverse = torch.where(present, 1.0 / rest / peak, 0.0)
        ctx.save_for_backward(result, inverse)
        ctx.dtype = vectors.dtype
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        result, inverse = ctx.saved_tensors
        out = torch.empty_like(gradient, dtype=ctx.dtype)
        for rows in chunks(out.shape[0]):
            own, given = result[rows], gradient[rows]
            along = (own * given).sum(1, keepdim=True)
            if ctx.dtype == given.dtype:
                torch.addcmul(given, own, along, value=-1.0, out=out[rows]).mul_(inverse[rows])
            else:  # a short vector's gradient may not fit a half type
                limit = torch.finfo(ctx.dtype).max
                out[rows] = torch.addcmul(given, own, along, value=-1.0).mul_(inverse[rows]).clamp_(-limit, limit)
        return out, None


def chunks(count: int) -> Iterator[slice]:
    """Consecutive slices that cover ``count`` rows."""
    for start in range(0, count, CHUNK):
        yield slice(start, min(start + CHUNK, count))
