"""False negatives without labels: the share of negatives that lie nearer to an anchor than its own positive.

What is nearer than another view of the same sample is, to this space, more alike than alike: a false negative by the
space's own judgement, or a positive that failed. The share is 1 - AUC of telling positives from negatives, anchor by
anchor; 0.5 where nothing is told apart. Equal cosines count half (Mann & Whitney 1947).
"""

from __future__ import annotations

import numpy as np

from pipeline.audit.estimate import Estimate, of_pairs
from pipeline.audit.pairs import ROUNDING, Block


class Nearer:
    """A reader of pairs that compares the negatives of n samples with their positives."""

    def __init__(self, n: int):
        self.totals = np.zeros(n)

    def read(self, block: Block) -> None:
        """Add a block, to each sample as an anchor and as a candidate."""
        beyond = block.cosines - block.positives[:, None]
        nearer = (beyond > ROUNDING).astype(np.float64)
        nearer += 0.5 * (np.abs(beyond) <= ROUNDING)
        nearer = block.negatives(nearer)
        self.totals[block.anchors] += nearer.sum(axis=1)
        self.totals += nearer.sum(axis=0)

    def share(self) -> Estimate:
        """The share among all pairs of an anchor and a negative."""
        return of_pairs(self.totals / (2 * (len(self.totals) - 1))).within(0, 1)
