"""How many dimensions a space uses: the spectrum of its covariance, and three numbers that sum it up.

With p the eigenvalues as shares of the whole variance:
effective rank = exp(-sum p·log p) (Roy & Vetterli, "The effective rank", EUSIPCO 2007, here of the covariance; RankMe
takes singular values of the uncentred rows instead, and is another number); participation ratio = 1 / sum p²;
dimensions_99 = the least number of directions that hold 99 % of the variance, as a share of D.

Their intervals are closed forms. An eigenvalue moves to first order with the squared projection of a row on its
eigenvector, so every row's influence on each number is known from one decomposition (Hampel 1974; for dimensions_99,
a quantile, Woodruff, "Confidence intervals for medians", JASA 1952). A bootstrap repeats rows and so lowers ranks.
All three are biased downwards while n is not much larger than D.

Legend: n rows, D dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.audit.estimate import Estimate, NotComputable, Numbers, Z, from_error

ROWS = 4096
"""Rows that are held in float64 at once."""


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of the covariance as shares (D,), largest first, and the numbers that sum them up."""

    shares: Numbers
    variance: float
    effective_rank: Estimate
    participation_ratio: Estimate
    dimensions_99: Estimate


def spectrum(rows: npt.NDArray[np.floating]) -> Spectrum:
    """Measure the covariance spectrum of rows (n, D), n >= 3.

    Raises:
        NotComputable: fewer than three rows, NaN or infinity, or no variance beyond rounding (a constant space).
    """
    n, dimensions = rows.shape
    if n < 3:
        raise NotComputable(f"{n} rows; at least 3 are needed")
    centre = rows.mean(axis=0, dtype=np.float64)
    covariance = np.zeros((dimensions, dimensions))
    for block in _centred(rows, centre):
        covariance += block.T @ block / n
    if not np.isfinite(covariance).all():
        raise NotComputable("rows hold NaN or infinity")
    values, vectors = np.linalg.eigh(covariance)
    values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1]
    total = float(values.sum())
    if total <= 1e-12 * float(centre @ centre) or total == 0:
        raise NotComputable("the rows are constant")
    shares = values / total
    entropy, squares = -float(_times_log(shares, shares)), float(shares @ shares)
    rank_sum, ratio_sum = np.zeros(n), np.zeros(n)
    held_square = np.zeros(dimensions)
    cumulative = np.cumsum(shares)
    for start, block in zip(range(0, n, ROWS), _centred(rows, centre), strict=True):
        energy = np.square(block @ vectors) / total  # (rows, D) a row's part in every eigenvalue
        whole = energy.sum(axis=1)
        rank_sum[start : start + len(block)] = -_times_log(energy, shares) - entropy * whole
        ratio_sum[start : start + len(block)] = 2 * whole / squares - 2 * (energy @ shares) / squares**2
        held_square += np.square(np.cumsum(energy, axis=1) - cumulative * whole[:, None]).sum(axis=0)
    rank, ratio = math.exp(entropy), 1 / squares
    root = math.sqrt(n)
    return Spectrum(
        shares,
        total,
        from_error(rank, rank * float(rank_sum.std()) / root, n).within(1, dimensions),
        from_error(ratio, float(ratio_sum.std()) / root, n).within(1, dimensions),
        _directions(cumulative, np.sqrt(held_square) / n, 0.99, n),
    )


def _times_log(weights: Numbers, shares: Numbers) -> Numbers:
    """``weights @ log(shares)``, a share of zero counting nothing."""
    positive = shares > 0
    product: Numbers = weights[..., positive] @ np.log(shares[positive])
    return product


def _directions(cumulative: Numbers, error: Numbers, share: float, n: int) -> Estimate:
    """How many directions reach ``share``, over D; low and high are where the curve's own band reaches it."""
    most = len(cumulative)

    def first(curve: Numbers) -> float:
        reached = np.flatnonzero(curve >= share - 1e-9)
        return (int(reached[0]) + 1 if len(reached) else most) / most

    return Estimate(first(cumulative), first(cumulative + Z * error), first(cumulative - Z * error), n)


def _centred(rows: npt.NDArray[np.floating], centre: Numbers) -> Iterator[Numbers]:
    for start in range(0, len(rows), ROWS):
        yield rows[start : start + ROWS].astype(np.float64) - centre
