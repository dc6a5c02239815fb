"""The law table: one row an objective, and no default row. A new member of the union fails every law until it has one.

A row says what the objective is in a naive double loop over anchors and candidates, what it must be at collapse, its
bounds, and which symmetries it has.

Shapes: A anchors. ``S`` (A, A) similarities, ``P`` and ``N`` the positives and negatives of each anchor, as lists.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

import torch
from torch import Tensor

from pipeline import objectives
from pipeline.objectives import Objective

MEMBERS = {member.model_fields["kind"].annotation.__args__[0]: member for member in get_args(get_args(Objective)[0])}
Lists = list[list[int]]


@dataclass(frozen=True)
class Row:
    """What is true of one objective."""

    fields: tuple[dict[str, Any], ...]
    """Settings to try."""
    naive: Callable[[Tensor, Lists, Lists, Any, Any], Tensor]
    """(S, P, N, temperature, settings) -> the loss, one pair at a time."""
    collapse: Callable[[int, float, dict[str, Any]], float]
    """(negatives an anchor, similarity / temperature of equal vectors, settings) -> the loss with one positive."""
    least: Callable[[int, float, dict[str, Any]], float]
    """(negatives, temperature, settings) -> a lower bound, vectors of length 1."""
    shift: bool
    """A constant added to all logits of an anchor changes nothing, so its gradient sums to 0 over the candidates."""
    sampler: dict[str, Any] | None = None
    """None: in_batch."""
    negatives: bool = True
    """Whether it reads negatives: then an anchor without one is not counted."""


def softplus(x: Tensor) -> Tensor:
    return torch.logaddexp(x, torch.zeros_like(x))


def logistic(x: float) -> float:
    return max(x, 0) + math.log1p(math.exp(-abs(x)))


def mean(values: list[Tensor]) -> Tensor:
    return torch.stack(values).mean()


def anchors(P: Lists, N: Lists) -> list[int]:
    return [i for i in range(len(P)) if P[i] and N[i]]


def naive_nt_xent(S, P, N, t, s):
    losses = []
    for i in anchors(P, N):
        positive = mean([S[i, p] for p in P[i]]) / t
        losses.append(torch.logsumexp(torch.stack([positive, *(S[i, n] / t for n in N[i])]), 0) - positive)
    return mean(losses)


def naive_decoupled(S, P, N, t, s):
    losses = []
    for i in anchors(P, N):
        positive = mean([S[i, p] for p in P[i]]) / t
        losses.append(torch.logsumexp(torch.stack([S[i, n] / t for n in N[i]]), 0) - positive)
    return mean(losses)


def naive_debiased(S, P, N, t, s, hardness=0.0):
    losses = []
    for i in anchors(P, N):
        peak = 1 / t  # all logits are at most this: exponentials stay in range
        positive = mean([S[i, p] for p in P[i]]) / t
        expected = mean([torch.exp(S[i, p] / t - peak) for p in P[i]])
        weights = [torch.exp(hardness * (S[i, n] / t - peak)) for n in N[i]]
        count = len(N[i])
        total = torch.zeros_like(positive)
        for n, weight in zip(N[i], weights, strict=True):
            total = total + torch.exp(S[i, n] / t - peak) * weight / (sum(weights) / count)
        true = (total - s["prior"] * count * expected) / (1 - s["prior"])
        if s["prior"] > 0:
            true = torch.maximum(true, count * torch.exp(torch.as_tensor(-1 / t - peak, dtype=S.dtype)))
        losses.append(-torch.log(torch.exp(positive - peak) / (torch.exp(positive - peak) + true)))
    return mean(losses)


def naive_hard_negative(S, P, N, t, s):
    return naive_debiased(S, P, N, t, s, s["hardness"])


def naive_supervised(S, P, N, t, s):
    losses = []
    for i in anchors(P, N):
        everything = torch.logsumexp(torch.stack([S[i, k] / t for k in P[i] + N[i]]), 0)
        losses.append(mean([everything - S[i, p] / t for p in P[i]]))
    return mean(losses)


def naive_nce(S, P, N, t, s):
    losses = []
    for i in anchors(P, N):
        ratio = [S[i, k] / t + s["normaliser"] - math.log(len(N[i])) for k in range(len(S))]
        losses.append(mean([softplus(-ratio[p]) for p in P[i]]) + sum(softplus(ratio[n]) for n in N[i]))
    return mean(losses)


def naive_negative_sampling(S, P, N, t, s):
    losses = []
    for i in anchors(P, N):
        losses.append(
            -mean([torch.log(torch.sigmoid(S[i, p])) for p in P[i]])
            - sum(torch.log(torch.sigmoid(-S[i, n])) for n in N[i])
        )
    return mean(losses)


def naive_sigmoid(S, P, N, t, s):
    losses = []
    for i in anchors(P, N):
        pairs = [(S[i, p], 1.0) for p in P[i]] + [(S[i, n], -1.0) for n in N[i]]
        losses.append(sum(softplus(-sign * (similarity / t + s["bias"])) for similarity, sign in pairs))
    return mean(losses)


def naive_margin(S, P, N, t, s):
    pull = [mean([S[i, p] ** 2 for p in P[i]]) / 2 for i in range(len(S)) if P[i]]
    push = [mean([torch.relu(s["margin"] + S[i, n]) ** 2 for n in N[i]]) / 2 for i in range(len(S)) if N[i]]
    return mean(pull) + mean(push)


def naive_triplet(S, P, N, t, s):
    losses = []
    for i in anchors(P, N):
        positive = mean([S[i, p] for p in P[i]])
        losses.append(mean([torch.relu(S[i, n] - positive + s["margin"]) for n in N[i]]))
    return mean(losses)


def naive_alignment_uniformity(S, P, N, t, s):
    distance = 2 - 2 * S if s["metric"] == "cosine" else -S
    alignment = mean([mean([distance[i, p] for p in P[i]]) for i in range(len(S)) if P[i]])
    potential = mean([mean([torch.exp(-s["t"] * distance[i, n]) for n in N[i]]) for i in range(len(S)) if N[i]])
    return alignment + s["weight"] * torch.log(potential)


def naive_regression(S, P, N, t, s):
    distance = 2 - 2 * S if s["form"] == "squared_distance" else -S
    return mean([mean([distance[i, p] for p in P[i]]) for i in range(len(S)) if P[i]])


def binary_collapse(count: int, logit: float, extra: float, total: float) -> float:
    return logistic(-(logit + extra)) + total * logistic(logit + extra)


def zero(count: int, t: float, s: dict[str, Any]) -> float:
    return 0.0


TABLE: dict[str, Row] = {
    "nt_xent": Row(({},), naive_nt_xent, lambda n, x, s: math.log(n + 1), zero, shift=True),
    "decoupled": Row(
        ({},), naive_decoupled, lambda n, x, s: math.log(n), lambda n, t, s: math.log(n) - 4 / t, shift=True
    ),
    "debiased": Row(
        ({"prior": 0.0}, {"prior": 0.1}, {"prior": 0.3}),
        naive_debiased,
        lambda n, x, s: math.log(n + 1),
        zero,
        shift=False,
    ),
    "hard_negative": Row(
        ({"prior": 0.0, "hardness": 0.0}, {"prior": 0.0, "hardness": 1.0}, {"prior": 0.05, "hardness": 0.5}),
        naive_hard_negative,
        lambda n, x, s: math.log(n + 1),
        zero,
        shift=False,
    ),
    "supervised": Row(
        ({},),
        naive_supervised,
        lambda n, x, s: math.log(n + 1),
        zero,
        shift=True,
        sampler={"kind": "same_label", "column": "label"},
    ),
    "nce": Row(
        ({"normaliser": 0.0}, {"normaliser": -1.5}),
        naive_nce,
        lambda n, x, s: binary_collapse(n, x, s["normaliser"] - math.log(n), n),
        zero,
        shift=False,
    ),
    "negative_sampling": Row(
        ({},), naive_negative_sampling, lambda n, x, s: binary_collapse(n, x, 0.0, n), zero, shift=False
    ),
    "sigmoid": Row(
        ({"bias": 0.0}, {"bias": -3.0}),
        naive_sigmoid,
        lambda n, x, s: binary_collapse(n, x, s["bias"], n),
        zero,
        shift=False,
    ),
    "margin": Row(
        ({"margin": 1.0}, {"margin": 0.5}), naive_margin, lambda n, x, s: s["margin"] ** 2 / 2, zero, shift=False
    ),
    "triplet": Row(({"margin": 0.5}, {"margin": 0.1}), naive_triplet, lambda n, x, s: s["margin"], zero, shift=True),
    "alignment_uniformity": Row(
        ({"t": 2.0, "weight": 1.0}, {"t": 0.7, "weight": 0.3}),
        naive_alignment_uniformity,
        lambda n, x, s: 0.0,
        lambda n, t, s: -4 * s["t"] * s["weight"],
        shift=False,
    ),
    "regression": Row(
        ({"form": "squared_distance"}, {"form": "negative_cosine"}),
        naive_regression,
        lambda n, x, s: 2 - 2 * x if s["form"] == "squared_distance" else -x,
        lambda n, t, s: 0.0 if s["form"] == "squared_distance" else -1.0,
        shift=False,
        negatives=False,
    ),
}

PLAIN = {  # the plain function of each member on z in pair order: (z, temperature, settings) -> scalar
    "nt_xent": lambda z, t, s: objectives.nt_xent(z, t, s["metric"]),
    "decoupled": lambda z, t, s: objectives.decoupled(z, t, s["metric"]),
    "debiased": lambda z, t, s: objectives.debiased(z, t, s["prior"]),
    "hard_negative": lambda z, t, s: objectives.hard_negative(z, t, s["prior"], s["hardness"]),
    "supervised": lambda z, t, s: objectives.supervised_contrastive(z, torch.arange(len(z)) // 2, t, s["metric"]),
    "nce": None,  # another shape: queries, keys and noise; has tests of its own
    "negative_sampling": None,
    "sigmoid": lambda z, t, s: objectives.sigmoid(z, t, s["bias"], s["metric"]),
    "margin": lambda z, t, s: objectives.siamese_margin(z, s["margin"], "l2"),
    "triplet": lambda z, t, s: objectives.triplet(z, s["margin"], s["metric"], "l2"),
    "regression": lambda z, t, s: objectives.regression(z, s["form"]),
    "alignment_uniformity": lambda z, t, s: objectives.alignment_uniformity(z, s["t"], s["weight"]),
}
