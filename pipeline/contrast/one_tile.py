"""NT-Xent of a small batch, written out in one block: the walk's arithmetic without its bookkeeping.

At some hundred views the general walk's Python and fresh memory take longer than its matrix products; here all is one
autograd node in memory that is kept between calls (20 MiB a thread in float32 at most). With
v = z sqrt(log2(e) / tau) / |z|, T = 2^(v v^T) and T = 0 within a sample:

    sum_i = sum over k of T_ik,   l_i = softplus(log sum_i - s_ip / tau),   w_i = 1 / (sum_i + exp(s_ip / tau))
    d l / d logit = T_ik (w_i + w_k) for negatives,   -(sum_i w_i + sum_p w_p) for the two views of a sample

in which nothing cancels for easy anchors. Chen et al. 2020, arXiv:2002.05709, equation 1.

Shapes: N = 2B views, D dimensions.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pipeline.contrast.requests import softplus
from pipeline.contrast.unit_length import ORDINARY
from pipeline.contrast.walk import BOUND

LARGEST = 2048
"""Views up to which the whole matrix (16 MiB) is cheaper than blocks of it."""
SPARE = 1024 * 1024
"""Elements whose weights are in memory at once."""


def nt_xent(z: Tensor, temperature: Tensor | float) -> Tensor | None:
    """NT-Xent under the cosine of z (N, D) in pair order, a scalar; None where only the general walk serves.

    That is: more than ``LARGEST`` views, an accelerator, half types, a temperature that is trained or so low that a
    maximum is needed, rows that are zero, out of range or not finite, and whatever is refused.
    """
    if z.ndim != 2 or z.device.type != "cpu" or z.dtype not in BOUND or torch.is_autocast_enabled("cpu"):
        return None
    if len(z) < 4 or len(z) % 2 or len(z) > LARGEST or not isinstance(temperature, int | float):
        return None
    if not math.log2(math.e) / BOUND[z.dtype] <= temperature < math.inf:
        return None
    length = torch.linalg.vector_norm(z.detach(), dim=1)
    least, most = torch.aminmax(length)
    if not (float(least) > ORDINARY[0] and float(most) < ORDINARY[1]):
        return None
    found: Tensor = _OneTile.apply(z, length, math.log2(math.e) / temperature)
    return found


class _OneTile(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, length: Tensor, factor: float) -> Tensor:
        count, dim = z.shape
        inverse = (math.sqrt(factor) / length)[:, None]
        v = z * inverse
        height = max(1, min(count, SPARE // count))  # rows whose weights are computed at once
        memory = _kept(count * (count + max(height, dim)), z.dtype)
        spare = memory[count * count :]
        tile = torch.mm(v, v.T, out=memory[: count * count].view(count, count))
        sample = tile.as_strided((count // 2, 2, 2), (2 * count + 2, count, 1))
        own = sample[:, 0, 1]
        positive = (own * math.log(2))[:, None]
        tile.exp2_()
        power = own.clone()[:, None]
        sample.zero_()
        total = tile.sum(1).view(-1, 2)
        loss = softplus(total.log() - positive).mean()
        if ctx.needs_input_grad[0]:
            weight = (total + power).reciprocal_()
            flat = weight.view(-1)
            for top in range(0, count, height):
                rows = flat[top : top + height, None]
                tile[top : top + height].mul_(torch.add(rows, flat, out=spare[: len(rows) * count].view(-1, count)))
            own.copy_(total.mul_(weight).sum(1).neg_())
            sample[:, 1, 0].copy_(own)
            slope = torch.mm(tile, v)
            along = torch.mul(v, slope, out=spare[: count * dim].view(count, dim)).sum(1, keepdim=True)
            ctx.slope = slope.addcmul_(v, along, value=-1 / factor).mul_(inverse.mul_(math.log(2) / count))
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor, None, None]:
        return ctx.slope * given, None, None


_MEMORY = threading.local()


def _kept(size: int, dtype: torch.dtype) -> Tensor:
    """This thread's memory from the last call if it is large enough: fresh memory costs as much as the product."""
    found: Tensor | None = getattr(_MEMORY, "found", None)
    if found is None or found.dtype != dtype or len(found) < size:
        with torch.inference_mode(False):
            _MEMORY.found = found = torch.empty(size, dtype=dtype)
    return found[:size]
