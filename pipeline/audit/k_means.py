"""k-means of directions: Lloyd's steps from k-means++ starts.

Lloyd, "Least Squares Quantization in PCM" (IEEE Trans. Information Theory 1982); the starts are spread as Arthur &
Vassilvitskii propose ("k-means++", SODA 2007), each the best of a few that were drawn. A block of rows is one thread's
work and sums are added in the order of blocks, so any number of cores gives the same clusters.

Legend: n rows, D dimensions, k clusters; r rows of a block.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import numpy.typing as npt

from pipeline.audit.estimate import NotComputable, Numbers
from pipeline.parallel import Each, spans, workers

STARTS, MANY = 3, 100
"""Runs, of which the tightest is kept; only one where there are MANY clusters or more."""
STEPS = 100
"""Lloyd's steps of a run, at most."""
ROWS = 1024
"""Rows of a block."""
SAME = 1e-6
"""Squared distance below which directions in float32 are equal."""
Floats = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int64]


def k_means(rows: Floats, k: int, seed: int) -> Codes:
    """Cluster codes (n,) of rows (n, D) of length one; k >= 2.

    Raises:
        NotComputable: fewer rows than clusters, or fewer different rows.
    """
    if len(rows) < k:
        raise NotComputable(f"{len(rows)} rows are fewer than {k} clusters")
    random, best, codes = np.random.default_rng(seed), math.inf, np.zeros(len(rows), dtype=np.int64)
    with workers() as each:
        for _ in range(STARTS if k < MANY else 1):
            found, spread = _lloyd(rows, _starts(rows, k, random), each)
            if spread < best:
                best, codes = spread, found
    return codes


def _starts(rows: Floats, k: int, random: np.random.Generator) -> Floats:
    """k rows (k, D) that lie far apart: each drawn in proportion to its squared distance from those before."""
    centres = np.empty((k, rows.shape[1]), dtype=np.float32)
    nearest = np.ones(len(rows))  # (n,) the first is drawn evenly
    for at in range(k):
        total = np.cumsum(nearest)
        if total[-1] == 0:
            raise NotComputable(f"fewer than {k} different rows")
        drawn = np.searchsorted(total, random.random(2 + int(math.log(k))) * total[-1], side="right")
        candidates = rows[np.minimum(drawn, len(rows) - 1)]
        distances = np.maximum(2 - 2 * (rows @ candidates.T), 0).astype(np.float64)
        distances[distances < SAME] = 0
        left = np.minimum(distances, nearest[:, None]) if at else distances  # (n, drawn)
        chosen = int(left.sum(axis=0).argmin())
        centres[at], nearest = candidates[chosen], left[:, chosen]
    return centres


def _lloyd(rows: Floats, centres: Floats, each: Each) -> tuple[Codes, float]:
    """Move centres (k, D) to the means of their rows until none changes; codes (n,), the sum of squared distances."""
    codes, spread = np.full(len(rows), -1, dtype=np.int64), math.inf
    for _ in range(STEPS):
        parts = list(each(partial(_assign, rows, centres), spans(len(rows), ROWS)))
        before, codes = codes, np.concatenate([part[0] for part in parts])
        distances = np.concatenate([part[1] for part in parts])
        spread = float(distances.sum())
        if np.array_equal(codes, before):
            break
        counts = np.bincount(codes, minlength=len(centres))
        sums = np.sum([part[2] for part in parts], axis=0, dtype=np.float64)
        centres = (sums / np.maximum(counts, 1)[:, None]).astype(np.float32)
        (empty,) = np.nonzero(counts == 0)
        centres[empty] = rows[np.argsort(-distances, kind="stable")[: len(empty)]]  # a lost centre starts anew
    return codes, spread


def _assign(rows: Floats, centres: Floats, span: slice) -> tuple[Codes, Numbers, Floats]:
    """For the rows of a span: the nearest centre (r,), the squared distance to it (r,), and sums by centre (k, D)."""
    some = rows[span]
    scores = 2 * (some @ centres.T) - np.square(centres).sum(axis=1)  # (r, k): 1 - squared distance
    codes = scores.argmax(axis=1)
    distances = 1 - np.take_along_axis(scores, codes[:, None], axis=1)[:, 0].astype(np.float64)
    belongs = (codes[:, None] == np.arange(len(centres))).astype(np.float32)
    return codes, distances, belongs.T @ some
