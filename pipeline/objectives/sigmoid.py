"""Sigmoid loss (SigLIP): every pair of the batch is its own binary decision, with a learned bias.

Zhai, Mustafa, Kolesnikov, Beyer 2023, arXiv:2303.15343, equation 1: with label +1 for positives and -1 otherwise,

    l_i = sum over candidates of softplus(-label (s_ij / tau + bias))

No normalisation over the batch, so that the loss of a pair does not depend on the others. The bias starts near
-log(negatives per positive) (the paper: -10), or the many negatives swamp the first steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from torch import Tensor

from pipeline.contrast import Contrast, Term, Total, mean_terms
from pipeline.metrics import METRICS, Metric
from pipeline.objectives.inputs import has_both, of_pairs
from pipeline.spec import Spec


class Sigmoid(Spec):
    """A logistic loss a pair, with a learned bias."""

    uses_temperature: ClassVar[bool] = True
    metrics: ClassVar[frozenset[str]] = METRICS
    learns: ClassVar[tuple[str, ...]] = ("bias",)

    kind: Literal["sigmoid"]
    bias: float
    """Where the learned bias starts (the paper: -10)."""

    def starts_at(self, candidates: int) -> float | None:
        """None: it depends on the logit of equal vectors."""
        return None

    def terms(self, contrast: Contrast, learned: Mapping[str, Tensor] | None = None) -> tuple[Term, ...]:
        """One term: the loss of each anchor that has a positive and a negative."""
        return sigmoid_terms(contrast, (learned or {}).get("bias", self.bias))


def sigmoid_terms(contrast: Contrast, bias: Tensor | float) -> tuple[Term, ...]:
    """Logistic loss summed over all candidates of each anchor with both kinds."""
    positives, negatives = contrast.walk(
        Total("softplus", "positives", -1.0, None, -bias), Total("softplus", "negatives", 1.0, None, bias)
    )
    return (Term(positives + negatives, has_both(contrast)),)


def sigmoid(z: Tensor, temperature: float | Tensor, bias: float | Tensor, metric: Metric = "cosine") -> Tensor:
    """Sigmoid loss of a batch of two views: z (2B, D) in pair order, not normalised; a scalar.

    ``bias`` may be a scalar tensor, which then receives a gradient.

    Raises:
        Refusal: as for ``nt_xent``.
    """
    return mean_terms(sigmoid_terms(of_pairs(z, metric, temperature), bias))
