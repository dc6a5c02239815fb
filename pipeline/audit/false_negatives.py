"""False negatives with labels: how many of an anchor's nearest negatives carry its own label.

Drawn at random, a negative has the anchor's label with probability sum of squared class shares (Arora et al., "A
Theoretical Analysis of Contrastive Unsupervised Representation Learning", ICML 2019, their tau). Those that push
hardest are the nearest (Robinson et al., "Contrastive Learning with Hard Negative Samples", ICLR 2021): among them the
rate is higher, the more so the better the space is.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from pipeline.audit.estimate import Estimate, of_mean
from pipeline.audit.pairs import Block

HARDEST = 0.01
"""Share of an anchor's negatives that count as its nearest; at least one."""
Labels = Mapping[str, npt.NDArray[np.int64]]


class FalseNegatives:
    """A reader of pairs that looks at the labels of the nearest negatives; ``labels``: column -> (n,) class codes."""

    def __init__(self, n: int, labels: Labels):
        self.labels, self.nearest = labels, max(1, round(HARDEST * (n - 1)))
        self.shares = {column: np.zeros(n) for column in labels}

    def read(self, block: Block) -> None:
        """Look at a block's nearest negatives."""
        if not self.labels:
            return
        cosines = block.negatives(block.cosines.copy(), -2)
        near = np.argpartition(cosines, -self.nearest, axis=1)[:, -self.nearest :]  # (R, nearest)
        for column, codes in self.labels.items():
            self.shares[column][block.anchors] = (codes[near] == codes[block.anchors, None]).mean(axis=1)

    def rate(self, column: str) -> Estimate:
        """Mean over anchors of the share of their nearest negatives with their own label."""
        return of_mean(self.shares[column]).within(0, 1)


def chance(labels: npt.NDArray[np.int64]) -> float:
    """The probability that another row than this one has its label; labels (n,), n >= 2.

    The sum of squared shares, less what a row has in common with itself: sum of n_c·(n_c - 1) / (n·(n - 1)).
    """
    counts = np.unique(labels, return_counts=True)[1].astype(np.float64)
    n = len(labels)
    return float((counts * (counts - 1)).sum() / (n * (n - 1)))
