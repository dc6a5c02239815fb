"""The crowd in the denominator: what an anchor pays when all its negatives are equally similar to it.

M negatives, similarities s+ and s-, temperature τ. The loss is NT-Xent's (Chen et al. 2020, arXiv:2002.05709,
equation 1) with one number for all negatives:

    p+ = 1 / (1 + M exp((s- - s+) / τ))        loss = -log p+ = softplus(log M + (s- - s+) / τ)
    ∂loss/∂s+ = -(1 - p+) / τ                  each negative: (1 - p+) / (M τ), and all together (1 - p+) / τ

A batch of B samples has 2B views: the anchor itself is no candidate and one is its positive, so M = 2B - 2 and
K = 2B - 1. By Jensen's inequality such a crowd costs at most what a crowd of the same mean similarity and some spread
does. ``laboratory.js`` is the same in the page; a test in a browser holds the two equal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Crowd:
    """One anchor and its candidates. Loss and log K in nats; gradients are of the loss by a similarity."""

    candidates: float
    """K: the positive and M negatives."""
    log_k: float
    """The loss where nothing is told apart."""
    loss: float
    positive_share: float
    """The positive's probability, p+."""
    negative_share: float
    """The probability of all negatives together, 1 - p+."""
    weight: float
    """How many of these negatives weigh as much as the positive: exp((s+ - s-) / τ)."""
    positive_gradient: float
    each_gradient: float
    """On one of the negatives."""
    all_gradient: float
    """On all negatives together; with the positive's it adds up to 0."""


def negatives_of(batch: float) -> float:
    """M = 2B - 2: the views of the other samples of a batch of B."""
    return 2 * batch - 2


def crowd(negatives: float, temperature: float, positive: float, negative: float) -> Crowd:
    """Loss, probabilities and gradients of one anchor whose M negatives are all equally similar.

    Args:
        negatives: M, at least 1.
        temperature: τ, above 0.
        positive: similarity of the positive, s+.
        negative: similarity of every negative, s-.

    Raises:
        ValueError: fewer than one negative, or a temperature that is not above 0.
    """
    if not (negatives >= 1 and temperature > 0):
        raise ValueError(f"{negatives} negatives at temperature {temperature}: needs at least 1, and more than 0")
    margin = math.log(negatives) + (negative - positive) / temperature
    tail = math.exp(-abs(margin))  # in [0, 1], so nothing overflows and small shares keep their digits
    share = (1.0 if margin >= 0 else tail) / (1 + tail)
    return Crowd(
        candidates=negatives + 1,
        log_k=math.log(negatives + 1),
        loss=max(margin, 0.0) + math.log1p(tail),
        positive_share=(tail if margin >= 0 else 1.0) / (1 + tail),
        negative_share=share,
        weight=math.exp((positive - negative) / temperature),
        positive_gradient=-share / temperature,
        each_gradient=share / temperature / negatives,
        all_gradient=share / temperature,
    )


def same_class_share(counts: Sequence[int]) -> float:
    """Σ p²: the probability that two samples, drawn independently, are of one class; 0 where there are none."""
    total = sum(counts)
    return sum((count / total) ** 2 for count in counts) if total else 0.0


def false_negatives(negatives: float, share: float) -> float:
    """How many of M negatives are expected to be of the anchor's class: M Σ p². A mean: a batch has a whole number."""
    return negatives * share
