"""Gradient mass: which negatives a contrastive loss would push away in this space, at one temperature after another.

The gradient of InfoNCE on an anchor's negative j is its softmax weight p_j among all candidates, over the temperature
(Wang & Liu, "Understanding the Behaviour of Contrastive Loss", CVPR 2021, equation 4). Hence, at
each temperature:
repulsion = 1 - p(positive), the weight that is left for negatives;
effective negatives = exp(entropy of the weights among negatives), between 1 and n - 1: how many negatives an anchor
feels (Hill, "Diversity and Evenness", Ecology 1973, order 1);
same-label share = weight on negatives of the anchor's own label over the weight on all negatives, summed over anchors.
Where a lower temperature raises the third, and leaves few effective negatives, it sharpens false negatives only.

Anchors are the rows of one view, candidates those of the other. The intervals are over anchors, at these candidates.

Legend: n samples, R anchors of a block, T temperatures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from pipeline.audit.estimate import Estimate, NotComputable, Numbers, from_error, of_mean
from pipeline.audit.pairs import Block

TEMPERATURES = (0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)


class GradientMass:
    """A reader of pairs that weighs the negatives of n samples.

    Args:
        n: how many samples, at least 3.
        labels: column -> (n,) class codes.
        temperatures: of the softmax, each at least 0.01, so that no weight leaves float64's range.
    """

    def __init__(
        self,
        n: int,
        labels: Mapping[str, npt.NDArray[np.int64]],
        temperatures: Sequence[float] = TEMPERATURES,
    ):
        if min(temperatures) < 0.01:
            raise ValueError(f"temperature {min(temperatures)}: must be at least 0.01")
        self.n, self.labels, self.temperatures = n, labels, temperatures
        shape = (len(temperatures), n)
        self.losses, self.repulsion, self.effective = np.zeros(shape), np.zeros(shape), np.zeros(shape)  # (T, n) each
        self.same = {column: np.zeros(shape) for column in labels}  # share of an anchor's weight on its own label

    def read(self, block: Block) -> None:
        """Weigh a block at every temperature."""
        codes = self.labels.items()
        alike = {column: (label[block.anchors, None] == label).astype(np.float64) for column, label in codes}
        peak = block.cosines.max(axis=1, keepdims=True)  # (R, 1)
        beneath = block.cosines - peak
        for at, temperature in enumerate(self.temperatures):
            logits = beneath / temperature
            weights = block.negatives(np.exp(logits))  # (R, n), of negatives
            rest = weights.sum(axis=1)
            positive = (block.positives - peak[:, 0]) / temperature
            self.losses[at, block.anchors] = np.log(rest + np.exp(positive)) - positive
            self.repulsion[at, block.anchors] = rest / (rest + np.exp(positive))
            entropy = np.log(rest) - np.einsum("rn,rn->r", weights, logits) / rest
            self.effective[at, block.anchors] = np.exp(entropy)
            for column, mask in alike.items():
                self.same[column][at, block.anchors] = np.einsum("rn,rn->r", weights, mask) / rest

    def effective_negatives(self, at: int) -> Estimate:
        """Mean over anchors of the effective number of negatives, at temperature number ``at``."""
        return of_mean(self.effective[at]).within(1, self.n - 1)

    def mean_repulsion(self, at: int) -> Estimate:
        """Mean over anchors of the weight on negatives."""
        return of_mean(self.repulsion[at]).within(0, 1)

    def same_label(self, at: int, column: str) -> Estimate:
        """The share of all anchors' weight on negatives that falls on negatives of the anchor's label.

        Raises:
            NotComputable: no weight is on negatives.
        """
        mass, share = self.repulsion[at], self.same[column][at]
        return _ratio(mass * share, mass).within(0, 1)


def _ratio(parts: Numbers, wholes: Numbers) -> Estimate:
    """sum of parts / sum of wholes over n anchors, with the error of a ratio estimator (Cochran 1977, 2.11)."""
    n, whole = len(parts), float(wholes.sum())
    if whole <= 0:
        raise NotComputable("the positives take all of the gradient")
    value = float(parts.sum()) / whole
    return from_error(value, math.sqrt(n / (n - 1) * float(np.square(parts - value * wholes).sum())) / whole, n)
