"""Standardised features: each dimension of the training rows at mean 0, variance 1, so that a penalty means the same.

Legend: N training rows, M other rows, D dimensions, K columns of scores (classes or numbers).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.neighbours import Floats
from pipeline.parallel import Each, spans

Numbers = npt.NDArray[np.float64]
PART = 1 << 19
"""Entries of a block of rows: 2 MiB, what a core's second cache holds."""
LANES = 16
"""Parts of a sum that run side by side: a fixed number, so that no result depends on the number of threads."""
LEAST = 256
"""Rows of a block, at least."""
CONSTANT = 1e-6
"""A dimension whose deviation is below this share of its mean says nothing but rounding; it counts as 0 throughout."""


MILD = 40
"""Binary orders of magnitude about 1 within which features are taken as they are: no product of them leaves float32."""


@dataclass(frozen=True)
class Standard:
    """Training rows (N, D), standardised, and what they were standardised by: centre (D,) and scale (D,)."""

    rows: Floats
    centre: Floats
    scale: Floats
    orders: npt.NDArray[np.int64] | None = None
    """(D,) the power of two that is taken out of each feature first, which changes no digit of it; None: none is"""

    def scores(self, features: Floats, weights: Floats, offsets: Numbers) -> Floats:
        """Apply coefficients (D, K) of standardised features, and offsets (K,), to raw features (M, D): (M, K)."""
        folded = weights / self.scale[:, None]  # (D, K)
        scores = np.empty((len(features), weights.shape[1]), np.float32)
        for span in blocks(*features.shape):
            scores[span] = (_without(features[span], self.orders) - self.centre) @ folded + offsets
        return scores


def standardise(features: Floats, each: Each) -> Standard:
    """Standardise training rows (N, D) of finite numbers by their own mean and deviation."""
    parts = blocks(*features.shape)
    largest = functools.reduce(np.maximum, each(lambda span: np.abs(features[span]).max(axis=0), parts))  # (D,)
    found = np.where(largest > 0, np.frexp(largest)[1], 0)
    orders = found if (np.abs(found) > MILD).any() else None

    def summed(span: slice) -> Numbers:
        total: Numbers = _without(features[span], orders).sum(axis=0, dtype=np.float64)
        return total

    centre = (_total(each(summed, parts)) / len(features)).astype(np.float32)
    rows = np.empty(features.shape, np.float32)

    def centred(span: slice) -> Numbers:
        np.subtract(_without(features[span], orders), centre, out=rows[span])
        squares: Numbers = np.einsum("nd,nd->d", rows[span], rows[span], dtype=np.float64)
        return squares

    spread = np.sqrt(_total(each(centred, parts)) / len(features))
    scale = np.where(spread > CONSTANT * np.abs(centre), spread, np.inf).astype(np.float32)

    def scaled(span: slice) -> None:
        rows[span] /= scale

    for _ in each(scaled, parts):
        pass
    return Standard(rows, centre, scale, orders)


def _without(features: Floats, orders: npt.NDArray[np.int64] | None) -> Floats:
    """Features (M, D) / 2**orders (D,)."""
    scaled: Floats = features if orders is None else np.ldexp(features, -orders)
    return scaled


def _total(parts: Iterable[Numbers]) -> Numbers:
    return functools.reduce(np.add, parts)


def blocks(count: int, dimensions: int) -> list[slice]:
    """Cut ``count`` rows of ``dimensions`` entries into blocks that stay in a core's cache."""
    return spans(count, max(LEAST, PART // max(1, dimensions)))
