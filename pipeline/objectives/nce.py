"""Noise-contrastive estimation: a logistic classifier of data against noise whose density is known.

Gutmann & Hyvärinen 2010 (AISTATS, PMLR 9:297), equations 2 and 3, in the form for nu noise samples a data sample:

    G(u) = log p_model(u) - log p_noise(u) - log nu,   log p_model = logit + normaliser
    l_i  = softplus(-G(positive)) + sum over nu negatives of softplus(G(negative))

The offset of a candidate is minus its log noise density. The normaliser (minus the log partition function) is
learned: unlike a softmax, the fitted model is normalised by itself. Without an offset the noise density is taken as
constant, and the normaliser absorbs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import torch
from torch import Tensor

from pipeline.contrast import Contrast, Term, Total, mean_terms
from pipeline.metrics import METRICS, Metric
from pipeline.objectives.inputs import has_both, of_queries
from pipeline.spec import Spec


class NCE(Spec):
    """Data against noise, with a learned normaliser."""

    uses_temperature: ClassVar[bool] = True
    metrics: ClassVar[frozenset[str]] = METRICS
    learns: ClassVar[tuple[str, ...]] = ("normaliser",)

    kind: Literal["nce"]
    normaliser: float
    """Where the learned normaliser starts, in nats."""

    def starts_at(self, candidates: int) -> float | None:
        """None: it depends on the logit of equal vectors."""
        return None

    def terms(self, contrast: Contrast, learned: Mapping[str, Tensor] | None = None) -> tuple[Term, ...]:
        """One term: the loss of each anchor that has a positive and a negative."""
        return nce_terms(contrast, (learned or {}).get("normaliser", self.normaliser))


def nce_terms(contrast: Contrast, normaliser: Tensor | float) -> tuple[Term, ...]:
    """Logistic loss of the positives (their mean) plus that of the noise (its sum), for each anchor with both."""
    counted = has_both(contrast)
    ratio = contrast.count("negatives").clamp(min=1).to(contrast.anchors.dtype).log()
    data, noise = contrast.walk(
        Total("softplus", "positives", -1.0, ratio, -normaliser),
        Total("softplus", "negatives", 1.0, -ratio, normaliser),
    )
    return (Term(data / contrast.count("positives").clamp(min=1) + noise, counted),)


def nce(
    queries: Tensor,
    keys: Tensor,
    noise: Tensor,
    temperature: float | Tensor,
    normaliser: float | Tensor = 0.0,
    key_log_density: Tensor | None = None,
    noise_log_density: Tensor | None = None,
    metric: Metric = "dot",
) -> Tensor:
    """NCE of queries with their keys against noise samples; a scalar, the mean over the queries.

    Args:
        queries, keys: (B, D); key i is the data sample of query i, other keys are not looked at.
        noise: (K, D), the noise samples of every query.
        temperature: > 0.
        normaliser: a number or a scalar tensor, in nats; receives a gradient.
        key_log_density, noise_log_density: (B,) and (K,), log density of keys and noise under the noise distribution.
        metric: how vectors are compared.

    Raises:
        Refusal: shapes that do not fit, non-finite rows, a temperature that is not above 0.
    """
    contrast = of_queries(
        queries,
        keys,
        metric,
        temperature,
        noise,
        offset=None if key_log_density is None else -key_log_density,
        extra_offset=None if noise_log_density is None else -noise_log_density,
        only_extra=True,
    )
    if isinstance(normaliser, torch.Tensor):
        normaliser = normaliser.to(contrast.anchors.dtype)
    return mean_terms(nce_terms(contrast, normaliser))
