"""Do classes lie in lumps? Clusters, told nothing but how many classes there are, against the labels.

NMI = mutual information / mean of the two entropies (Strehl & Ghosh, JMLR 2002, with Kvålseth's arithmetic mean): 0
where clusters say nothing of classes, 1 where they are the classes; many small clusters raise it. ARI = pairs that both
sort alike, less those expected by chance (Hubert & Arabie, "Comparing Partitions", J. Classification 1985): 0 by
chance.

The intervals delete one row after the other from the table of classes and clusters, at these clusters.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pipeline.audit.estimate import Estimate, NotComputable, Numbers, jackknife

Codes = npt.NDArray[np.int64]


def agreement(labels: Codes, clusters: Codes) -> tuple[Estimate, Estimate]:
    """(NMI, ARI) of labels (n,) and clusters (n,), n >= 3.

    Raises:
        NotComputable: fewer than three rows, all labels equal, or all labels different.
    """
    n = len(labels)
    if n < 3:
        raise NotComputable(f"{n} rows; at least 3 are needed")
    _, row, ours = np.unique(labels, return_inverse=True, return_counts=True)
    _, column, theirs = np.unique(clusters, return_inverse=True, return_counts=True)
    if len(ours) in (1, n):
        raise NotComputable("all rows are of one class" if len(ours) == 1 else "every row has a label of its own")
    cells, joint = np.unique(row * len(theirs) + column, return_counts=True)  # (cells,) those that are not empty
    first, second = np.divmod(cells, len(theirs))

    def measured(of: Callable[[Numbers], Numbers], agree: Callable[..., Numbers]) -> Estimate:
        parts = [np.asarray(counts, dtype=np.float64) for counts in (joint, ours, theirs)]
        sums = [of(part).sum() for part in parts]
        touched = [parts[0], parts[1][first], parts[2][second]]  # (cells,) the counts that a row of a cell is in
        less = [total - of(part) + of(part - 1) for total, part in zip(sums, touched, strict=True)]
        return jackknife(float(agree(*sums, n)), np.repeat(agree(*less, n - 1), joint))

    return measured(_times_log, _nmi).within(0, 1), measured(_pairs, _ari).within(-1, 1)


def _times_log(counts: Numbers) -> Numbers:
    return counts * np.log(np.maximum(counts, 1))


def _nmi(joint: Numbers, ours: Numbers, theirs: Numbers, n: int) -> Numbers:
    entropies = 2 * math.log(n) - (ours + theirs) / n
    information = math.log(n) - (ours + theirs - joint) / n
    found: Numbers = np.where(entropies > 0, 2 * information / np.where(entropies > 0, entropies, 1), 0)
    return found


def _pairs(counts: Numbers) -> Numbers:
    return counts * (counts - 1) / 2


def _ari(joint: Numbers, ours: Numbers, theirs: Numbers, n: int) -> Numbers:
    expected = ours * theirs / (n * (n - 1) / 2)
    room = (ours + theirs) / 2 - expected
    found: Numbers = np.where(room > 0, (joint - expected) / np.where(room > 0, room, 1), 1)
    return found
