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

from pipeline.objectives import nt_xent
from pipeline.reduction import pair_similarities
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
"""Share of log K by which their NT-Xent must have fallen below it."""
TEMPERATURE = 0.2
"""Of that NT-Xent, whatever the objective: methods without negatives are held to it too."""


@torch.no_grad()
def look(z: Tensor) -> dict[str, float]:
    """Of z (2n, D) of the fixed pictures in pair order: the columns of a ``Row`` that tell of a collapse.

    NT-Xent of equal vectors is log K, K = 2n - 1 (Chen et al. 2020, eq. 1).
    """
    positive, negative = pair_similarities(z)
    start = math.log(len(z) - 1)
    broken = not bool(z.isfinite().all())
    return {
        "effective_rank": effective_rank(z),
        "fixed_positive_similarity": positive,
        "fixed_negative_similarity": negative,
        "told_apart": 0.0 if broken else 1 - float(nt_xent(z.double(), TEMPERATURE)) / start,
    }


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
    can be seen, or the network has been looked at only before its training."""
    if row.step < 2 * APART or (row.epoch == 0 and row.step < 10 * APART):
        return None
    if row.fixed_negative_similarity > ALIKE:
        of = "views of different pictures of a fixed set"
        return f"all vectors are one: {of} have a mean cosine of {row.fixed_negative_similarity:.3f}"
    if row.effective_rank < FLAT:
        return f"the vectors lie on a line: effective rank {row.effective_rank:.2f} on a fixed set of pictures"
    if row.told_apart < UNTOLD:
        return f"nothing is told apart: NT-Xent of a fixed set of pictures is {row.told_apart:.1%} below log K"
    return None
