"""One walk over the blocks of anchors by candidates answers several requests, and one more gives their gradients.

The block's scores are recomputed in the backward walk, so that memory is O((A + C) D + block). For a batch that is its
own candidates that is 2 N^2 D multiply-adds forwards and backwards together (half a matrix product for the upper
triangle of scores, twice, and one for the gradient). Where only the anchors want a gradient (a queue) it is gathered
in the forward walk, as in Milakov & Gimelshein 2018 (arXiv:1805.02867) and Dao et al. 2022 (arXiv:2205.14135).

Shapes: A anchors, C candidates, D dimensions, R requests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pipeline.contrast import fused
from pipeline.contrast.gathering import ExpSum, Given, PhiSum, Tile
from pipeline.contrast.gathering_fused import FusedExpSum, FusedPhiSum
from pipeline.contrast.relation import Relation
from pipeline.contrast.requests import LogSumExp, Request
from pipeline.contrast.scores import Distances, Products
from pipeline.contrast.tiling import Block, Tiling
from pipeline.metrics import Metric

BOUND = {torch.float32: 100.0, torch.float64: 900.0}
"""Exponents (base 2) of this size neither overflow nor underflow in a sum, so no maximum is needed."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything about a walk that is not differentiated."""

    relation: Relation
    metric: Metric
    temperature: float
    unit_length: bool
    requests: tuple[Request, ...]


def walk(
    plan: Plan,
    anchors: Tensor,
    candidates: Tensor | None,
    temperature: Tensor | float,
    offset: Tensor | None,
) -> tuple[Tensor, ...]:
    """The answers to the plan's requests, R tensors (A,); ``candidates`` None: the anchors, under symmetric rules."""
    sides = [request.side if not isinstance(request, LogSumExp) else None for request in plan.requests]
    biases = [request.bias if not isinstance(request, LogSumExp) else 0.0 for request in plan.requests]
    scalar = temperature if isinstance(temperature, Tensor) else None
    with torch.autocast(anchors.device.type, enabled=False):
        answers: tuple[Tensor, ...] = _Walk.apply(plan, anchors, candidates, scalar, offset, *sides, *biases)
    return answers


class _Walk(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        plan: Plan,
        anchors: Tensor,
        candidates: Tensor | None,
        temperature: Tensor | None,
        offset: Tensor | None,
        *rest: Tensor | float | None,
    ) -> tuple[Tensor, ...]:
        count = len(plan.requests)
        wanted = ctx.needs_input_grad
        others = [i for i, want in enumerate(wanted) if want and i != 1]
        unit = math.log2(math.e) if any(isinstance(request, LogSumExp) for request in plan.requests) else 1.0
        scores = _scores(plan, anchors, anchors if candidates is None else candidates, unit / plan.temperature)
        tiling = Tiling.of(plan.relation, anchors.device, upper=candidates is None)
        reach = 0.0 if offset is None or not len(offset) else float(offset.abs().max()) * math.log2(math.e)
        sums = [r for r in plan.requests if isinstance(r, LogSumExp)]
        largest = max((abs(r.scale) for r in sums), default=0.0) * scores.bound() + reach if sums else 0.0
        ahead = wanted[1] and candidates is not None and not others and isinstance(scores, Products)
        ahead = ahead and len(sums) == count
        compile_blocks = plan.relation.plain and fused.compiled(anchors.device)
        states: list[ExpSum | PhiSum] = []
        for request, side, bias in zip(plan.requests, rest[:count], rest[count:], strict=True):
            if isinstance(request, LogSumExp):
                bounded = largest <= BOUND[anchors.dtype]
                if compile_blocks:
                    states.append(FusedExpSum(request, unit, anchors, bounded, ahead, plan.relation))
                else:
                    states.append(ExpSum(request, unit, anchors, bounded, ahead))
            else:
                assert not isinstance(side, float)
                assert bias is not None
                if compile_blocks:
                    states.append(FusedPhiSum(request, unit, anchors, side, bias, plan.relation))
                else:
                    states.append(PhiSum(request, unit, anchors, side, bias))
        kept = None
        buffer = _buffer(tiling, anchors)
        for block in tiling.blocks:
            tile = _tile(tiling, block, scores.tile(block, buffer), offset, count)
            for state in states:
                kept = state.add(tile, scores.candidates[block.columns])
        ctx.kept = kept if any(wanted) and len(tiling.blocks) == 1 and count == 1 and not ahead else None
        ctx.plan, ctx.scores, ctx.tiling, ctx.states, ctx.ahead, ctx.sides = plan, scores, tiling, states, ahead, count
        ctx.save_for_backward(anchors, candidates, temperature, offset, *(x for x in rest if isinstance(x, Tensor)))
        return tuple(state.answer() for state in states)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *given: Tensor) -> tuple[Tensor | None, ...]:
        _, _, _, offset, *_ = ctx.saved_tensors  # refuses inputs that were changed in place meanwhile
        scores, tiling, states, wanted = ctx.scores, ctx.tiling, ctx.states, ctx.needs_input_grad
        anchors = scores.anchors
        count = len(states)
        with torch.autocast(anchors.device.type, enabled=False):
            # gradients of size 1: an answer's gradient over a large sum may not fit a float32
            peaks = [part.abs().max() if part.numel() else part.sum() for part in given]
            size = peaks[0] if count == 1 else torch.stack(peaks).max()
            size = size.masked_fill(size == 0, 1.0)
            given = tuple(part / size for part in given)
            factor = size / ctx.plan.temperature
            if ctx.ahead:
                total = sum(state.ahead(part) for state, part in zip(states, given, strict=True))
                return (None, total * factor, *[None] * (len(wanted) - 2))
            apart = scores.candidates is not anchors or not tiling.upper
            hot = wanted[3]  # a temperature that is trained
            into_anchors = torch.zeros_like(anchors) if wanted[1] or hot else None
            into_candidates = torch.zeros_like(scores.candidates) if apart and (wanted[2] or hot) else None
            into_offset = torch.zeros_like(offset) if wanted[4] else None
            sides = [torch.zeros_like(anchors[:, 0]) if want else None for want in wanted[5 : 5 + count]]
            biases = [anchors.new_zeros(()) if want else None for want in wanted[5 + count :]]
            targets = [Given(*each) for each in zip(given, [into_offset] * count, sides, biases, strict=True)]
            kept, ctx.kept = ctx.kept, None  # overwritten; another backward pass computes it again
            buffer = _buffer(tiling, anchors) if kept is None else None
            for block in tiling.blocks:
                if buffer is None:
                    tile = _tile(tiling, block, kept, offset, count)
                    weights = states[0].weights(tile, targets[0], kept)
                else:
                    tile = _tile(tiling, block, scores.tile(block, buffer), offset, count)
                    weights = states[0].weights(tile, targets[0])
                    for state, target in zip(states[1:], targets[1:], strict=True):
                        weights += state.weights(tile, target)
                if into_anchors is not None or into_candidates is not None:
                    scores.spread(block, weights, into_anchors, into_candidates if apart else into_anchors)
            into_temperature = None
            if hot and into_anchors is not None:
                # Euler: sum of weights * similarity = (anchors . their gradient + candidates . theirs) / degree
                along = (anchors * into_anchors).sum()
                if into_candidates is not None:
                    along = along + (scores.candidates * into_candidates).sum()
                into_temperature = -along * factor / (ctx.plan.temperature * scores.degree)
        scaled = [None if part is None else part * size for part in (into_offset, *sides, *biases)]
        return (
            None,
            into_anchors.mul_(factor) if into_anchors is not None and wanted[1] else None,
            into_candidates.mul_(factor) if into_candidates is not None and wanted[2] else None,
            into_temperature,
            *scaled,
        )


def _scores(plan: Plan, anchors: Tensor, candidates: Tensor, factor: float) -> Products | Distances:
    if plan.metric in ("cosine", "dot"):
        return Products(anchors, candidates, factor, 1.0001 if plan.unit_length else None)
    return Distances(anchors, candidates, factor, root=plan.metric == "euclidean")


def _tile(tiling: Tiling, block: Block, scores: Tensor, offset: Tensor | None, count: int) -> Tile:
    part = None if offset is None else offset[block.columns]
    return Tile(block, scores, tiling.eraser(block), part, alone=count == 1)


def _buffer(tiling: Tiling, like: Tensor) -> Tensor:
    largest = max(
        (((b.rows.stop - b.rows.start) * (b.columns.stop - b.columns.start)) for b in tiling.blocks), default=0
    )
    return like.new_empty(largest)
