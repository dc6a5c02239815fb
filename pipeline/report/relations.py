"""The relation of every anchor of a batch to every candidate: itself, positive, negative, or false negative.

n samples, two views each in pair order: rows 2i and 2i + 1 are the views of sample i. A false negative is a negative of
the anchor's own class: the loss pushes away what belongs together. A batch has a whole number of them; over batches
their mean is negatives · Σ p² (Chuang et al. 2020, arXiv:2007.00224, section 2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

Relation = Literal["self", "positive", "negative", "false negative", "no candidate"]


def relations(classes: Sequence[int], crossed: bool = False, supervised: bool = False) -> list[list[Relation]]:
    """(2n, 2n) relations of anchors (rows) and candidates (columns) of a batch.

    Args:
        classes: (n,) the class of each sample.
        crossed: candidates are a target network's: an anchor meets those of the other view alone.
        supervised: all of the anchor's class are positives (Khosla et al. 2020), so nothing is a false negative; then
            every view is met, whatever made it.
    """

    def relation(anchor: int, candidate: int) -> Relation:
        if anchor == candidate:
            return "self"
        if crossed and not supervised and anchor % 2 == candidate % 2:
            return "no candidate"
        if anchor // 2 == candidate // 2:
            return "positive"
        if classes[anchor // 2] == classes[candidate // 2]:
            return "positive" if supervised else "false negative"
        return "negative"

    return [
        [relation(anchor, candidate) for candidate in range(2 * len(classes))] for anchor in range(2 * len(classes))
    ]


def false_negatives_of(classes: Sequence[int], crossed: bool = False) -> int:
    """How many of all negatives of a batch are false: each pair of samples of one class, in every pair of views."""
    pairs = sum(count * (count - 1) for count in Counter(classes).values())
    return pairs * (2 if crossed else 4)


def negatives_in(samples: int, crossed: bool = False) -> int:
    """How many negatives the anchors of a batch have together, the false ones among them."""
    return samples * (samples - 1) * (2 if crossed else 4)
