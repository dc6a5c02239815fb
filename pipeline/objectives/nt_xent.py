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
from torch.nn import functional

from pipeline.contrast import Codes, Contrast, LogSumExp, Relation, Term, mean_terms
from pipeline.metrics import METRICS, Metric
from pipeline.spec import Refusal, Spec


class NTXent(Spec):
    """Softmax over the positive and all negatives."""

    uses_temperature: ClassVar[bool] = True
    metrics: ClassVar[frozenset[str]] = METRICS

    kind: Literal["nt_xent"]

    def terms(self, contrast: Contrast, learned: Mapping[str, Tensor] | None = None) -> tuple[Term, ...]:
        """One term: the loss of each anchor that has a positive and a negative."""
        return nt_xent_terms(contrast)


def nt_xent_terms(contrast: Contrast) -> tuple[Term, ...]:
    """softplus(log-sum-exp(negatives) - positive) for each anchor with both."""
    counted = (contrast.count("positives") > 0) & (contrast.count("negatives") > 0)
    (negatives,) = contrast.walk(LogSumExp("negatives"))
    difference = torch.where(counted, negatives, 0.0) - contrast.positive()
    return (Term(functional.softplus(difference), counted),)


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
    if z.ndim != 2 or len(z) % 2:
        raise Refusal(f"z has shape {tuple(z.shape)}: must be (2B, D), rows 2i and 2i+1 the views of sample i")
    if len(z) < 4:
        raise Refusal(f"z has {len(z) // 2} samples: at least 2 are needed, or there are no negatives")
    relation = Relation.pair_order(len(z), z.device)
    return mean_terms(nt_xent_terms(Contrast.of(z, relation, metric=metric, temperature=temperature)))


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
    if queries.ndim != 2 or queries.shape != keys.shape:
        raise Refusal(f"queries {tuple(queries.shape)} and keys {tuple(keys.shape)}: must both be (B, D)")
    candidates = keys if extra_negatives is None else torch.cat([keys, extra_negatives.to(keys.dtype)])
    if len(candidates) < 2:
        raise Refusal("1 query without extra negatives: at least 2 candidates are needed")
    row = torch.arange(len(candidates), device=keys.device)
    anchor = row[: len(queries)]
    relation = Relation(Codes(-1 - anchor, row), Codes(anchor, row))  # no query is its own candidate
    contrast = Contrast.of(queries, relation, metric=metric, temperature=temperature, candidates=candidates)
    return mean_terms(nt_xent_terms(contrast))


def information_bound(loss: float, candidates: int) -> float:
    """log N - loss in nats: a lower bound of the mutual information of anchor and positive (van den Oord 2018, eq. 9).

    ``candidates`` is N, the terms in the denominator: the positive and its negatives (2B - 1 for NT-Xent).
    """
    return math.log(candidates) - loss
