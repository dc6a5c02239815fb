"""The share of false negatives taken out of a sum over negatives.

Chuang, Robinson, Lin, Torralba, Jegelka 2020, arXiv:2007.00224, equations 7 and 8: with prior the probability that a
"negative" is of the anchor's class, N negatives, and S the sum of their exponentials,

    G = max( (S - prior N exp(positive)) / (1 - prior),  N exp(-1 / tau) )

the clamp being the least value that N negatives can have under the cosine.

Shapes: A anchors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

import torch
from pydantic import Discriminator, Field, Tag
from torch import Tensor

from pipeline.contrast import Contrast
from pipeline.spec import Refusal, Spec


class ClassPrior(Spec):
    """The probability that two training samples are of one class, by the data card."""

    column: str
    """The label column of the classes."""


def _which(value: Any) -> str:
    return "column" if isinstance(value, dict | ClassPrior) else "number"


Prior = Annotated[
    Annotated[float, Field(ge=0, lt=1), Tag("number")] | Annotated[ClassPrior, Tag("column")], Discriminator(_which)
]
"""A number, or {column: NAME}, for which the training puts the number that the data has."""


def class_prior(counts: Sequence[int]) -> float:
    """The probability that two samples, drawn apart, are of one class: the sum of the squared shares of the classes."""
    total = sum(counts)
    return sum((count / total) ** 2 for count in counts)


def number(prior: float | ClassPrior) -> float:
    """The number of a prior. Raises Refusal where it is still to be read from the data."""
    if isinstance(prior, ClassPrior):
        raise Refusal(f"prior = {{column: {prior.column}}}: not read from the data yet")
    return prior


def log_true_negatives(contrast: Contrast, log_sum: Tensor, positive: Tensor, prior: float) -> Tensor:
    """log G: (A,), from log S (A,) and the log of the mean exponential of the positives (A,).

    Raises:
        Refusal: a prior outside [0, 1).
    """
    if not 0 <= prior < 1:
        raise Refusal(f"prior = {prior}: must lie in [0, 1); 0 takes every negative for a true one")
    if prior == 0:
        return log_sum
    count = contrast.logsumexp("negatives", 0.0)  # log N, or with offsets the log of their measure
    count = torch.where(count > -math.inf, count, 0.0)
    share = math.log(prior) + count + positive - log_sum  # log of what the false negatives are of S
    left = share < 0
    safe = torch.where(left, share, -1.0)
    # log(1 - exp(share)): expm1 keeps the digits near 0, log1p far from it
    near = safe > -math.log(2)
    kept = torch.where(
        near,
        torch.where(near, -torch.expm1(torch.where(near, safe, -0.5)), 1.0).log(),
        torch.log1p(-torch.where(near, -1.0, safe).exp()),
    )
    estimate = torch.where(left, log_sum + kept - math.log1p(-prior), -math.inf)
    least = count - 1 / contrast.temperature
    return torch.where(estimate > least, torch.where(left, estimate, 0.0), least)
