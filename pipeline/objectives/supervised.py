"""Supervised contrastive loss: every sample of the anchor's class is a positive.

Khosla, Teterwak, Wang, Sarna, Tian, Isola, Maschinot, Liu, Krishnan 2020, arXiv:2004.11362, equation 2 (L_out):

    l_i = mean over positives p of -log( exp(s_ip / tau) / sum over all candidates of exp(s_ik / tau) )

With unique labels it is NT-Xent. It wants a sampler whose positives share a label (``same_label``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Literal

import torch
from torch import Tensor

from pipeline.contrast import Codes, Contrast, LogSumExp, Relation, Term, Total, mean_terms, softplus
from pipeline.metrics import METRICS, Metric
from pipeline.objectives.inputs import has_both
from pipeline.spec import Refusal, Spec


class Supervised(Spec):
    """Softmax over all candidates, averaged over the positives."""

    uses_temperature: ClassVar[bool] = True
    metrics: ClassVar[frozenset[str]] = METRICS
    learns: ClassVar[tuple[str, ...]] = ()

    kind: Literal["supervised"]

    def starts_at(self, candidates: int) -> float:
        """log K: each positive is one of K equal candidates."""
        return math.log(candidates)

    def terms(self, contrast: Contrast, learned: Mapping[str, Tensor] | None = None) -> tuple[Term, ...]:
        """One term: the loss of each anchor that has a positive and a negative."""
        return supervised_terms(contrast)


def supervised_terms(contrast: Contrast) -> tuple[Term, ...]:
    """softplus(lse(negatives) - lse(positives)) + lse(positives) - mean positive, for each anchor with both."""
    counted = has_both(contrast)
    negatives, positives, total = contrast.walk(
        LogSumExp("negatives"), LogSumExp("positives"), Total("identity", "positives")
    )
    negatives, positives = torch.where(counted, negatives, 0.0), torch.where(counted, positives, 0.0)
    mean = total / contrast.count("positives").clamp(min=1)
    return (Term(softplus(negatives - positives) + (positives - mean), counted),)


def supervised_contrastive(z: Tensor, labels: Tensor, temperature: float | Tensor, metric: Metric = "cosine") -> Tensor:
    """Supervised contrastive loss: z (N, D), not normalised, of any number of views; labels (N,) integers; a scalar.

    An anchor whose class has no other row, or which has no row of another class, is not counted.

    Raises:
        Refusal: labels that do not fit, fewer than two rows, non-finite rows, a temperature that is not above 0.
    """
    if z.ndim != 2 or labels.shape != z.shape[:1] or labels.is_floating_point():
        raise Refusal(f"labels {tuple(labels.shape)} for z {tuple(z.shape)}: must be one integer per row")
    if len(z) < 2:
        raise Refusal(f"z has {len(z)} rows: at least 2 are needed")
    row = torch.arange(len(z), device=z.device)
    relation = Relation(Codes(row, row), Codes(labels, labels))
    return mean_terms(supervised_terms(Contrast.of(z, relation, metric=metric, temperature=temperature)))
