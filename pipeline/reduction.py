"""From the terms of every rank's anchors to one loss, and what is measured of a batch beside it."""

from __future__ import annotations

import torch
from torch import Tensor

from pipeline import collectives
from pipeline.contrast import Term


def reduced(terms: tuple[Term, ...]) -> tuple[Tensor, float]:
    """The global loss of this rank's terms: (differentiable part of this rank, value over all ranks).

    The mean is over the anchors that count on any rank; if none does, loss and gradient are 0.
    """
    loss: Tensor | float = 0.0
    value = 0.0
    for term in terms:
        counted = collectives.total(term.counted.sum())
        kept = torch.where(term.counted, term.values, torch.zeros_like(term.values))
        divisor = counted.clamp(min=1)
        if term.outer == "identity":
            part = kept.sum() / divisor
            whole = collectives.total(part)
        else:  # log of the mean of exp(values); its gradient over ranks is that of the sum over this rank's anchors
            top = collectives.top(torch.where(term.counted, term.values, -torch.inf).max())
            top = torch.where(counted > 0, top, torch.zeros_like(top))
            # masked before and after exp, so that what does not count has no gradient, not even 0 times infinity
            over = torch.where(term.counted, term.values - top, -torch.inf)
            part = torch.where(term.counted, over.exp(), torch.zeros_like(over)).sum() / divisor
            mean = collectives.total(part)
            whole = torch.where(counted > 0, mean.log() + top, torch.zeros_like(mean))
            part = part / mean.clamp(min=torch.finfo(mean.dtype).tiny)
        loss = loss + term.weight * part
        value += term.weight * float(whole)
    return torch.as_tensor(loss), value


def pair_similarities(z: Tensor) -> tuple[float, float]:
    """Mean cosine of the positives and of the negatives of a batch in pair order, z (2B, D), without a matrix."""
    unit = torch.nn.functional.normalize(z.double(), dim=1)
    positive = float((unit[0::2] * unit[1::2]).sum(1).mean())
    rows = len(unit)
    everything = float(unit.sum(0).square().sum()) - float(unit.square().sum())  # ordered pairs without the diagonal
    negatives = rows * (rows - 2)
    return positive, (everything - rows * positive) / negatives if negatives else 0.0
