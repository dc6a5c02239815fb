"""The weighted kNN probe: the class to which the k nearest training rows give the most weight.

Wu et al., "Unsupervised Feature Learning via Non-Parametric Instance Discrimination" (CVPR 2018), section 3.4: each of
the k gallery rows of largest cosine s votes for its class with weight exp(s / T). Exact, no training, one free choice
of k and T; the neighbours are found once for all label columns.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeline.neighbours import Codes, Floats


def vote(similarity: Floats, labels: Codes, temperature: float, classes: int) -> Codes:
    """Return the class (Q,) with the most weight among each query's neighbours; the lowest code of equals.

    Args:
        similarity: (Q, k) cosines of the neighbours.
        labels: (Q, k) their class codes, 0 <= code < classes.
        temperature: > 0; the smaller, the more the nearest neighbour decides.
        classes: number of class codes.
    """
    largest = similarity.max(axis=1, keepdims=True)
    # relative to the nearest neighbour, so that no temperature overflows: a common factor changes no vote
    weight = np.exp((similarity.astype(np.float64) - largest) / temperature)  # (Q, k)
    votes: npt.NDArray[np.float64] = np.zeros((len(labels), classes))
    np.add.at(votes, (np.arange(len(labels))[:, None], labels), weight)
    winner: Codes = votes.argmax(axis=1)
    return winner
