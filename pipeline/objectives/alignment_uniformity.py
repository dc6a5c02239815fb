"""Alignment and uniformity: positives close, everything else spread over the sphere.

Wang & Isola 2020, arXiv:2005.10242, section 4.1, with squared distances on the unit sphere (alpha = 2):

    alignment  = mean over positive pairs of |x - y|^2
    uniformity = log of the mean over independent pairs of exp(-t |x - y|^2)

Uniformity is the log of one mean over all pairs, so its term is reduced as such over ranks too. The two limits of
NT-Xent for many negatives, set against each other by hand instead of by the temperature.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from pipeline.contrast import Contrast, LogSumExp, Term, Total, mean_terms
from pipeline.objectives.inputs import of_pairs, require_metric
from pipeline.spec import Refusal, Spec


class AlignmentUniformity(Spec):
    """Squared distance of positives plus the log mean Gaussian potential of the rest."""

    uses_temperature: ClassVar[bool] = False
    metrics: ClassVar[frozenset[str]] = frozenset({"cosine", "squared_euclidean"})
    learns: ClassVar[tuple[str, ...]] = ()

    kind: Literal["alignment_uniformity"]
    t: Annotated[float, Field(gt=0)]
    """Sharpness of the potential (the paper: 2)."""
    weight: Annotated[float, Field(ge=0)]
    """Weight of uniformity beside alignment (the paper: 1)."""

    def starts_at(self, candidates: int) -> float:
        """0: every distance is 0. Training goes below it."""
        return 0.0

    def terms(self, contrast: Contrast, learned: Mapping[str, Tensor] | None = None) -> tuple[Term, ...]:
        """Two terms: anchors that have a positive, and anchors that have a negative."""
        return alignment_uniformity_terms(contrast, self.t, self.weight)


def alignment_uniformity_terms(contrast: Contrast, t: float, weight: float) -> tuple[Term, ...]:
    """The alignment of each anchor, and the log mean potential over its negatives (a log_mean_exp over anchors)."""
    require_metric(contrast, "alignment_uniformity", AlignmentUniformity.metrics)
    if not (math.isfinite(t) and t > 0 and math.isfinite(weight) and weight >= 0):
        raise Refusal(f"t = {t}, weight = {weight}: t must be above 0 and weight at least 0")
    # on the unit sphere |x - y|^2 = 2 - 2 cos
    times, plus = (2.0, 2.0) if contrast.metric == "cosine" else (1.0, 0.0)
    positives, negatives = contrast.count("positives"), contrast.count("negatives")
    total, potential = contrast.walk(Total("identity", "positives"), LogSumExp("negatives", t * times))
    spread = torch.where(negatives > 0, potential, 0.0) - negatives.clamp(min=1).to(potential.dtype).log() - t * plus
    return (
        Term(plus - times * total / positives.clamp(min=1), positives > 0),
        Term(spread, negatives > 0, weight, "log_mean_exp"),
    )


def alignment_uniformity(z: Tensor, t: float = 2.0, weight: float = 1.0) -> Tensor:
    """Alignment plus weight times uniformity of two views: z (2B, D) in pair order, normalised here; a scalar.

    Raises:
        Refusal: t or weight out of range, fewer than two samples, non-finite rows.
    """
    return mean_terms(alignment_uniformity_terms(of_pairs(z, "squared_euclidean", normalization="l2"), t, weight))
