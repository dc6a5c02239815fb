"""Decoupled contrastive loss: NT-Xent without the positive in the denominator.

Yeh, Hong, Hsu, Liu, Chen, LeCun 2021, arXiv:2110.06848, equation 6:

    l_i = -s_ip / tau + log sum over negatives of exp(s_in / tau)

In NT-Xent an easy positive shrinks the gradient of every negative; here it does not, so that small batches learn. The
price: the loss has no floor at 0, and NT-Xent = softplus(this).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Literal

import torch
from torch import Tensor

from pipeline.contrast import Contrast, Term, mean_terms
from pipeline.metrics import METRICS, Metric
from pipeline.objectives.inputs import has_both, of_pairs
from pipeline.spec import Spec


class Decoupled(Spec):
    """Log-sum-exp of the negatives minus the positive."""

    uses_temperature: ClassVar[bool] = True
    metrics: ClassVar[frozenset[str]] = METRICS
    learns: ClassVar[tuple[str, ...]] = ()

    kind: Literal["decoupled"]

    def starts_at(self, candidates: int) -> float | None:
        """log of the negatives; the positive is not among them."""
        return math.log(candidates - 1) if candidates > 1 else None

    def terms(self, contrast: Contrast, learned: Mapping[str, Tensor] | None = None) -> tuple[Term, ...]:
        """One term: the loss of each anchor that has a positive and a negative."""
        return decoupled_terms(contrast)


def decoupled_terms(contrast: Contrast) -> tuple[Term, ...]:
    """log-sum-exp(negatives) - positive for each anchor with both."""
    counted = has_both(contrast)
    negatives = torch.where(counted, contrast.logsumexp("negatives"), 0.0)
    return (Term(negatives - contrast.positive(), counted),)


def decoupled(z: Tensor, temperature: float | Tensor, metric: Metric = "cosine") -> Tensor:
    """Decoupled loss of a batch of two views: z (2B, D) in pair order, not normalised; a scalar.

    Raises:
        Refusal: as for ``nt_xent``.
    """
    return mean_terms(decoupled_terms(of_pairs(z, metric, temperature)))
