"""Sums over a short list of pairs (the positives), beside the walk: each pair's similarity from its own two vectors.

Kept apart because log(sum over candidates) - positive cancels for easy anchors, softplus(log(sum over negatives) -
positive) does not, and because a handful of pairs needs no block.

Shapes: A anchors, C candidates, D dimensions, P pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from pipeline.contrast.codes import Listed
from pipeline.contrast.requests import LogSumExp, Request, softplus
from pipeline.contrast.unit_length import chunks
from pipeline.metrics import Metric


def pair_similarity(anchors: Tensor, candidates: Tensor | None, listed: Listed, metric: Metric) -> Tensor:
    """The similarity of each positive pair: (P,). Cosine takes vectors of length 1; no candidates: the anchors."""
    found: Tensor = _PairSimilarity.apply(anchors, candidates, listed, metric)
    return found


class _PairSimilarity(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, anchors: Tensor, candidates: Tensor | None, listed: Listed, metric: Metric) -> Tensor:
        found = anchors.new_empty(listed.positive.rows.shape)
        for some, first, second in _members(anchors, candidates, listed):
            if metric in ("cosine", "dot"):
                found[some] = (first * second).sum(1)
            else:
                found[some] = -(first - second).square_().sum(1)
        if metric == "euclidean":
            found = -(-found).sqrt()
        ctx.save_for_backward(anchors, candidates, found)
        ctx.listed, ctx.metric = listed, metric
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor | None, ...]:
        anchors, candidates, found = ctx.saved_tensors
        if ctx.metric == "euclidean":  # found is minus the distance; at 0 the derivative is 0
            given = torch.where(found < 0, given / -torch.where(found < 0, found, 1.0), 0.0)
        elif ctx.metric == "squared_euclidean":
            given = given * 2
        wanted, (rows, columns), single = ctx.needs_input_grad, ctx.listed.positive, ctx.listed.single
        into_anchors = torch.zeros_like(anchors) if wanted[0] else None
        into_candidates = torch.zeros_like(candidates) if wanted[1] else None
        into_columns = into_anchors if candidates is None else into_candidates
        for some, first, second in _members(anchors, candidates, ctx.listed):
            strength = given[some, None]
            if ctx.metric not in ("cosine", "dot"):
                first, second = first - second, second - first
            if into_anchors is not None and single:
                into_anchors[some].addcmul_(second, strength)
            elif into_anchors is not None:
                into_anchors.index_add_(0, rows[some], second * strength)
            if into_columns is not None:
                into_columns.index_add_(0, columns[some], first * strength)
        return into_anchors, into_candidates, None, None


def _members(anchors: Tensor, candidates: Tensor | None, listed: Listed) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """The two vectors of each positive pair, some pairs at a time: which, (n, D), (n, D)."""
    theirs = anchors if candidates is None else candidates
    for some in chunks(listed.positive.rows.shape[0]):
        first = anchors[some] if listed.single else anchors.index_select(0, listed.positive.rows[some])
        yield some, first, theirs.index_select(0, listed.positive.columns[some])


def answer(request: Request, logits: Tensor, offset: Tensor | None, listed: Listed, count: int) -> Tensor:
    """The request over listed pairs: (A,). ``logits`` (P,) without, ``offset`` (P,) of their candidates, or None."""
    rows = listed.positive.rows
    if isinstance(request, LogSumExp):
        scaled = logits if request.scale == 1 else logits * request.scale
        scaled = scaled if offset is None else scaled + offset
        return scaled if listed.single else _logsumexp(scaled, rows, count)
    values = logits if offset is None else logits + offset
    values = values if request.sign == 1 else request.sign * values
    if request.side is not None:
        values = values + request.side[rows]
    if isinstance(request.bias, Tensor) or request.bias != 0:
        values = values + request.bias
    if request.phi == "softplus":
        values = softplus(values)
    elif request.phi != "identity":
        values = functional.relu(values)
        values = values.square() if request.phi == "squared_relu" else values
    return values if listed.single else values.new_zeros(count).index_add(0, rows, values)


def _logsumexp(values: Tensor, rows: Tensor, count: int) -> Tensor:
    peak = values.new_full((count,), -math.inf).scatter_reduce(0, rows, values.detach(), "amax")
    some = peak > -math.inf
    peak = torch.where(some, peak, 0.0)
    total = values.new_zeros(count).index_add(0, rows, (values - peak[rows]).exp())
    return (torch.where(some, total, 1.0).log() + peak).masked_fill(~some, -math.inf)
