"""Which training rows a probe may see: a held-out part to choose by, and draws of a few labels; both by class.

Everything is drawn with fixed seeds, so that the same labels give the same rows.

Legend: N training rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeline.neighbours import Codes

Flags = npt.NDArray[np.bool_]
SEED = 0
HELD = 5
"""One row of so many is held out."""
CHOSEN_BY = 20_480
"""Rows that the regularization is chosen by, at most: held-out rows are then told apart to half a point."""


def held_out(codes: Codes) -> tuple[Codes, Codes]:
    """Cut rows with class codes (N,) into (rows to fit, rows to choose by), a fifth of each class in the second.

    A class of two rows or more is in both parts, a class of one row in the first only; the second may be empty. Of more
    than CHOSEN_BY rows that many are taken, at random.
    """
    random = np.random.default_rng(SEED)
    taken = np.sort(random.permutation(len(codes))[:CHOSEN_BY])
    rank, size = _ranks(codes[taken], random)
    held = rank < np.where(size > 1, np.maximum(1, size // HELD), 0)
    return taken[~held], taken[held]


def few_labels(codes: Codes, percent: int, draw: int) -> Codes:
    """The rows of one draw of ``percent`` % of each class of codes (N,), rounded half up; sorted.

    A class of few rows may have none of them: see ``too_few``.
    """
    rank, size = _ranks(codes, np.random.default_rng((SEED, percent, draw)))
    (rows,) = np.nonzero(rank < (size * percent + 50) // 100)
    return rows


def too_few(codes: Codes, percent: int) -> tuple[int, int] | None:
    """(class code, its rows) of the smallest class of which ``percent`` % is no row, or None."""
    present, sizes = np.unique(codes, return_counts=True)
    smallest = int(sizes.argmin())
    none = (int(sizes[smallest]) * percent + 50) // 100 == 0
    return (int(present[smallest]), int(sizes[smallest])) if none else None


def _ranks(codes: Codes, random: np.random.Generator) -> tuple[Codes, Codes]:
    """For each row its place (N,) in a random order of its class, from 0, and the size (N,) of its class."""
    order = random.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    _, first, inverse, sizes = np.unique(codes[order], return_index=True, return_inverse=True, return_counts=True)
    rank, size = np.empty(len(codes), np.int64), np.empty(len(codes), np.int64)
    rank[order] = np.arange(len(codes)) - first[inverse]
    size[order] = sizes[inverse]
    return rank, size
