"""Exact gradients of a loss over a whole batch, with the activations of a part of it in memory.

Gao, Zhang, Han, Callan 2021, arXiv:2101.06983 (GradCache): all outputs are computed without a graph; the loss of all
of them gives each output's gradient; then every part is computed again, with a graph, and its outputs' gradients are
sent back through it. The candidates of an anchor are never split. It costs one more forward pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

Found = TypeVar("Found")


def gradient(
    forward: Callable[[int], tuple[Tensor, ...]],
    parts: int,
    loss: Callable[[tuple[Tensor, ...]], tuple[Tensor, Found]],
) -> Found:
    """Add the gradient of ``loss`` to every parameter's ``grad``; return what else the loss gives.

    Args:
        forward: the outputs of part number 0 … ``parts`` - 1, the same numbers whenever it is called.
        loss: of the outputs of all parts, each concatenated in their order: (scalar, anything).
    """
    if parts == 1:
        value, found = loss(forward(0))
        if value.requires_grad:
            value.backward()  # type: ignore[no-untyped-call]
        return found
    with torch.no_grad():
        outputs = [forward(part) for part in range(parts)]
    sizes = [[len(rows) for rows in output] for output in outputs]
    rows = tuple(torch.cat(each).requires_grad_() for each in zip(*outputs, strict=True))
    del outputs
    value, found = loss(rows)
    if value.requires_grad:
        value.backward()  # type: ignore[no-untyped-call]
    starts = [0] * len(rows)
    for part, counts in enumerate(sizes):
        wanted = []
        again = forward(part)
        for number, (output, count) in enumerate(zip(again, counts, strict=True)):
            whole = rows[number].grad
            if whole is not None and output.requires_grad:
                wanted.append((output, whole[starts[number] : starts[number] + count]))
            starts[number] += count
        if wanted:
            torch.autograd.backward([output for output, _ in wanted], [given for _, given in wanted])
    return found
