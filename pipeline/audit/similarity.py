"""Cosine of positive and of negative pairs: does the space tell two views of one sample from views of two?

Both are counted over the same BINS equal bins of [-1, 1]. The negatives come from a walk (``pipeline.audit.pairs``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.audit.estimate import Estimate, Numbers, of_mean, of_pairs
from pipeline.audit.pairs import Block, walk

BINS = 100
FINE = 20_000
"""Bins that quantiles of negatives are read from: within 0.0001 of the exact ones in bounded memory."""
QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


@dataclass(frozen=True)
class Similarities:
    """What is known of one kind of pair: mean with interval, quantiles, and counts over BINS equal bins of [-1, 1]."""

    mean: Estimate
    quantiles: dict[float, float]
    histogram: npt.NDArray[np.int64]


def positives_of(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> Numbers:
    """Cosines (n,) of (a_i, b_i); a and b (n, D) of length one."""
    cosines: Numbers = np.clip(np.einsum("nd,nd->n", a, b, dtype=np.float64), -1, 1)
    return cosines


def positive_similarity(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> Similarities:
    """Cosines of (a_i, b_i); a and b (n, D) of length one.

    Raises:
        NotComputable: fewer than two rows.
    """
    values = positives_of(a, b)
    mean = of_mean(values).within(-1, 1)
    quantiles = {share: float(np.quantile(values, share)) for share in QUANTILES}
    return Similarities(mean, quantiles, np.bincount(_fine(values), minlength=FINE).reshape(BINS, -1).sum(axis=1))


class Negatives:
    """A reader of pairs that sums and counts the negatives of n samples."""

    def __init__(self, n: int):
        self.totals, self.counts = np.zeros(n), np.zeros(FINE, dtype=np.int64)

    def read(self, block: Block) -> None:
        """Add a block."""
        cosines = block.negatives(block.cosines.copy())
        self.totals[block.anchors] += cosines.sum(axis=1)
        self.totals += cosines.sum(axis=0)
        self.counts += np.bincount(_fine(block.cosines).ravel(), minlength=FINE)
        self.counts -= np.bincount(_fine(block.positives), minlength=FINE)

    def similarities(self) -> Similarities:
        """What was seen."""
        edges, n = np.linspace(-1, 1, FINE + 1), len(self.totals)
        reached = np.searchsorted(np.cumsum(self.counts), np.asarray(QUANTILES) * self.counts.sum())
        quantiles = {share: float(edges[at] + edges[at + 1]) / 2 for share, at in zip(QUANTILES, reached, strict=True)}
        mean = of_pairs(self.totals / (2 * (n - 1))).within(-1, 1)
        return Similarities(mean, quantiles, self.counts.reshape(BINS, -1).sum(axis=1))


def negative_similarity(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> Similarities:
    """Cosines of (a_i, b_j), i != j; a and b (n, D) of length one.

    Raises:
        NotComputable: fewer than three rows, or rows that are not of length one.
    """
    seen = Negatives(len(a))
    walk(a, b, seen)
    return seen.similarities()


def _fine(cosines: Numbers) -> npt.NDArray[np.int64]:
    """The fine bin of each cosine; 1 itself lies in the last."""
    return np.minimum(((cosines + 1) * (FINE / 2)).astype(np.int64), FINE - 1)
