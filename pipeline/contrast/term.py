"""A term of a loss: one value an anchor, which of them count, and how their mean enters the loss.

An objective returns terms and never a mean, because only the training loop knows the anchors of the other ranks: it
sums values and counts over all of them. ``mean_terms`` is that reduction for one process.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Term:
    """weight * outer(mean over the counted anchors of values).

    ``values`` (A,) are finite wherever ``counted`` (A,) is true; elsewhere they are read neither in value nor in
    gradient. ``outer`` is ``identity``, or ``log_mean_exp``: the log of the mean of exp(values).
    """

    values: Tensor
    counted: Tensor
    weight: float = 1.0
    outer: Literal["identity", "log_mean_exp"] = "identity"


def mean_terms(terms: Iterable[Term]) -> Tensor:
    """The loss of one process: a scalar. A term in which no anchor counts is 0 in value and gradient."""
    total: Tensor | None = None
    for term in terms:
        value = _mean(term) if term.weight == 1 else term.weight * _mean(term)
        total = value if total is None else total + value
    if total is None:
        raise ValueError("a loss needs at least one term")
    return total


def _mean(term: Term) -> Tensor:
    count = term.counted.sum()
    if term.outer == "identity":
        return torch.where(term.counted, term.values, 0.0).sum() / count.clamp(min=1)
    some = term.counted.any()
    values = torch.where(term.counted, term.values, -math.inf).masked_fill(~some, 0.0)
    return torch.where(some, values.logsumexp(0) - count.clamp(min=1).to(values.dtype).log(), 0.0)
