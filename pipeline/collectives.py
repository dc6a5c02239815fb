"""The only file that knows ranks: gather with a gradient, sums over ranks, and the division of a batch.

Without a process group every function is the one-rank case of itself. n: rows of a rank; world: number of ranks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist

_begun = 0


def begun() -> int:
    """How many operations this rank has entered: one that waits has entered more than the one it waits for."""
    return _begun


def _begin() -> None:
    global _begun
    _begun += 1


def world() -> int:
    """How many ranks train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Which of them this process is, from 0."""
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def launched_rank() -> int:
    """Which rank this process was started as, known before the ranks have met."""
    return int(os.environ.get("RANK", "0"))


def launched_world() -> int:
    """How many ranks this process was started as one of."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1


def device() -> torch.device:
    """Where what ranks exchange must lie."""
    nccl = world() > 1 and dist.get_backend() == "nccl"
    return torch.device("cuda", torch.cuda.current_device()) if nccl else torch.device("cpu")


def own(rows: Tensor) -> Tensor:
    """This rank's contiguous part of a global batch's rows (world·n, ...) → (n, ...)."""
    return rows.chunk(world())[rank()]


class _Gather(torch.autograd.Function):
    """All ranks' rows in rank order; the backward pass sums over ranks, since every rank's loss read every row."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        _begin()
        parts = [torch.empty_like(rows) for _ in range(world())]
        dist.all_gather(parts, rows.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        _begin()
        gradient = gradients[0].contiguous().clone()
        dist.all_reduce(gradient)
        return own(gradient)


def gather(rows: Tensor) -> Tensor:
    """Every rank's rows, (n, ...) → (world·n, ...), differentiable; n must be the same on every rank."""
    if world() == 1:
        return rows
    if not rows.is_floating_point():
        _begin()
        parts = [torch.empty_like(rows) for _ in range(world())]
        dist.all_gather(parts, rows.contiguous())
        return torch.cat(parts)
    gathered: Tensor = _Gather.apply(rows)
    return gathered


def total(value: Tensor) -> Tensor:
    """The sum of a value over ranks, without a gradient."""
    value = value.detach().clone()
    if world() > 1:
        _begin()
        dist.all_reduce(value)
    return value


def top(value: Tensor) -> Tensor:
    """The largest of the ranks' values, without a gradient."""
    value = value.detach().clone()
    if world() > 1:
        _begin()
        dist.all_reduce(value, op=dist.ReduceOp.MAX)
    return value


@torch.no_grad()
def add_gradients(parameters: Iterable[Tensor]) -> None:
    """Make every gradient the sum of the ranks', in one operation; which have one must be the same on every rank."""
    if world() == 1:
        return
    gradients = [each.grad for each in parameters if each.grad is not None]
    if not gradients:
        return
    flat = torch.cat([each.reshape(-1) for each in gradients])
    _begin()
    dist.all_reduce(flat)
    parts: list[Tensor] = list(flat.split_with_sizes([each.numel() for each in gradients]))
    for each, part in zip(gradients, parts, strict=True):
        each.copy_(part.reshape(each.shape))


def alike(value: Tensor) -> bool:
    """Whether a number is the same on every rank."""
    both = top(torch.stack([value, -value]).double())
    return bool(both[0] == -both[1])


def from_first(make: Callable[[], bytes | None]) -> bytes | None:
    """What ``make`` gives on rank 0, on every rank; it is called there alone."""
    if world() == 1:
        return make()
    content = make() if rank() == 0 else None
    size = top(torch.tensor(-1 if content is None else len(content), device=device()))
    if int(size) < 0:
        return None
    payload = torch.empty(int(size), dtype=torch.uint8, device=device())
    if content is not None:
        payload.copy_(torch.frombuffer(bytearray(content), dtype=torch.uint8))
    dist.broadcast(payload, 0)
    return payload.cpu().numpy().tobytes()
