"""Triplet loss: a negative must be farther from the anchor than the positive, by a margin.

Weinberger & Saul 2009 (JMLR 10:207), equation 11; Schroff, Kalenichenko, Philbin 2015, arXiv:1503.03832, equation 3:

    l_i = mean over negatives of max(0, s_in - s_ip + margin)

with s a similarity (minus the squared Euclidean distance there). All negatives of the batch, no mining; with several
positives, their mean. A triplet that keeps the margin has no gradient: easy batches stop teaching.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from torch import Tensor

from pipeline.contrast import Contrast, Term, mean_terms
from pipeline.metrics import METRICS, Metric
from pipeline.objectives.inputs import has_both, of_pairs
from pipeline.spec import Refusal, Spec


class Triplet(Spec):
    """Hinge between the positive and every negative."""

    uses_temperature: ClassVar[bool] = False
    metrics: ClassVar[frozenset[str]] = METRICS
    learns: ClassVar[tuple[str, ...]] = ()

    kind: Literal["triplet"]
    margin: Annotated[float, Field(ge=0)]
    """By how much a negative must be less similar than the positive, in units of the metric."""

    def starts_at(self, candidates: int) -> float:
        """The margin: no negative is farther than the positive."""
        return self.margin

    def terms(self, contrast: Contrast, learned: Mapping[str, Tensor] | None = None) -> tuple[Term, ...]:
        """One term: the loss of each anchor that has a positive and a negative."""
        return triplet_terms(contrast, self.margin)


def triplet_terms(contrast: Contrast, margin: float) -> tuple[Term, ...]:
    """The mean hinge over the negatives of each anchor with both."""
    if not (math.isfinite(margin) and margin >= 0):
        raise Refusal(f"margin = {margin}: must be a finite number of at least 0")
    total = contrast.total("relu", "negatives", side=-contrast.positive(), bias=margin)
    return (Term(total / contrast.count("negatives").clamp(min=1), has_both(contrast)),)


def triplet(
    z: Tensor, margin: float, metric: Metric = "squared_euclidean", normalization: Literal["l2"] | None = "l2"
) -> Tensor:
    """Triplet loss of a batch of two views: z (2B, D) in pair order; a scalar.

    Raises:
        Refusal: a negative margin, fewer than two samples, non-finite rows.
    """
    return mean_terms(triplet_terms(of_pairs(z, metric, normalization=normalization), margin))
