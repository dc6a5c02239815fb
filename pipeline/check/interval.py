"""Paired bootstrap: the same resampled test pictures before and after, so that what both share does not blur the loss.

Legend: m test rows, R resamples. Whole groups are resampled (Efron and Tibshirani, "An Introduction to the Bootstrap",
1993, chapters 8 and 13): intervals are the percentiles that leave 2.5 % on each side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

RESAMPLES = 600
TAIL = 2.5  # per cent on each side
SMALL = 1e-3  # a share above chance below which nothing is divided by it

Figure = tuple[float, float, float]
"""A value and the ends of its 95 % interval."""


@dataclass(frozen=True)
class Resampled:
    """How often each test row is in each resample: ``weights`` (R, m), the first row all ones."""

    weights: Tensor

    @staticmethod
    def of(groups: npt.NDArray[np.int64], seed: int) -> Resampled:
        """Resample whole groups; the same groups and seed give the same resamples."""
        _, group = np.unique(groups, return_inverse=True)
        count = int(group.max()) + 1
        random = np.random.Generator(np.random.Philox(key=seed))
        drawn = random.multinomial(count, np.full(count, 1.0 / count), size=RESAMPLES)[:, group]
        return Resampled(torch.from_numpy(np.concatenate([np.ones((1, len(group)), np.int64), drawn])).double())

    def mean(self, values: Tensor, rows: Tensor) -> Tensor:
        """The mean of values (rows,) over each resample: (R + 1,); the first is that of all rows."""
        both = torch.zeros(self.weights.shape[1], 2, dtype=torch.float64)  # the values and how many they are, in place
        both[:, 0].index_add_(0, rows, values.double())
        both[:, 1].index_add_(0, rows, torch.ones(len(rows), dtype=torch.float64))
        total, count = (self.weights @ both).unbind(1)
        return total / count.clamp(min=1.0)


def figure(drawn: Tensor) -> Figure:
    """A value and its interval from (R + 1,), the first the value itself."""
    low, high = np.percentile(drawn[1:].numpy(), [TAIL, 100 - TAIL])
    value = float(drawn[0])
    return value, min(float(low), value), max(float(high), value)


def kept(after: Tensor, before: Tensor, chance: float) -> Tensor | None:
    """(after - chance) / (before - chance) of each resample; None where nothing above chance is there to be kept."""
    if float(before[0]) - chance < SMALL:
        return None
    return (after - chance) / (before - chance).clamp(min=SMALL)
