"""Controls of a space's shape: does training tell views of a sample from other samples better than no training did?

``spread``: the part of the rows' mean square length that is variance; 0: they are one point. ``matching``: the share of
samples whose first view finds their own second view among those of all samples (top 1, cosine; a tie is none). Both
also of the untrained network, and the effective rank of that: the reference of collapse, as the untrained network of a
narrow encoder has few directions to begin with.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pipeline.achieved.found import Found
from pipeline.achieved.looking import chosen
from pipeline.audit.estimate import Estimate, NotComputable, from_error, not_computable
from pipeline.audit.spectrum import spectrum
from pipeline.embeddings import Embeddings, unusable
from pipeline.neighbours import unit
from pipeline.probes.intervals import wilson

Rows = npt.NDArray[np.float32]
MATCHED = 1000
"""Samples among which a view is sought, at most."""
MEASURED = 4000
"""Rows of the untrained network whose spectrum is taken, at most."""


def spread(rows: Rows) -> Estimate:
    """Variance / mean square length of rows (n, D), in [0, 1], with its first-order error (the influence of a row).

    Rows of zeros alone are one point: 0.

    Raises:
        NotComputable: fewer than three rows, or broken numbers.
    """
    n, values = len(rows), rows.astype(np.float64)
    if n < 3 or not np.isfinite(values).all():
        raise NotComputable(f"{n} rows; at least 3 without NaN and infinity are needed")
    centre, squares = values.mean(axis=0), np.square(values).sum(axis=1)
    whole = squares.mean()
    if whole == 0:
        return Estimate(0.0, 0.0, 0.0, n, "all rows are zero")
    value = float(np.square(values - centre).sum(axis=1).mean() / whole)
    influence = (squares * (1 - value) - 2 * values @ centre + centre @ centre) / whole
    return from_error(value, float(influence.std()) / math.sqrt(n), n).within(0, 1)


def matching(first: Rows, second: Rows) -> Estimate:
    """Share of first views (n, D) whose nearest second view (n, D) is their own, with Wilson's interval.

    Raises:
        NotComputable: rows without a direction.
    """
    reason = unusable(first) or unusable(second)
    if reason is not None:
        raise NotComputable(reason)
    similarity = unit(first) @ unit(second).T
    own = similarity.diagonal().copy()
    np.fill_diagonal(similarity, -np.inf)
    hits = int((own > similarity.max(axis=1)).sum())
    return Estimate(hits / len(own), *wilson(hits, len(own)), len(own), f"among {len(own)} samples")


def enter(embeddings: Embeddings, found: Found) -> None:
    """Enter spread and matching of every layer, and the effective rank of the untrained network."""
    total = len(embeddings.features("test", "h"))
    some = chosen(total, MATCHED, "test")
    for layer in ("h", "z", "raw", "untrained"):
        views = [np.asarray(embeddings.features(split, layer)[some]) for split in ("view0", "view1")]
        try:
            estimate = matching(*views)
        except NotComputable as reason:
            estimate = not_computable(reason, len(some))
        found.add(f"matching.{layer}", "view0, view1", estimate)
    rows = chosen(total, MEASURED, "test")
    for layer in ("h", "z", "untrained"):
        try:
            estimate = spread(np.asarray(embeddings.features("test", layer)[rows]))
        except NotComputable as reason:
            estimate = not_computable(reason, len(rows))
        found.add(f"spread.{layer}", "test", estimate)
    try:
        estimate = spectrum(np.asarray(embeddings.features("test", "untrained")[rows])).effective_rank
    except NotComputable as reason:
        estimate = not_computable(reason, len(rows))
    found.add("effective_rank.untrained", "test", estimate)
