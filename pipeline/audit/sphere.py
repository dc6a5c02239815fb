"""Alignment and uniformity: are positives near, and do samples fill the sphere?

Wang & Isola, "Understanding Contrastive Representation Learning through Alignment and Uniformity on the Hypersphere"
(ICML 2020), with their alpha = 2 and t = 2. Both are defined on rows of length one and on nothing else; on such rows
neither can be infinite: alignment lies in [0, 4], uniformity in [-8, 0]. Other rows are refused.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeline.audit.estimate import Estimate, NotComputable, of_mean, of_pairs
from pipeline.audit.pairs import demand_directions

ROWS = 512
"""Rows of a block of pairs."""


def alignment(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> Estimate:
    """Mean squared distance of (a_i, b_i); a and b (n, D) of length one, n >= 2. 0 is perfect.

    Raises:
        NotComputable: fewer than two rows, or rows that are not of length one.
    """
    demand_directions(a, b)
    return of_mean(np.square(a.astype(np.float64) - b).sum(axis=1)).within(0, 4)


def uniformity(rows: npt.NDArray[np.float32]) -> Estimate:
    """log of the mean of exp(-2·|x_i - x_j|²) over pairs i != j; rows (n, D) of length one, n >= 3.

    0 is a single point; the uniform distribution has the least value that its dimension allows (towards -4 as D grows).

    Raises:
        NotComputable: fewer than three rows, or rows that are not of length one.
    """
    n = len(rows)
    if n < 3:
        raise NotComputable(f"{n} rows; at least 3 are needed")
    demand_directions(rows)
    totals = np.empty(n)
    for start in range(0, n, ROWS):
        cosines = np.clip(rows[start : start + ROWS] @ rows.T, -1, 1).astype(np.float64)
        kernel = np.exp(4 * cosines - 4)  # |x - y|² = 2 - 2·cosine on the sphere
        inside = np.arange(len(kernel))
        kernel[inside, start + inside] = 0  # not 1 subtracted afterwards: that would cancel where all else is tiny
        totals[start : start + len(kernel)] = kernel.sum(axis=1)
    return of_pairs(totals / (n - 1), np.log).within(-8, 0)
