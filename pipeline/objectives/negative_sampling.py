"""Skip-gram negative sampling: each pair judged on its own by a logistic function of the inner product.

Mikolov, Sutskever, Chen, Corrado, Dean 2013, arXiv:1310.4546, equation 4 (to be minimised here):

    l_i = softplus(-u_i.v_p) + sum over negatives of softplus(u_i.v_n)

Its optimum is pointwise mutual information minus log of the number of negatives (Levy & Goldberg 2014), not a
normalised density: NCE with the noise density left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from torch import Tensor

from pipeline.contrast import Contrast, Term, Total, mean_terms
from pipeline.objectives.inputs import has_both, of_queries, require_metric
from pipeline.spec import Spec


class NegativeSampling(Spec):
    """Logistic loss of the inner product, positives against negatives."""

    uses_temperature: ClassVar[bool] = False
    metrics: ClassVar[frozenset[str]] = frozenset({"dot"})
    learns: ClassVar[tuple[str, ...]] = ()

    kind: Literal["negative_sampling"]

    def starts_at(self, candidates: int) -> float | None:
        """None: it depends on the logit of equal vectors."""
        return None

    def terms(self, contrast: Contrast, learned: Mapping[str, Tensor] | None = None) -> tuple[Term, ...]:
        """One term: the loss of each anchor that has a positive and a negative."""
        return negative_sampling_terms(contrast)


def negative_sampling_terms(contrast: Contrast) -> tuple[Term, ...]:
    """Logistic loss of the positives (their mean) plus that of the negatives (their sum)."""
    require_metric(contrast, "negative_sampling", NegativeSampling.metrics)
    data, noise = contrast.walk(Total("softplus", "positives", -1.0), Total("softplus", "negatives"))
    return (Term(data / contrast.count("positives").clamp(min=1) + noise, has_both(contrast)),)


def negative_sampling(queries: Tensor, keys: Tensor, negatives: Tensor | None = None) -> Tensor:
    """Skip-gram negative sampling: queries and keys (B, D), key i the positive of query i; a scalar.

    ``negatives`` (K, D) are sampled for every query; None takes the other keys of the batch.

    Raises:
        Refusal: shapes that do not fit, no negative, non-finite rows.
    """
    contrast = of_queries(queries, keys, "dot", None, negatives, only_extra=negatives is not None)
    return mean_terms(negative_sampling_terms(contrast))
