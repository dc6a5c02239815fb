"""How far a picture moves in a space when it is transformed, in units of how far pictures lie apart; and whether its
transformed self still finds it.

Movement is the median distance of f(t(x)) from f(x), over the pictures that t changes, divided by the median distance
of f(x) from f(y): 0 is perfect invariance, 1 is as far as another picture. Rows are scaled to length one, as everywhere
where directions are compared. The interval is a bootstrap of pictures, both medians on the same resample: a median of
pairs is that of the pairs of the resample (Hodges and Lehmann's kind of statistic; Efron and Tibshirani 1993).

n pictures, D dimensions, R resamples.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pipeline.check.interval import Resampled

CHUNK = 40  # resamples of pairs at a time


def spacing(rows: Tensor, resampled: Resampled) -> Tensor:
    """Median distance between different rows (n, D) of length one, for all rows and each resample: (R + 1,)."""
    first, second = torch.triu_indices(len(rows), len(rows), 1).unbind(0)
    distances = _distances(rows)[first, second]
    order = distances.argsort()
    first, second, ranked = first[order], second[order], distances[order]
    medians = []
    for start in range(0, len(resampled.weights), CHUNK):
        some = resampled.weights[start : start + CHUNK].float()
        medians.append(_median(ranked, some[:, first] * some[:, second]))
    return torch.cat(medians)


def movement(plain: Tensor, moved: Tensor, changed: Tensor, apart: Tensor, resampled: Resampled) -> Tensor:
    """Median distance from plain to moved rows (n, D), in units of ``apart`` (R + 1,): (R + 1,).

    Args:
        changed: int64, the pictures that were changed at all.
        apart: ``spacing`` of the plain rows.
    """
    distances = (plain[changed] - moved[changed]).double().norm(dim=1)
    order = distances.argsort()
    weights = resampled.weights[:, changed[order]]
    weights = torch.where(weights.sum(1, keepdim=True) > 0, weights, 1.0)  # a resample without any changed picture
    return _median(distances[order], weights.float()) / apart


def retrieved(plain: Tensor, moved: Tensor, changed: Tensor) -> Tensor:
    """Whether the nearest of all plain rows (n, D) is a moved row's own: (changed,) bool; a tie is none."""
    similarity = moved[changed] @ plain.T
    own = similarity.gather(1, changed[:, None])
    similarity.scatter_(1, changed[:, None], -torch.inf)
    return own[:, 0] > similarity.max(1).values


def _median(ranked: Tensor, weights: Tensor) -> Tensor:
    """Weighted lower median of rising values (p,), by rows of whole weights (r, p) float32, exact to 2**24: (r,)."""
    passed = weights.cumsum(1)
    reached = torch.searchsorted(passed, passed[:, -1:] / 2)
    return ranked[reached[:, 0].clamp(max=len(ranked) - 1)].double()


def _distances(rows: Tensor) -> Tensor:
    return torch.cdist(rows.double(), rows.double())
