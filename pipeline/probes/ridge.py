"""The regression probe of columns of numbers: ridge regression on standardised features, chosen inside train.

Hoerl & Kennard, "Ridge regression", Technometrics 12 (1970). The minimum over coefficients w and an offset of
mean squared error + regularization · |w|², in closed form; the regularization of a column is the one of GRID with the
least squared error on a held-out fifth of the training rows. Columns share the work.

Legend: N training rows, M other rows, D dimensions, T columns of numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.neighbours import Floats
from pipeline.parallel import Each, spans
from pipeline.probes.standard import LANES, Standard
from pipeline.probes.strata import held_out

Numbers = npt.NDArray[np.float64]
GRID = (100.0, 10.0, 1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
"""Weights of the squared coefficients against the mean squared error, of numbers scaled to variance 1."""
NARROW = 64
"""Columns of a part of a product, at least."""


@dataclass(frozen=True)
class RidgeProbe:
    """A fitted probe: coefficients (D, 1) of standardised features and an offset, in the units of the column."""

    standard: Standard
    weights: Floats
    offset: float
    regularization: float

    def predict(self, features: Floats) -> Numbers:
        """Return numbers (M,) for features (M, D)."""
        return self.standard.scores(features, self.weights, np.zeros(1))[:, 0].astype(np.float64) + self.offset


def fit_ridge(
    standard: Standard, numbers: Numbers, each: Each, regularization: float | None = None
) -> list[RidgeProbe]:
    """Fit a probe to each column of finite numbers (N, T), none of them constant, N >= 2.

    Args:
        regularization: > 0; None: chosen.
    """
    mean, scale = numbers.mean(axis=0), numbers.std(axis=0)
    aim = (numbers - mean) / scale
    chosen = [regularization] * aim.shape[1] if regularization is not None else _choose(standard.rows, aim, each)
    solved = dict(zip(set(chosen), _coefficients(standard.rows, aim, list(set(chosen)), each), strict=True))
    return [
        RidgeProbe(standard, (scale[at] * solved[strength][:, [at]]).astype(np.float32), float(mean[at]), strength)
        for at, strength in enumerate(chosen)
    ]


def _choose(rows: Floats, aim: Numbers, each: Each) -> list[float]:
    """The regularization for each column (N, T) that errs least on the held-out rows; the strongest of equals."""
    fitted, tried = held_out(np.zeros(len(rows), np.int64))
    inside, known = rows[fitted], aim[fitted]
    centre, mean = inside.mean(axis=0), known.mean(axis=0)
    inside -= centre
    outside, truth = rows[tried] - centre, aim[tried] - mean
    losses = [
        np.square(truth - outside @ found).sum(axis=0) for found in _coefficients(inside, known - mean, GRID, each)
    ]
    return [GRID[best] for best in np.argmin(losses, axis=0)]


def _coefficients(rows: Floats, aim: Numbers, grid: Sequence[float], each: Each) -> Iterator[Numbers]:
    """Yield the coefficients (D, T) of each regularization, for centred rows (N, D) and centred numbers (N, T)."""
    from scipy.linalg import cho_factor, cho_solve

    count, wide = len(rows), rows.shape[1] > len(rows)
    products = _products(rows.T if wide else rows, each) / count
    right = aim / count if wide else (rows.T @ aim) / count
    for regularization in grid:
        system = products.copy()
        system[np.diag_indices_from(system)] += regularization
        found = cho_solve(cho_factor(system, overwrite_a=True), right)
        yield rows.T @ found if wide else found


def _products(rows: Floats, each: Each) -> Numbers:
    """Products (D, D) of the columns of rows (N, D)."""
    count = rows.shape[1]

    def part(span: slice) -> Floats:
        product: Floats = rows.T @ rows[:, span]
        return product

    parts = each(part, spans(count, max(NARROW, -(-count // LANES))))
    return np.concatenate(list(parts), axis=1).astype(np.float64)
