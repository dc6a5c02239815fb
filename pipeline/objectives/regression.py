"""Regression of the target's vector by the online network's prediction: positives alone, no negatives.

    squared_distance: |p/|p| - k/|k||^2 = 2 - 2 cos    Grill et al. 2020 (BYOL), arXiv:2006.07733, equation 2
    negative_cosine:  -cos                             Chen & He 2021 (SimSiam), arXiv:2011.10566, equations 1 and 2

Both are the mean over anchors of both views, so half the sum that BYOL writes. Nothing in the value forbids equal
vectors for all samples; what keeps them apart is the predictor and the target without a gradient.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from torch import Tensor

from pipeline.contrast import Contrast, Term, mean_terms
from pipeline.objectives.inputs import of_pairs, require_metric
from pipeline.spec import Refusal, Spec

Form = Literal["squared_distance", "negative_cosine"]


class Regression(Spec):
    """Closeness of positives, without anything that spreads the rest."""

    uses_temperature: ClassVar[bool] = False
    metrics: ClassVar[frozenset[str]] = frozenset({"cosine"})
    learns: ClassVar[tuple[str, ...]] = ()

    kind: Literal["regression"]
    form: Form
    """squared_distance (BYOL, 0 to 4) or negative_cosine (SimSiam, -1 to 1): half of it less 1."""

    def starts_at(self, candidates: int) -> float | None:
        """None: equal vectors are its least value, and no start."""
        return None

    def terms(self, contrast: Contrast, learned: Mapping[str, Tensor] | None = None) -> tuple[Term, ...]:
        """One term: the anchors that have a positive."""
        return regression_terms(contrast, self.form)


def regression_terms(contrast: Contrast, form: Form) -> tuple[Term, ...]:
    """The mean distance of each anchor to its positives."""
    require_metric(contrast, "regression", Regression.metrics)
    if form not in ("squared_distance", "negative_cosine"):
        raise Refusal(f"form = {form}: must be squared_distance or negative_cosine")
    positives = contrast.count("positives")
    cosine = contrast.total("identity", "positives") / positives.clamp(min=1)
    return (Term(2 - 2 * cosine if form == "squared_distance" else -cosine, positives > 0),)


def regression(z: Tensor, form: Form = "squared_distance") -> Tensor:
    """Regression of each view by the other: z (2B, D) in pair order, not normalised; a scalar.

    On vectors that are all trained it collapses: give predictions and detached keys to ``Contrast`` instead.

    Raises:
        Refusal: fewer than two samples, an odd number of rows, non-finite rows.
    """
    return mean_terms(regression_terms(of_pairs(z, "cosine"), form))
