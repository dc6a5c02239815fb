"""The answers of ``gathering`` where blocks go through compiled functions: the same states, other arithmetic.

Scores are only read, so that one block's can be kept for the backward walk as they are.

Shapes: A anchors, C candidates; a block is (n, m).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pipeline.contrast import fused
from pipeline.contrast.gathering import ExpSum, Given, PhiSum, Tile
from pipeline.contrast.relation import Relation
from pipeline.contrast.requests import LogSumExp, Total


class FusedExpSum(ExpSum):
    """One log-sum-exp."""

    def __init__(
        self, request: LogSumExp, unit: float, anchors: Tensor, bounded: bool, ahead: bool, relation: Relation
    ):
        super().__init__(request, unit, anchors, bounded, ahead)
        self.relation = relation

    def _operands(self, tile: Tile) -> fused.Operands:
        offset = None if tile.offset is None else tile.offset * math.log2(math.e)
        return fused.Operands.of(self.relation, tile.block, tile.scores, self.ratio, offset, self.request.over)

    def add(self, tile: Tile, candidates: Tensor) -> Tensor | None:
        """Add one block; returns its scores."""
        block, operands = tile.block, self._operands(tile)
        sides = (block.rows, block.columns)[: 1 + block.mirrored]
        if self.peak is None:
            levels = [torch.zeros_like(self.sum[side]) for side in sides]
        else:
            before = [self.peak[side] for side in sides]
            found = fused.call(fused.peaks)(operands, block.mirrored)[: len(sides)]
            after = [torch.maximum(*both) for both in zip(before, found, strict=True)]
            levels = [torch.where(peak > -math.inf, peak, 0.0) for peak in after]
            for side, old, new, level in zip(sides, before, after, levels, strict=True):
                fade = (old - level).exp2()
                self.sum[side] *= fade
                if self.pull is not None:
                    self.pull[side].mul_(fade[:, None])
                self.peak[side] = new
        if self.pull is not None:
            powers = fused.call(fused.weights)(operands, (levels[0], torch.ones_like(levels[0])), None)
            self.sum[block.rows] += powers.sum(1)
            self.pull[block.rows].addmm_(powers, candidates)
            return None
        added = fused.call(fused.sums)(operands, levels[0], levels[1] if block.mirrored else None)
        for side, part in zip(sides, added[: len(sides)], strict=True):
            self.sum[side] += part
        return tile.scores

    def weights(self, tile: Tile, given: Given, powers: Tensor | None = None) -> Tensor:
        """d loss / d logit of one block: (n, m)."""
        block = tile.block
        peak = 0.0 if self.peak is None else self.peak
        level = torch.where(self.sum > 0, peak + self.sum.log2(), math.inf)
        rows = level[block.rows], given.answer[block.rows]
        both = block.mirrored or block.diagonal
        columns = (level[block.columns], given.answer[block.columns]) if both else None
        found: Tensor = fused.call(fused.weights)(self._operands(tile), rows, columns)
        if given.offset is not None:
            given.offset[block.columns] += found.sum(0)
        return found if self.request.scale == 1 else found.mul_(self.request.scale)


class FusedPhiSum(PhiSum):
    """One total."""

    def __init__(
        self,
        request: Total,
        unit: float,
        anchors: Tensor,
        side: Tensor | None,
        bias: Tensor | float,
        relation: Relation,
    ):
        super().__init__(request, unit, anchors, side, bias)
        self.relation = relation
        self.moved = torch.zeros_like(self.sum) if side is None else side

    def _operands(self, tile: Tile) -> fused.Operands:
        offset = self.bias if tile.offset is None else self.request.sign * tile.offset + self.bias
        offset = torch.as_tensor(offset, dtype=self.sum.dtype, device=self.sum.device).detach()
        offset = offset.expand(tile.scores.shape[1]).contiguous()
        return fused.Operands.of(self.relation, tile.block, tile.scores, self.ratio, offset, self.request.over)

    def _sums(self, tile: Tile) -> tuple[Tensor, Tensor | None]:
        rows, columns = tile.block.rows, tile.block.columns
        theirs = self.moved[columns] if tile.block.mirrored else None
        found: tuple[Tensor, Tensor | None] = fused.call(fused.totals)(
            self._operands(tile), self.request.phi, self.moved[rows], theirs
        )
        return found

    def _slopes(self, tile: Tile, given: Tensor) -> tuple[Tensor, Tensor | None]:
        rows, columns = tile.block.rows, tile.block.columns
        both = tile.block.mirrored or tile.block.diagonal
        theirs = (self.moved[columns], given[columns]) if both else None
        found: tuple[Tensor, Tensor | None] = fused.call(fused.slopes)(
            self._operands(tile), self.request.phi, (self.moved[rows], given[rows]), theirs
        )
        return found
