"""Siamese margin loss: positives are pulled together, negatives pushed until they are a margin apart.

Hadsell, Chopra, LeCun 2006 (CVPR), equation 4, with D the Euclidean distance:

    l = 1/2 D^2 for a positive pair,   1/2 max(0, margin - D)^2 for a negative pair

Two terms: the mean over positive pairs and the mean over negative pairs of each anchor, so that the many negatives do
not drown the positives. No temperature; without normalisation the margin sets the scale of the space.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from torch import Tensor

from pipeline.contrast import Contrast, Term, Total, mean_terms
from pipeline.objectives.inputs import of_pairs, require_metric
from pipeline.spec import Refusal, Spec


class Margin(Spec):
    """Squared distance of positives, squared hinge of negatives."""

    uses_temperature: ClassVar[bool] = False
    metrics: ClassVar[frozenset[str]] = frozenset({"euclidean"})
    learns: ClassVar[tuple[str, ...]] = ()

    kind: Literal["margin"]
    margin: Annotated[float, Field(ge=0)]
    """Distance beyond which a negative is left alone, in units of z."""

    def starts_at(self, candidates: int) -> float:
        """Half the squared margin: positives and negatives are at distance 0."""
        return self.margin**2 / 2

    def terms(self, contrast: Contrast, learned: Mapping[str, Tensor] | None = None) -> tuple[Term, ...]:
        """Two terms: anchors that have a positive, and anchors that have a negative."""
        return margin_terms(contrast, self.margin)


def margin_terms(contrast: Contrast, margin: float) -> tuple[Term, ...]:
    """Half the mean squared distance of positives; half the mean squared hinge of negatives."""
    require_metric(contrast, "margin", Margin.metrics)
    if not (math.isfinite(margin) and margin >= 0):
        raise Refusal(f"margin = {margin}: must be a finite number of at least 0")
    pull, push = contrast.walk(
        Total("squared_relu", "positives", -1.0), Total("squared_relu", "negatives", 1.0, None, margin)
    )
    counts = contrast.count("positives"), contrast.count("negatives")
    return tuple(
        Term(total / (2 * count.clamp(min=1)), count > 0) for total, count in zip((pull, push), counts, strict=True)
    )


def siamese_margin(z: Tensor, margin: float, normalization: Literal["l2"] | None = None) -> Tensor:
    """Siamese margin loss of a batch of two views: z (2B, D) in pair order; a scalar.

    Raises:
        Refusal: a negative margin, fewer than two samples, non-finite rows.
    """
    return mean_terms(margin_terms(of_pairs(z, "euclidean", normalization=normalization), margin))
