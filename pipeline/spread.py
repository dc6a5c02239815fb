"""How far figures of a space lie from those of another sample of the same distribution: their standard errors.

The median distance to the nearest other, of equally many rows, has no closed form: rows that lie in few places share
their nearest others, so the distances are not independent, and a bootstrap repeats rows, whose distance is then 0. Its
error is the spread over random halves without repeats (the delete-d jackknife with d = n / 2: Shao & Wu, "A general
theory for jackknife variance estimation", Annals of Statistics 17, 1989, which also holds for medians). It is taken of
the logarithm: a distance is above 0, and that of half the rows is larger by a factor. An effective rank's is the closed
form of ``audit.spectrum``.

Legend: N rows, D their width.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.audit.estimate import Z
from pipeline.audit.spectrum import spectrum
from pipeline.neighbours import unit

Rows = npt.NDArray[np.float32]
HALVES, SEED = 64, 0
WIDER = 1.2
"""By which the spread over halves is widened: of 32 rows in nine places, or of heavy tails, it alone would give an
interval that misses 8 % of draws of one distribution instead of 5 %."""
LEAST = 1e-6
"""A cosine distance that float32 does not tell from 0."""


class Spread(NamedTuple):
    """A figure above 0 of some rows."""

    value: float
    error: float
    """standard error of its logarithm"""


def some(rows: Rows, size: int) -> Rows:
    """``size`` drawn rows."""
    chosen: Rows = rows[np.sort(np.random.default_rng(SEED).permutation(len(rows))[:size])]
    return chosen


def squared(rows: Rows) -> npt.NDArray[np.float64]:
    """Squared distances of rows (N, D) from their mean (N,)."""
    centre = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    found: npt.NDArray[np.float64] = np.square(rows - centre).sum(axis=1, dtype=np.float64)
    return found


def longest(rows: Rows) -> float:
    """The standard deviation of rows (N, D) along the direction in which it is largest. Raises NotComputable."""
    found = spectrum(rows)
    return math.sqrt(found.variance * float(found.shares[0]))


def effective_rank(rows: Rows, size: int) -> Spread:
    """Effective rank of ``size`` drawn rows. Raises NotComputable."""
    found = spectrum(some(rows, size)).effective_rank
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    half = max(found.value - found.low, found.high - found.value)  # one of them may be cut
    return Spread(found.value, half / (Z * found.value))


def nearest(rows: Rows, size: int) -> Spread:
    """Median of the cosine distances of ``size`` drawn rows to the nearest other of them."""
    directions = unit(some(rows, size)).astype(np.float64)
    similar = directions @ directions.T  # (size, size)
    np.fill_diagonal(similar, -1)
    random = np.random.default_rng(SEED)
    halves = []
    for _ in range(HALVES):
        half = random.permutation(size)[: size // 2]
        halves.append(math.log(max(_median(similar[np.ix_(half, half)]), LEAST)))
    return Spread(_median(similar), WIDER * float(np.std(halves, ddof=1)))


def _median(similar: npt.NDArray[np.float64]) -> float:
    return max(0.0, float(np.median(1 - similar.max(axis=1))))
