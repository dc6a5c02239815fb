"""Sums over a short list of pairs (the positives), beside the walk: each pair's similarity from its own two vectors.

Kept apart because log(sum over candidates) - positive cancels for easy anchors, softplus(log(sum over negatives) -
positive) does not, and because a handful of pairs needs no block.

Shapes: A anchors, C candidates, D dimensions, P pairs.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from pipeline.contrast.relation import Pairs
from pipeline.contrast.requests import LogSumExp, Request, softplus
from pipeline.contrast.unit import chunks
from pipeline.metrics import Metric


def pair_similarity(anchors: Tensor, candidates: Tensor, pairs: Pairs, metric: Metric) -> Tensor:
    """The similarity of each pair: (P,). Cosine takes vectors of length 1."""
    found: Tensor = _PairSimilarity.apply(anchors, candidates, pairs, metric)
    return found


class _PairSimilarity(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, anchors: Tensor, candidates: Tensor, pairs: Pairs, metric: Metric) -> Tensor:
        found = anchors.new_empty(len(pairs.rows))
        for some in chunks(len(found)):
            first, second = anchors[pairs.rows[some]], candidates[pairs.columns[some]]
            if metric in ("cosine", "dot"):
                found[some] = (first * second).sum(1)
            else:
                found[some] = -(first - second).square().sum(1)
        if metric == "euclidean":
            found = -(-found).sqrt()
        ctx.save_for_backward(anchors, candidates, *pairs, found)
        ctx.metric = metric
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor | None, ...]:
        anchors, candidates, rows, columns, found = ctx.saved_tensors
        if ctx.metric == "euclidean":  # found is minus the distance; at 0 the derivative is 0
            given = torch.where(found < 0, given / -torch.where(found < 0, found, 1.0), 0.0)
        elif ctx.metric == "squared_euclidean":
            given = given * 2
        wanted = ctx.needs_input_grad
        into_anchors = torch.zeros_like(anchors) if wanted[0] else None
        into_candidates = torch.zeros_like(candidates) if wanted[1] else None
        for some in chunks(len(rows)):
            first, second, strength = anchors[rows[some]], candidates[columns[some]], given[some, None]
            if ctx.metric not in ("cosine", "dot"):
                first, second = first - second, second - first
            if into_anchors is not None:
                into_anchors.index_add_(0, rows[some], second.mul_(strength))
            if into_candidates is not None:
                into_candidates.index_add_(0, columns[some], first.mul_(strength))
        return into_anchors, into_candidates, None, None


def answer(request: Request, logits: Tensor, offset: Tensor | None, rows: Tensor, count: int) -> Tensor:
    """The request over listed pairs: (A,). ``logits`` (P,) without, ``offset`` (P,) of their candidates, or None."""
    if isinstance(request, LogSumExp):
        scaled = logits if request.scale == 1 else logits * request.scale
        return _logsumexp(scaled if offset is None else scaled + offset, rows, count)
    values = logits if offset is None else logits + offset
    values = request.sign * values + request.bias
    if request.side is not None:
        values = values + request.side[rows]
    if request.phi == "softplus":
        values = softplus(values)
    elif request.phi != "identity":
        values = functional.relu(values)
        values = values.square() if request.phi == "squared_relu" else values
    return values.new_zeros(count).index_add(0, rows, values)


def _logsumexp(values: Tensor, rows: Tensor, count: int) -> Tensor:
    peak = values.new_full((count,), -math.inf).scatter_reduce(0, rows, values.detach(), "amax")
    some = peak > -math.inf
    peak = torch.where(some, peak, 0.0)
    total = values.new_zeros(count).index_add(0, rows, (values - peak[rows]).exp())
    return (torch.where(some, total, 1.0).log() + peak).masked_fill(~some, -math.inf)
