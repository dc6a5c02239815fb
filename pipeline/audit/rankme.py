"""RankMe: the effective rank of the embeddings themselves, by their singular values.

Garrido et al., "RankMe: Assessing the Downstream Performance of Pretrained Self-Supervised Representations by Their
Rank" (ICML 2023, equation 1): p = singular values / their sum + 1e-7, RankMe = exp(-sum p·log p). The rows are not
centred, and singular values are square roots of eigenvalues, so it is another number than the effective rank of the
covariance (``pipeline.audit.spectrum``), and is moved by an offset.

The interval is a closed form as there: a row moves the eigenvalue l of the second moment by its squared projection on
the eigenvector, and the singular value, sqrt(l), by that over 2·sqrt(l).

Legend: n rows, D dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from pipeline.audit.estimate import Estimate, NotComputable, Numbers, from_error

ROWS = 4096
"""Rows that are held in float64 at once."""
EPSILON = 1e-7
"""The paper's, so that no logarithm is of zero."""


def rankme(rows: npt.NDArray[np.floating]) -> Estimate:
    """RankMe of rows (n, D), as they are, n >= 3. At most min(n, D), but for the paper's epsilon.

    Raises:
        NotComputable: fewer than three rows, NaN or infinity, or nothing but zeros.
    """
    n, dimensions = rows.shape
    if n < 3:
        raise NotComputable(f"{n} rows; at least 3 are needed")
    largest = max(float(rows.max()), -float(rows.min()))
    if largest == 0 or not math.isfinite(largest):
        raise NotComputable("rows hold NaN or infinity" if largest else "the rows are all zero")
    moment = np.zeros((dimensions, dimensions))
    for block in _blocks(rows, largest):
        moment += block.T @ block / n
    values, vectors = np.linalg.eigh(moment)
    singular = np.sqrt(np.maximum(values, 0))
    shares = singular / singular.sum()
    entropy = -float((shares + EPSILON) @ np.log(shares + EPSILON))
    counted = values > 1e-12 * values[-1]  # below it, an eigenvalue is rounding
    slope = np.zeros(dimensions)
    slope[counted] = -(np.log(shares[counted]) + entropy) / (2 * singular[counted] * singular.sum())
    influence = np.concatenate([np.square(block @ vectors) @ slope for block in _blocks(rows, largest)])  # (n,)
    rank = math.exp(entropy)
    return from_error(rank, rank * float(influence.std()) / math.sqrt(n), n).within(1, dimensions)


def _blocks(rows: npt.NDArray[np.floating], largest: float) -> Iterator[Numbers]:
    for start in range(0, len(rows), ROWS):
        yield rows[start : start + ROWS].astype(np.float64) / largest  # so that no square leaves float64's range
