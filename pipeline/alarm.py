"""Signs of a collapse while there is still time: a few numbers of a fixed set of pictures, looked at now and then.

They are made in evaluation mode without a gradient, and of views that no epoch has, so training is the same with and
without them. effective rank = exp(entropy of the covariance's eigenvalues as shares), Roy & Vetterli, "The effective
rank", EUSIPCO 2007. Dimensions that collapse under a contrastive loss too: Jing et al. 2022, arXiv:2110.09348.

n rows, D dimensions.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pipeline.state import Row

APART = 100
"""Steps between two looks; the first is at the untrained network."""
PICTURES = 256
"""Of the training split that are looked at."""
VIEWS_EPOCH = -2
"""Of their views: an epoch that neither training nor evaluation has."""
ALIKE = 0.98
"""Mean cosine of views of different pictures above which all vectors are one."""
FLAT = 2.0
"""Effective rank below which they lie on a line."""
UNTOLD = 0.01
"""Share of the loss at which nothing is told apart that must be gained after the first epoch."""


@torch.no_grad()
def effective_rank(z: Tensor) -> float:
    """Of vectors z (n, D) scaled to length 1: from 1 (all on a line) to D; 0 where they are one point or broken."""
    unit = torch.nn.functional.normalize(z.double(), dim=1)
    if not bool(unit.isfinite().all()):
        return 0.0
    centred = unit - unit.mean(0)
    variances = torch.linalg.svdvals(centred).square()
    total = float(variances.sum())
    if total <= 1e-12 * len(z):
        return 0.0
    shares = variances / total
    return math.exp(-float(torch.special.xlogy(shares, shares).sum()))


def alarm(row: Row) -> str | None:
    """What is wrong after the first epoch, or its first thousand steps, in a clause with its numbers; None: nothing
    can be seen."""
    if row.epoch == 0 and row.step < 10 * APART:
        return None
    if row.negative_similarity > ALIKE:
        return f"all vectors are one: views of different pictures have a mean cosine of {row.negative_similarity:.3f}"
    if row.effective_rank < FLAT and row.step >= 2 * APART:
        return f"the vectors lie on a line: effective rank {row.effective_rank:.2f} on a fixed set of pictures"
    gained = row.starts_at - row.loss
    if gained < UNTOLD * abs(row.starts_at):  # not where it has no start: that is no number
        return f"nothing is told apart: the loss is {row.loss:.3f}, and {row.starts_at:.3f} where all are alike"
    return None
