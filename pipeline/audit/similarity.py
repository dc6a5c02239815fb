"""Cosine of positive and of negative pairs: does the space tell two views of one sample from views of two?

For view rows a (n, D) and b (n, D) of length one, the n x n product a·b has the positives (a_i, b_i) on its diagonal
and the negatives (a_i, b_j), i != j, off it. The negatives are measured block by block and never all held.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.audit.estimate import Estimate, NotComputable, Numbers, of_mean, of_pairs

ROWS = 512
"""Rows of a block of similarities."""
BINS = 100
QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


@dataclass(frozen=True)
class Similarities:
    """What is known of one kind of pair: mean with interval, quantiles, and counts over BINS equal bins of [-1, 1]."""

    mean: Estimate
    quantiles: dict[float, float]
    histogram: npt.NDArray[np.int64]


def positive_similarity(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> Similarities:
    """Cosines of (a_i, b_i); a and b (n, D) of length one."""
    values = _positives(a, b)
    quantiles = {share: float(np.quantile(values, share)) for share in QUANTILES}
    return Similarities(of_mean(values).within(-1, 1), quantiles, _counts(values))


def negative_similarity(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> Similarities:
    """Cosines of (a_i, b_j), i != j; a and b (n, D) of length one.

    Quantiles are read from a histogram of 20,000 bins, so they are within 0.0001 of the exact ones in bounded memory.

    Raises:
        NotComputable: fewer than three rows.
    """
    n, fine = len(a), 20_000
    if n < 3:
        raise NotComputable(f"{n} rows; at least 3 are needed")
    totals, counts = np.zeros(n), np.zeros(fine, dtype=np.int64)
    for start, block in _blocks(a, b):
        inside = np.arange(len(block))
        totals[start : start + len(block)] += block.sum(axis=1)
        totals += block.sum(axis=0)
        totals[start : start + len(block)] -= 2 * block[inside, start + inside]
        counts += np.histogram(np.delete(block.ravel(), inside * n + start + inside), bins=fine, range=(-1, 1))[0]
    edges = np.linspace(-1, 1, fine + 1)
    reached = np.searchsorted(np.cumsum(counts), np.asarray(QUANTILES) * counts.sum())
    quantiles = {share: float(edges[at] + edges[at + 1]) / 2 for share, at in zip(QUANTILES, reached, strict=True)}
    mean = of_pairs(totals / (2 * (n - 1))).within(-1, 1)
    return Similarities(mean, quantiles, counts.reshape(BINS, -1).sum(axis=1))


def _positives(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> Numbers:
    cosines: Numbers = np.clip(np.einsum("nd,nd->n", a, b, dtype=np.float64), -1, 1)
    return cosines


def _counts(values: Numbers) -> npt.NDArray[np.int64]:
    return np.histogram(values, bins=BINS, range=(-1, 1))[0].astype(np.int64)


def _blocks(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> Iterator[tuple[int, Numbers]]:
    for start in range(0, len(a), ROWS):
        yield start, np.clip(a[start : start + ROWS] @ b.T, -1, 1).astype(np.float64)
