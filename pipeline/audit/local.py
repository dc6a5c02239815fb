"""Local dimensional collapse: in how many directions do the nearest rows of a row differ from each other?

A space may fill its dimensions as a whole while every neighbourhood lies on a line. For each row, the participation
ratio (sum of eigenvalues)² / sum of their squares is taken of the covariance of its k nearest rows (local PCA: Fukunaga
& Olsen, "An Algorithm for Finding Intrinsic Dimensionality of Data", 1971). Their k x k products hold the same
eigenvalues, so none is computed. A neighbourhood whose rows coincide has 0 dimensions. k rows differ in at most k - 1
directions and read low: k rows drawn anywhere, read by the same rule, are the scale to compare with (``anywhere``).

Legend: N rows, D dimensions, n rows that are asked, k neighbours, R of the asked at once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeline.audit.estimate import NotComputable, Numbers

ENTRIES = 1 << 22
"""Numbers that are gathered at once: 16 MiB in float32."""


def local_dimensions(rows: npt.NDArray[np.float32], neighbours: npt.NDArray[np.int64]) -> Numbers:
    """Participation ratio (n,) of each neighbourhood.

    Args:
        rows: (N, D) of length one.
        neighbours: (n, k) row numbers, k >= 2.

    Raises:
        NotComputable: k is below 2.
    """
    k = neighbours.shape[1]
    if k < 2:
        raise NotComputable("one neighbour spans no direction; give audit.purity_at a larger number")
    height = max(1, ENTRIES // (k * rows.shape[1]))
    found = np.zeros(len(neighbours))
    for start in range(0, len(neighbours), height):
        near = rows[neighbours[start : start + height]]  # (R, k, D)
        near -= near.mean(axis=1, keepdims=True)
        products = near @ near.transpose(0, 2, 1)  # (R, k, k): the covariance's eigenvalues, times k
        total = np.trace(products, axis1=1, axis2=2).astype(np.float64)
        squares = np.square(products, dtype=np.float64).sum(axis=(1, 2))
        spread = total > 1e-12 * k  # below it, rows of length one differ by rounding only
        found[start : start + height] = np.where(spread, total**2 / np.where(spread, squares, 1), 0)
    return found


def anywhere(rows: npt.NDArray[np.float32], k: int, draws: int, seed: int) -> float:
    """Mean participation ratio of ``draws`` sets of k different rows, drawn from all of rows (N, D), k <= N."""
    random = np.random.default_rng(seed)
    drawn = np.stack([random.choice(len(rows), k, replace=False) for _ in range(draws)])
    return float(local_dimensions(rows, drawn).mean())
