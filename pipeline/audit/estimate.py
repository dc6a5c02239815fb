"""A measured value with its uncertainty, and the closed forms that give it.

``of_mean``: a mean over independent rows has the standard error sd / sqrt(n). ``of_pairs``: a mean over pairs of rows
does not have n² independent terms; it is a U-statistic, and deleting one row after the other gives its error
(Hoeffding 1948; Arvesen, "Jackknifing U-statistics", 1969); ``jackknife`` is the same for any statistic.
``of_quantile``: the order statistics between which a quantile lies (Woodruff, "Confidence intervals for medians", JASA
1952). No resampling, so nothing is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Z = NormalDist().inv_cdf(0.975)
"""Half width of a 95 % interval in standard errors."""


class NotComputable(Exception):
    """Why a measure has no value on this data. Told in the measure's note, never as NaN or -inf."""


@dataclass(frozen=True)
class Estimate:
    """A value, its 95 % interval (None: there is none), how many rows it is of, and what else is to be told."""

    value: float | None
    low: float | None
    high: float | None
    count: int
    note: str = ""

    def within(self, least: float, most: float) -> Estimate:
        """The same estimate, its interval cut to the range that the measure can take."""
        low = None if self.low is None else min(max(self.low, least), most)
        high = None if self.high is None else min(max(self.high, least), most)
        return replace(self, low=low, high=high)


def from_error(value: float, error: float, count: int) -> Estimate:
    """The estimate whose interval is value ± 1.96 standard errors.

    Raises:
        NotComputable: the value or its error is not finite.
    """
    if not (math.isfinite(value) and math.isfinite(error)):
        raise NotComputable("the numbers give no finite value")
    return Estimate(value, value - Z * error, value + Z * error, count)


def not_computable(reason: object, count: int = 0) -> Estimate:
    """The estimate that says why there is no value."""
    return Estimate(None, None, None, count, f"not computable: {reason}")


def of_mean(values: Numbers) -> Estimate:
    """Mean of independent values (n,), n >= 2.

    Raises:
        NotComputable: fewer than two values.
    """
    if len(values) < 2:
        raise NotComputable(f"{len(values)} rows; at least 2 are needed")
    return from_error(float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values)), len(values))


def of_pairs(row_means: Numbers, of: Callable[[Numbers], Numbers] = lambda mean: mean) -> Estimate:
    """``of(mean over ordered pairs)`` of a symmetric kernel over n rows, n >= 3, with its jackknife interval.

    Args:
        row_means: (n,) the kernel's mean over the n - 1 other rows, for each row.
        of: a smooth function of the mean, elementwise (the logarithm, for uniformity).

    Raises:
        NotComputable: fewer than three rows.
    """
    n = len(row_means)
    if n < 3:
        raise NotComputable(f"{n} rows; at least 3 are needed")
    mean = row_means.mean()
    return jackknife(float(of(np.asarray(mean))), of((n * mean - 2 * row_means) / (n - 2)))


def jackknife(value: float, without: Numbers) -> Estimate:
    """The estimate of a statistic of n rows whose value is ``without[i]`` when row i is deleted; without (n,)."""
    n = len(without)
    return from_error(value, math.sqrt((n - 1) / n * float(np.square(without - without.mean()).sum())), n)


def of_quantile(values: Numbers, share: float) -> Estimate:
    """The quantile ``share`` of independent values (n,), n >= 2.

    Raises:
        NotComputable: fewer than two values.
    """
    n = len(values)
    if n < 2:
        raise NotComputable(f"{n} rows; at least 2 are needed")
    reach = Z * math.sqrt(share * (1 - share) / n)
    value, low, high = np.quantile(values, [share, max(0.0, share - reach), min(1.0, share + reach)])
    return Estimate(float(value), float(low), float(high), n)
