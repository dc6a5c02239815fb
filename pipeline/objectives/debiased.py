"""Debiased contrastive loss: NT-Xent corrected for negatives that are of the anchor's class.

Chuang, Robinson, Lin, Torralba, Jegelka 2020, arXiv:2007.00224, equation 8, one positive (M = 1) a further view:

    l_i = -log( exp(positive) / (exp(positive) + G) ) = softplus(log G - positive)

Ten balanced classes: prior 0.1. It guards against pushing apart samples that belong together; a prior that is too
large removes true negatives and ends at the clamp, where negatives have no gradient.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Literal

import torch
from torch import Tensor

from pipeline.contrast import Contrast, LogSumExp, Term, mean_terms, softplus
from pipeline.objectives.debias import Prior, log_true_negatives, number
from pipeline.objectives.inputs import has_both, of_pairs, require_metric
from pipeline.spec import Spec


class Debiased(Spec):
    """Softmax over the positive and the negatives less their expected false ones."""

    uses_temperature: ClassVar[bool] = True
    metrics: ClassVar[frozenset[str]] = frozenset({"cosine"})
    learns: ClassVar[tuple[str, ...]] = ()

    kind: Literal["debiased"]
    prior: Prior
    """Probability that another sample is of the anchor's class (0.1 for ten balanced classes), or {column: LABEL}."""

    def starts_at(self, candidates: int) -> float:
        """log K: the positive is one of K equal candidates."""
        return math.log(candidates)

    def terms(self, contrast: Contrast, learned: Mapping[str, Tensor] | None = None) -> tuple[Term, ...]:
        """One term: the loss of each anchor that has a positive and a negative."""
        return debiased_terms(contrast, number(self.prior))


def debiased_terms(contrast: Contrast, prior: float) -> tuple[Term, ...]:
    """softplus(log G - positive) for each anchor with both."""
    require_metric(contrast, "debiased", Debiased.metrics)
    counted = has_both(contrast)
    negatives, positives = contrast.walk(LogSumExp("negatives"), LogSumExp("positives"))
    mean = positives - contrast.count("positives").clamp(min=1).to(positives.dtype).log()
    negatives, mean = torch.where(counted, negatives, 0.0), torch.where(counted, mean, 0.0)
    true = log_true_negatives(contrast, negatives, mean, prior)
    return (Term(softplus(true - contrast.positive()), counted),)


def debiased(z: Tensor, temperature: float | Tensor, prior: float) -> Tensor:
    """Debiased loss of a batch of two views: z (2B, D) in pair order, compared by cosine; a scalar.

    Raises:
        Refusal: a prior outside [0, 1); otherwise as for ``nt_xent``.
    """
    return mean_terms(debiased_terms(of_pairs(z, "cosine", temperature), prior))
