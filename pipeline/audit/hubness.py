"""Hubness: do a few rows turn up among everyone's nearest rows, and many among no one's?

N_k of a row is how many others have it among their k nearest. Its skewness is 0 or so in few dimensions and grows with
their number; hubs spoil every kNN, and antihubs (N_k = 0) are never found (Radovanović, Nanopoulos & Ivanović, "Hubs in
Space: Popular Nearest Neighbors in High-Dimensional Data", JMLR 2010, equation 1). Both depend on k and on the number
of rows, so only figures of the same k and rows compare. The intervals take the N_k of different rows for independent.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeline.audit.estimate import Estimate, NotComputable, Numbers, jackknife, of_mean


def occurrences(neighbours: npt.NDArray[np.int64]) -> Numbers:
    """N_k (n,) from the k nearest others (n, k) of each of n rows, as row numbers among the same n."""
    return np.bincount(neighbours.ravel(), minlength=len(neighbours)).astype(np.float64)


def skewness(counts: Numbers) -> Estimate:
    """Third standardised moment of N_k (n,), n >= 3, with its jackknife interval.

    Raises:
        NotComputable: fewer than three rows.
    """
    n = len(counts)
    if n < 3:
        raise NotComputable(f"{n} rows; at least 3 are needed")
    x = counts - counts.mean()
    if not x.any():
        return Estimate(0.0, 0.0, 0.0, n, "every row is a nearest one equally often")
    powers = np.stack([x, x**2, x**3])  # (3, n)
    totals = powers.sum(axis=1, keepdims=True)
    return jackknife(float(_skewness(totals / n)[0]), _skewness((totals - powers) / (n - 1)))


def _skewness(moments: Numbers) -> Numbers:
    """From moments about any point (3, ...); 0 where nothing varies."""
    mean, square, cube = moments
    variance = square - mean**2
    third = cube - 3 * mean * square + 2 * mean**3
    varies = variance > 1e-12 * np.maximum(square, 1e-300)
    found: Numbers = np.where(varies, third / np.where(varies, variance, 1) ** 1.5, 0)
    return found


def antihubs(counts: Numbers) -> Estimate:
    """Share of rows that are nobody's neighbour.

    Raises:
        NotComputable: fewer than two rows.
    """
    return of_mean((counts == 0).astype(np.float64)).within(0, 1)
