"""How each answer is gathered block by block, forwards and backwards.

A block's *scores* are unit * logit without the offset. ``unit`` is log2(e) where a log-sum-exp is asked for, because
exp2 is about three times faster than exp; every sum of exponentials is then one exp2 of the scores.

Shapes: A anchors, C candidates; a block is (n, m): n anchors, and m candidates that are m anchors too if mirrored.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from pipeline.contrast.relation import Over
from pipeline.contrast.requests import LogSumExp, Phi, Total, phi, slope
from pipeline.contrast.tiling import Block

SPARE = 128
"""Rows of a block that are scaled at once."""


@dataclass(eq=False)
class Tile:
    """One block's scores, shared by the requests of a walk."""

    block: Block
    scores: Tensor
    erase: Callable[[Tensor, Over, float], Tensor]
    offset: Tensor | None  # of the block's candidates, in nats
    alone: bool  # one request only: it may overwrite the scores
    _powers: dict[float, Tensor] = field(default_factory=dict)

    def exponents(self, ratio: float) -> Tensor:
        """ratio * scores + offset in base 2; new memory unless the request is alone."""
        if ratio != 1:
            found = self.scores.mul_(ratio) if self.alone else self.scores * ratio
        else:
            found = self.scores if self.alone else self.scores.clone()
        return found if self.offset is None else found.add_(self.offset * math.log2(math.e))

    def powers(self, ratio: float, over: Over) -> Tensor:
        """exp2 of the exponents, 0 where the candidate is not ``over``."""
        if self.alone:
            return self.erase(self.exponents(ratio).exp2_(), over, 0.0)
        if ratio not in self._powers:
            self._powers[ratio] = self.exponents(ratio).exp2_()
        return self.erase(self._powers[ratio].clone(), over, 0.0)


@dataclass(frozen=True, eq=False)
class Given:
    """The gradient of one answer, over all anchors: (A,), and where to add what it gives to other inputs."""

    answer: Tensor
    offset: Tensor | None
    side: Tensor | None
    bias: Tensor | None


class ExpSum:
    """Gathers one log-sum-exp. ``bounded``: no exponent can overflow or underflow, so no maximum is kept."""

    def __init__(self, request: LogSumExp, unit: float, anchors: Tensor, bounded: bool, ahead: bool):
        self.request, self.ratio = request, request.scale * math.log2(math.e) / unit
        self.sum = anchors.new_zeros(anchors.shape[0])
        self.peak = None if bounded else torch.full_like(self.sum, -math.inf)
        self.pull = torch.zeros_like(anchors) if ahead else None

    def add(self, tile: Tile, candidates: Tensor) -> Tensor | None:
        """Add one block; ``candidates`` (m, D) are read if the gradient is gathered ahead. Returns bounded powers."""
        block = tile.block
        if self.peak is None:
            powers = tile.powers(self.ratio, self.request.over)
            self.sum[block.rows].add_(powers.sum(1))
            if block.mirrored:
                self.sum[block.columns].add_(powers.sum(0))
            if self.pull is not None:
                self.pull[block.rows].addmm_(powers, candidates)
            return powers
        exponents = tile.erase(tile.exponents(self.ratio), self.request.over, -math.inf)
        for rows, across in ((block.rows, exponents), (block.columns, exponents.T))[: 1 + block.mirrored]:
            before = self.peak[rows]
            peak = torch.maximum(before, across.amax(1))
            safe = torch.where(peak > -math.inf, peak, 0.0)
            powers, fade = (across - safe[:, None]).exp2_(), (before - safe).exp2()
            self.sum[rows] = self.sum[rows] * fade + powers.sum(1)
            self.peak[rows] = peak
            if self.pull is not None:
                self.pull[rows] = self.pull[rows].mul_(fade[:, None]).addmm_(powers, candidates)
        return None

    def answer(self) -> Tensor:
        """The log-sum-exp so far, in nats: (A,)."""
        return self.sum.log() if self.peak is None else self.peak * math.log(2) + self.sum.log()

    def ahead(self, given: Tensor) -> Tensor:
        """d loss / d logit summed against the candidates, gathered in the forward walk: (A, D)."""
        assert self.pull is not None
        return self.pull * torch.where(self.sum > 0, self.request.scale * given / self.sum, 0.0)[:, None]

    def weights(self, tile: Tile, given: Given, powers: Tensor | None = None) -> Tensor:
        """d loss / d logit of one block: (n, m). ``powers`` where they were kept; they are overwritten."""
        block = tile.block
        both = block.mirrored or block.diagonal
        if self.peak is None:
            share = (given.answer / self.sum).masked_fill_(self.sum == 0, 0.0)
            found = tile.powers(self.ratio, self.request.over) if powers is None else powers
            if both:
                _multiply_by_sums(found, share[block.rows], share[block.columns])
            else:
                found.mul_(share[block.rows, None])
        else:
            level = torch.where(self.sum > 0, self.peak + self.sum.log2(), math.inf)
            exponents = tile.erase(tile.exponents(self.ratio), self.request.over, -math.inf)
            found = (exponents - level[block.rows, None]).exp2_().mul_(given.answer[block.rows, None])
            if both:
                found += exponents.sub_(level[block.columns]).exp2_().mul_(given.answer[block.columns])
        if given.offset is not None:
            given.offset[block.columns] += found.sum(0)
        return found if self.request.scale == 1 else found.mul_(self.request.scale)


def _multiply_by_sums(tile: Tensor, rows: Tensor, columns: Tensor) -> None:
    """tile[i, j] *= rows[i] + columns[j], a few rows at a time: fresh memory costs more than arithmetic."""
    count, width = tile.shape
    spare = tile.new_empty(min(SPARE, count), width)
    for top in range(0, count, SPARE):
        some = rows[top : top + SPARE, None]
        tile[top : top + SPARE].mul_(torch.add(some, columns, out=spare[: count - top]))


class PhiSum:
    """Gathers one total."""

    def __init__(self, request: Total, unit: float, anchors: Tensor, side: Tensor | None, bias: Tensor | float):
        self.request, self.ratio, self.side, self.bias = request, request.sign / unit, side, bias
        self.sum = anchors.new_zeros(anchors.shape[0])

    def _arguments(self, tile: Tile) -> Tensor:
        found = tile.scores * self.ratio
        if tile.offset is not None:
            found += self.request.sign * tile.offset
        return found if isinstance(self.bias, float) and self.bias == 0 else found.add_(self.bias)

    def _sided(self, tile: Tile, arguments: Tensor, function: Callable[[Tensor, Phi], Tensor]) -> tuple[Tensor, Tensor]:
        """The function of the arguments as the rows see them and as the columns do, erased: (n, m) twice."""
        block, over = tile.block, self.request.over
        if self.side is None:
            found = tile.erase(function(arguments, self.request.phi), over, 0.0)
            return found, found
        first = tile.erase(function(arguments + self.side[block.rows, None], self.request.phi), over, 0.0)
        if not (block.mirrored or block.diagonal):
            return first, first
        return first, tile.erase(function(arguments + self.side[block.columns], self.request.phi), over, 0.0)

    def add(self, tile: Tile, candidates: Tensor) -> Tensor | None:
        """Add one block."""
        of_rows, of_columns = self._sums(tile)
        self.sum[tile.block.rows] += of_rows
        if of_columns is not None:
            self.sum[tile.block.columns] += of_columns
        return None

    def _sums(self, tile: Tile) -> tuple[Tensor, Tensor | None]:
        of_rows, of_columns = self._sided(tile, self._arguments(tile), phi)
        return of_rows.sum(1), of_columns.sum(0) if tile.block.mirrored else None

    def answer(self) -> Tensor:
        """The total so far: (A,)."""
        return self.sum.clone()

    def weights(self, tile: Tile, given: Given, powers: Tensor | None = None) -> Tensor:
        """d loss / d logit of one block: (n, m)."""
        block = tile.block
        found, theirs = self._slopes(tile, given.answer)
        if given.side is not None:
            given.side[block.rows] += found.sum(1)
        if given.bias is not None:
            given.bias.add_(found.sum())
        if theirs is not None:
            if block.mirrored and given.side is not None:
                given.side[block.columns] += theirs.sum(0)
            if block.mirrored and given.bias is not None:
                given.bias.add_(theirs.sum())
            found += theirs
        if self.request.sign != 1:
            found *= self.request.sign
        if given.offset is not None:
            given.offset[block.columns] += found.sum(0)
        return found

    def _slopes(self, tile: Tile, given: Tensor) -> tuple[Tensor, Tensor | None]:
        block = tile.block
        of_rows, of_columns = self._sided(tile, self._arguments(tile), slope)
        both = block.mirrored or block.diagonal
        return of_rows * given[block.rows, None], of_columns * given[block.columns] if both else None
