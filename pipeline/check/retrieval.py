"""Finding the partner view in a batch of 256: by a plain distance, or by one that was learned from training pairs.

Legend: n pictures, two views each, D numbers a view.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from pipeline.check.interval import Figure, Resampled, figure
from pipeline.check.reading import CONSTANT

BATCH = 256
SHRINK = 1e-2  # of the within-pair covariance towards a multiple of the identity


@dataclass(frozen=True)
class Matched:
    """How often the nearest other view in the batch is the partner."""

    share: Figure
    """above chance: (accuracy - chance) / (1 - chance)"""
    accuracy: float
    chance: float
    count: int
    hits: Tensor
    """(n,) bool"""


def match(one: Tensor, other: Tensor, resampled: Resampled | None = None) -> Matched:
    """Retrieve ``other`` (n, D) from ``one`` (n, D), batch by batch; a rest that fills no batch joins the last."""
    count = len(one)
    starts = list(range(0, max(1, count // BATCH) * BATCH, BATCH))
    hits = torch.zeros(count, dtype=torch.bool)
    chance = torch.zeros(count)
    for number, start in enumerate(starts):
        end = count if number == len(starts) - 1 and count < BATCH else min(start + BATCH, count)
        rows = slice(start, end)
        distance = torch.cdist(one[rows], other[rows])
        # ties are no match: a statistic that is the same for all says nothing
        nearest = distance.min(1).values
        alone = (distance <= nearest[:, None]).sum(1) == 1
        hits[rows] = alone & (distance.argmin(1) == torch.arange(end - start))
        chance[rows] = 1.0 / (end - start)
    used = min(count, starts[-1] + BATCH)
    hits, level = hits[:used], float(chance[0])
    values = (hits.float() - level) / (1 - level)
    drawn = (resampled or _plain(used)).mean(values, torch.arange(used))
    return Matched(figure(drawn), float(hits.float().mean()), level, used, hits)


def learned(one: Tensor, other: Tensor) -> Callable[[Tensor], Tensor]:
    """Features in which views of a picture differ equally in all directions, on the sphere (whitening within pairs)."""
    both = torch.cat([one, other])
    mean, scale = both.mean(0), both.std(0, correction=0)
    scale = torch.where(scale > CONSTANT, scale, torch.inf)
    apart = (one - other) / scale
    within = apart.T @ apart / (2 * len(apart))
    level = SHRINK * float(within.diagonal().mean()) + 1e-8
    values, directions = torch.linalg.eigh(within + level * torch.eye(len(within)))
    whitening = directions * values.clamp(min=level).rsqrt()
    return lambda rows: functional.normalize(((rows - mean) / scale) @ whitening, dim=1)


def _plain(count: int) -> Resampled:
    return Resampled.of(torch.arange(count).numpy(), 0)
