"""The element-wise part of a block as pure functions of tensors, compiled on a GPU into one or two kernels each.

A block's scores are read and summed, or turned into weights, without a mask or an exponential in memory: what is
erased is computed in the kernel from the rules' integer codes. On CPUs the in-place form of ``gathering`` is as fast
as a compiler's (measured), so that none is needed there.

``MODE`` is the switch: "auto" compiles on CUDA devices, "always" on every device, "never" on none. Where no compiler
works one warning says so, and ``gathering`` serves.

Shapes: a block is (n, m).
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from pipeline.contrast.relation import Over, Relation
from pipeline.contrast.requests import Phi, phi, slope
from pipeline.contrast.tiling import Block

MODE: Literal["auto", "always", "never"] = "auto"


class Operands(NamedTuple):
    """One block: scores (n, m) and their factor; an offset (m,) added; the codes of the rules; what is kept."""

    scores: Tensor
    ratio: Tensor
    offset: Tensor
    rows: tuple[Tensor, Tensor, Tensor]
    columns: tuple[Tensor, Tensor, Tensor]
    positives: Tensor
    negatives: Tensor

    @staticmethod
    def of(
        relation: Relation, block: Block, scores: Tensor, ratio: float, offset: Tensor | None, over: Over
    ) -> Operands:
        """Always the same tensors, so that one compiled form serves every request."""
        rules = relation.own, relation.group, relation.barred or relation.own
        wanted = (over != "negatives", over != "positives")
        return Operands(
            scores,
            scores.new_full((), ratio),
            scores.new_zeros(scores.shape[1]) if offset is None else offset,
            (rules[0].anchors[block.rows], rules[1].anchors[block.rows], rules[2].anchors[block.rows]),
            (
                rules[0].candidates[block.columns],
                rules[1].candidates[block.columns],
                rules[2].candidates[block.columns],
            ),
            *(torch.full((), want, device=scores.device) for want in wanted),
        )


def kept(x: Operands) -> Tensor:
    """Where a block's candidates are what is asked for: bool (n, m)."""
    own, group, barred = (row[:, None] == column for row, column in zip(x.rows, x.columns, strict=True))
    return (group & ~own & x.positives) | (~(own | group | barred) & x.negatives)


def exponents(x: Operands) -> Tensor:
    """ratio * scores + offset, -inf where erased: (n, m)."""
    return torch.where(kept(x), x.scores * x.ratio + x.offset, -math.inf)


def peaks(x: Operands, mirrored: bool) -> tuple[Tensor, Tensor | None]:
    """The largest exponent of every row (n,) and, if mirrored, of every column (m,)."""
    found = exponents(x)
    return found.amax(1), found.amax(0) if mirrored else None


def sums(x: Operands, row_peak: Tensor, column_peak: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """The sums of exp2(exponent - peak) along every row (n,) and, with a peak, along every column (m,)."""
    found = exponents(x)
    rows = (found - row_peak[:, None]).exp2().sum(1)
    return rows, None if column_peak is None else (found - column_peak).exp2().sum(0)


def weights(x: Operands, row: tuple[Tensor, Tensor], column: tuple[Tensor, Tensor] | None) -> Tensor:
    """exp2(exponent - level) * share of the rows, plus that of the columns; (level, share) of each: (n, m)."""
    exponent = exponents(x)
    found = (exponent - row[0][:, None]).exp2() * row[1][:, None]
    return found if column is None else found + (exponent - column[0]).exp2() * column[1]


def totals(x: Operands, kind: Phi, row_side: Tensor, column_side: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """The sums of phi(ratio * scores + offset + side) along every row (n,) and, with a side, along every column."""
    keep, argument = kept(x), x.scores * x.ratio + x.offset
    rows = torch.where(keep, phi(argument + row_side[:, None], kind), 0.0).sum(1)
    return rows, None if column_side is None else torch.where(keep, phi(argument + column_side, kind), 0.0).sum(0)


def slopes(
    x: Operands, kind: Phi, row: tuple[Tensor, Tensor], column: tuple[Tensor, Tensor] | None
) -> tuple[Tensor, Tensor | None]:
    """phi'(ratio * scores + offset + side) * given, as the rows see it and as the columns do; (side, given) of each."""
    keep, argument = kept(x), x.scores * x.ratio + x.offset
    rows = torch.where(keep, slope(argument + row[0][:, None], kind) * row[1][:, None], 0.0)
    if column is None:
        return rows, None
    return rows, torch.where(keep, slope(argument + column[0], kind) * column[1], 0.0)


@functools.cache
def call(function: Callable[..., Any]) -> Callable[..., Any]:
    """The compiled form of one of the functions above: one for all sizes of block."""
    found: Callable[..., Any] = torch.compile(function, dynamic=True)
    return found


def compiled(device: torch.device) -> bool:
    """Whether blocks on this device go through compiled functions."""
    wanted = MODE == "always" or (MODE == "auto" and device.type == "cuda")
    return wanted and _works(device.type)


@functools.cache
def _works(device: str) -> bool:
    """Compile and run the sums of one small block; one warning where that fails, whatever the reason."""
    scores, code = torch.zeros(4, 6, device=device), torch.arange(6, device=device)
    yes = torch.ones((), dtype=torch.bool, device=device)
    block = Operands(scores, scores[0, 0] + 1, scores[0], (code[:4],) * 3, (code,) * 3, yes, yes)
    try:
        with torch.no_grad():
            rows, _ = call(sums)(block, scores[:, 0], None)
        if not bool((rows == 5).all()):
            raise ArithmeticError("wrong sums")
    except Exception as fault:
        reason = str(fault).strip().splitlines() or [type(fault).__name__]
        warnings.warn(
            f"the contrastive losses run uncompiled on {device}, which is slower: no compiler works ({reason[0]})",
            stacklevel=2,
        )
        return False
    return True
