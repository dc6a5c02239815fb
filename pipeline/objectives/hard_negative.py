"""Contrastive loss with hard negatives: the debiased loss with negatives reweighted towards the anchor.

Robinson, Chuang, Sra, Jegelka 2021, arXiv:2010.04592, equations 4 to 6: negatives are weighted by
exp(hardness * logit), self-normalised over the N negatives, so that their sum becomes

    S = N * sum exp((1 + hardness) logit) / sum exp(hardness * logit)

Hardness 0 and prior 0 are NT-Xent. It guards against a batch whose negatives are all easy; without a prior it also
weighs up false negatives, which are the hardest of all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from pipeline.contrast import Contrast, LogSumExp, Term, mean_terms, softplus
from pipeline.objectives.debias import Prior, log_true_negatives, number
from pipeline.objectives.inputs import has_both, of_pairs, require_metric
from pipeline.spec import Refusal, Spec


class HardNegative(Spec):
    """Softmax over the positive and negatives weighted towards the anchor, less their expected false ones."""

    uses_temperature: ClassVar[bool] = True
    metrics: ClassVar[frozenset[str]] = frozenset({"cosine"})
    learns: ClassVar[tuple[str, ...]] = ()

    kind: Literal["hard_negative"]
    prior: Prior
    """Probability that another sample is of the anchor's class (0.1 for ten balanced classes), or {column: LABEL}."""
    hardness: Annotated[float, Field(ge=0)]
    """Concentration of the weights (beta); 0 weighs all negatives alike."""

    def starts_at(self, candidates: int) -> float:
        """log K: the positive is one of K equal candidates."""
        return math.log(candidates)

    def terms(self, contrast: Contrast, learned: Mapping[str, Tensor] | None = None) -> tuple[Term, ...]:
        """One term: the loss of each anchor that has a positive and a negative."""
        return hard_negative_terms(contrast, number(self.prior), self.hardness)


def hard_negative_terms(contrast: Contrast, prior: float, hardness: float) -> tuple[Term, ...]:
    """softplus(log G - positive) for each anchor with both, G over reweighted negatives."""
    require_metric(contrast, "hard_negative", HardNegative.metrics)
    if not (math.isfinite(hardness) and hardness >= 0):
        raise Refusal(f"hardness = {hardness}: must be a finite number of at least 0")
    counted = has_both(contrast)
    weighted, weights, number, positives = contrast.walk(
        LogSumExp("negatives", 1 + hardness),
        LogSumExp("negatives", hardness),
        LogSumExp("negatives", 0.0),
        LogSumExp("positives"),
    )
    weighted, weights, number = (torch.where(counted, each, 0.0) for each in (weighted, weights, number))
    log_sum = weighted - weights + number
    mean = positives - contrast.count("positives").clamp(min=1).to(positives.dtype).log()
    mean = torch.where(counted, mean, 0.0)
    true = log_true_negatives(contrast, log_sum, mean, prior)
    return (Term(softplus(true - contrast.positive()), counted),)


def hard_negative(z: Tensor, temperature: float | Tensor, prior: float, hardness: float) -> Tensor:
    """Hard-negative loss of a batch of two views: z (2B, D) in pair order, compared by cosine; a scalar.

    Raises:
        Refusal: a prior outside [0, 1), a negative hardness; otherwise as for ``nt_xent``.
    """
    return mean_terms(hard_negative_terms(of_pairs(z, "cosine", temperature), prior, hardness))
