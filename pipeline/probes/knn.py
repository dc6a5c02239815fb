"""The weighted kNN probe: the class to which the k nearest training rows give the most weight.

Wu et al., "Unsupervised Feature Learning via Non-Parametric Instance Discrimination" (CVPR 2018), section 3.4: each of
the k gallery rows of largest cosine s votes for its class with weight exp(s / T). Exact, no training, one free choice
of k and T; the neighbours are found once for all label columns.
"""

from __future__ import annotations

import numpy as np

from pipeline.neighbours import Codes, Floats
from pipeline.parallel import spans

VOTES = 1 << 22
"""Votes that are counted at once, 32 MiB, however many classes there are."""


def vote(similarity: Floats, labels: Codes, temperature: float, classes: int) -> Codes:
    """Return the class (Q,) with the most weight among each query's neighbours; the lowest code of equals.

    Args:
        similarity: (Q, k) cosines of the neighbours.
        labels: (Q, k) their class codes, 0 <= code < classes.
        temperature: > 0; the smaller, the more the nearest neighbour decides.
        classes: number of class codes.
    """
    winner = np.empty(len(labels), np.int64)
    for some in spans(len(labels), max(1, VOTES // classes)):
        largest = similarity[some].max(axis=1, keepdims=True)
        # relative to the nearest neighbour, so that no temperature overflows: a common factor changes no vote
        weight = np.exp((similarity[some].astype(np.float64) - largest) / temperature)  # (q, k)
        place = np.arange(len(weight))[:, None] * classes + labels[some]
        votes = np.bincount(place.ravel(), weight.ravel(), minlength=len(weight) * classes)
        winner[some] = votes.reshape(-1, classes).argmax(axis=1)
    return winner
