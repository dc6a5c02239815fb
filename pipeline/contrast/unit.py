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


def wide(dtype: torch.dtype) -> torch.dtype:
    """The type that is computed in: float32 for half types."""
    return torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype


def unit(vectors: Tensor) -> Tensor:
    """Rows (N, D) of length 1, float32 or better. A zero (or subnormal) row becomes 0 and has gradient 0."""
    result: Tensor = _Unit.apply(vectors)
    return result


class _Unit(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vectors: Tensor) -> Tensor:
        result = vectors.to(wide(vectors.dtype), copy=True)
        # divided by the largest element first: squares of 1e-30 or 1e30 do not fit float32
        peak = torch.linalg.vector_norm(result, ord=float("inf"), dim=1, keepdim=True)
        present = peak >= torch.finfo(result.dtype).tiny
        result.div_(torch.where(present, peak, 1.0))
        length = torch.linalg.vector_norm(result, dim=1, keepdim=True)
        result.mul_(torch.where(present, 1.0 / length, 0.0))
        ctx.save_for_backward(result, torch.where(present, 1.0 / length / peak, 0.0))
        ctx.dtype = vectors.dtype
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        result, inverse = ctx.saved_tensors
        out = torch.empty_like(gradient, dtype=ctx.dtype)
        for rows in chunks(len(out)):
            along = (result[rows] * gradient[rows]).sum(1, keepdim=True)
            part = torch.addcmul(gradient[rows], result[rows], along, value=-1.0).mul_(inverse[rows])
            if ctx.dtype != part.dtype:  # a short vector's gradient may not fit a half type
                limit = torch.finfo(ctx.dtype).max
                part.clamp_(-limit, limit)
            out[rows] = part
        return out


def chunks(count: int) -> Iterator[slice]:
    """Consecutive slices that cover ``count`` rows."""
    for start in range(0, count, CHUNK):
        yield slice(start, min(start + CHUNK, count))
