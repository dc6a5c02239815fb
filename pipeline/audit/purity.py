"""Neighbour purity: the share of a row's nearest rows that carry its own label.

A local measure beside the probes: it needs no training split and no vote, and falls as soon as classes interleave.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeline.audit.estimate import Estimate, of_mean
from pipeline.neighbours import Codes


def neighbour_purity(neighbours: Codes, labels: npt.NDArray[np.int64], chosen: Codes) -> Estimate:
    """Mean over the chosen rows of the share of their neighbours with the same label.

    Args:
        neighbours: (len(chosen), k) row indices (``pipeline.neighbours.nearest_others``).
        labels: (N,) class codes of all rows.
        chosen: the rows that were asked, at least 2.
    """
    same = labels[neighbours] == labels[chosen][:, None]  # (len(chosen), k)
    return of_mean(same.mean(axis=1)).within(0, 1)
