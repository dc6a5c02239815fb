"""NT-Xent, also called InfoNCE: tell an anchor's positive from its negatives with a softmax.

Van den Oord, Li, Vinyals 2018, arXiv:1807.03748, equation 4; Chen, Kornblith, Norouzi, Hinton 2020,
arXiv:2002.05709, equation 1:

    l_i = -log( exp(s_ip / tau) / sum over k of exp(s_ik / tau) ),   k over the positive and all negatives

written as softplus(log-sum-exp(negatives) - positive), which does not cancel for easy anchors. log N - l, N being the
number of terms in the denominator, is a lower bound of the mutual information of the two views.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Literal

import torch
from torch import Tensor

from pipeline.contrast import Contrast, Term, mean_terms, one_tile, softplus
from pipeline.metrics import METRICS, Metric
from pipeline.objectives.inputs import has_both, of_pairs, of_queries
from pipeline.spec import Spec


class NTXent(Spec):
    """Softmax over the positive and all negatives."""

    uses_temperature: ClassVar[bool] = True
    metrics: ClassVar[frozenset[str]] = METRICS
    learns: ClassVar[tuple[str, ...]] = ()

    kind: Literal["nt_xent"]

    def starts_at(self, candidates: int) -> float:
        """log K: the positive is one of K equal candidates."""
        return math.log(candidates)

    def terms(self, contrast: Contrast, learned: Mapping[str, Tensor] | None = None) -> tuple[Term, ...]:
        """One term: the loss of each anchor that has a positive and a negative."""
        return nt_xent_terms(contrast)


def nt_xent_terms(contrast: Contrast) -> tuple[Term, ...]:
    """softplus(log-sum-exp(negatives) - positive) for each anchor with both."""
    counted = has_both(contrast)
    negatives = torch.where(counted, contrast.logsumexp("negatives"), 0.0)
    return (Term(softplus(negatives - contrast.positive()), counted),)


def nt_xent(z: Tensor, temperature: float | Tensor, metric: Metric = "cosine") -> Tensor:
    """NT-Xent of a batch of two views, both directions averaged.

    Args:
        z: (2B, D) in pair order: rows 2i and 2i+1 are the two views of sample i; not normalised.
        temperature: > 0, a number or a scalar tensor (which then receives a gradient).
        metric: how vectors are compared.

    Returns:
        A scalar, the mean over the 2B anchors.

    Raises:
        Refusal: fewer than two samples, an odd number of rows, non-finite rows, a temperature that is not above 0.
    """
    direct = one_tile.nt_xent(z, temperature) if metric == "cosine" else None
    return mean_terms(nt_xent_terms(of_pairs(z, metric, temperature))) if direct is None else direct


def info_nce(
    queries: Tensor,
    keys: Tensor,
    temperature: float | Tensor,
    extra_negatives: Tensor | None = None,
    metric: Metric = "cosine",
) -> Tensor:
    """InfoNCE of queries against keys, one direction: key i is the positive of query i, all others are negatives.

    Args:
        queries, keys: (B, D), not normalised.
        temperature: > 0, a number or a scalar tensor.
        extra_negatives: (K, D), negatives of every query (a queue).
        metric: how vectors are compared.

    Returns:
        A scalar, the mean over the queries. log(B + K) minus it bounds the mutual information from below.

    Raises:
        Refusal: shapes that do not fit, no negative, non-finite rows, a temperature that is not above 0.
    """
    return mean_terms(nt_xent_terms(of_queries(queries, keys, metric, temperature, extra_negatives)))


def information_bound(loss: float, candidates: int) -> float:
    """log N - loss in nats: a lower bound of the mutual information of anchor and positive (van den Oord 2018, eq. 9).

    ``candidates`` is N, the terms in the denominator: the positive and its negatives (2B - 1 for NT-Xent).
    """
    return math.log(candidates) - loss
