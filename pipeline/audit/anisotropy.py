"""Anisotropy: the mean cosine of two different rows, which is 0 where directions are spread evenly.

Ethayarajh, "How Contextual are Contextualized Word Representations?" (EMNLP 2019). All pairs are measured and none is
drawn: the sum of all cosines is the squared length of the sum of the unit rows, so one pass over n rows gives the mean
over n·(n - 1) pairs. In terms of the mean unit vector m, anisotropy = (n·|m|² - 1) / (n - 1); it is near 1 where all
rows lie in a narrow cone.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeline.audit.estimate import Estimate, NotComputable, of_pairs
from pipeline.audit.pairs import demand_directions


def anisotropy(rows: npt.NDArray[np.float32]) -> Estimate:
    """Mean cosine of the pairs i != j; rows (n, D) of length one, n >= 3.

    Raises:
        NotComputable: fewer than three rows, or rows that are not of length one.
    """
    n = len(rows)
    if n < 3:
        raise NotComputable(f"{n} rows; at least 3 are needed")
    demand_directions(rows)
    total = rows.sum(axis=0, dtype=np.float64)  # (D,)
    own = np.einsum("nd,nd->n", rows, rows, dtype=np.float64)
    return of_pairs((rows @ total - own) / (n - 1)).within(-1, 1)
