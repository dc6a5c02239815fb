"""Rank within each class: does a class keep directions of its own, or is it a point?

Supervised and few-class objectives pull each class together (neural collapse: Papyan, Han & Donoho, PNAS 2020); whoever
looks for finer kinds inside a class needs what is left. The numbers are those of ``pipeline.audit.spectrum``, each of
one class's covariance about its own mean, and read low while a class has not many more rows than the space has
dimensions.

Legend: n rows of a class, D dimensions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.audit.estimate import Estimate, NotComputable, Numbers

MOST = 100
"""Classes whose spectrum is taken: the largest ones."""
ROWS = 4096
"""Rows that are held in float64 at once, where there are more rows than dimensions."""


@dataclass(frozen=True)
class ClassRank:
    """What one class spans; None and a note where that cannot be said."""

    code: int
    count: int
    effective_rank: float | None
    participation_ratio: float | None
    note: str = ""


def shares_of(rows: npt.NDArray[np.floating]) -> Numbers:
    """Eigenvalues of the covariance of rows (n, D) as shares of the variance, largest first: min(n, D) of them.

    Raises:
        NotComputable: fewer than three rows, NaN or infinity, or rows that do not differ.
    """
    if len(rows) < 3:
        raise NotComputable(f"{len(rows)} rows; at least 3 are needed")
    centre = rows.mean(axis=0, dtype=np.float64)
    if len(rows) < rows.shape[1]:
        centred = rows.astype(np.float64) - centre
        products = centred @ centred.T  # (n, n): the same eigenvalues as below
    else:
        products = np.zeros((rows.shape[1], rows.shape[1]))
        for start in range(0, len(rows), ROWS):
            centred = rows[start : start + ROWS].astype(np.float64) - centre
            products += centred.T @ centred
    if not np.isfinite(products).all():
        raise NotComputable("rows hold NaN or infinity")
    values: Numbers = np.maximum(np.linalg.eigvalsh(products)[::-1], 0)
    total = float(values.sum())
    if total <= 1e-12 * len(rows) * float(centre @ centre) or total == 0:
        raise NotComputable("its rows are equal")
    return values / total


def class_ranks(rows: npt.NDArray[np.floating], labels: npt.NDArray[np.int64]) -> list[ClassRank]:
    """The rank of each class, by code, of the MOST largest; rows (N, D), labels (N,) class codes."""
    codes, counts = np.unique(labels, return_counts=True)
    kept = np.sort(np.argsort(-counts, kind="stable")[:MOST])
    found = []
    for code, count in zip(codes[kept].tolist(), counts[kept].tolist(), strict=True):
        try:
            shares = shares_of(rows[labels == code])
        except NotComputable as reason:
            found.append(ClassRank(code, count, None, None, f"not computable: {reason}"))
        else:
            positive = shares[shares > 0]
            rank = math.exp(-float(positive @ np.log(positive)))
            found.append(ClassRank(code, count, rank, 1 / float(shares @ shares)))
    return found


def mean_rank(ranks: list[ClassRank]) -> Estimate:
    """Mean effective rank over the classes that have one.

    Raises:
        NotComputable: no class has one.
    """
    found = [each.effective_rank for each in ranks if each.effective_rank is not None]
    if not found:
        raise NotComputable("no class has three different rows")
    rows = sum(each.count for each in ranks if each.effective_rank is not None)
    note = f"no interval: the mean over {len(found)} classes"
    return Estimate(sum(found) / len(found), None, None, rows, note)
