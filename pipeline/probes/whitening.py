"""Coordinates in which features have nearly the covariance 1, whatever their own: what makes a convex solver quick.

The covariance is taken from a sample of rows; where they are wide, from its leading directions alone (randomised
subspace iteration: Halko, Martinsson & Tropp, SIAM Review 53, 2011), the others counting as equal. It decides how fast
an optimum is found, not where it lies.

Legend: N rows, D dimensions, r directions, K columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.neighbours import Floats

Numbers = npt.NDArray[np.float64]
SAMPLE = 4096
"""Rows that the covariance is taken from."""
WHOLE = 768
"""Up to so many rows or dimensions the decomposition is complete."""
LEADING = 256
"""Directions that are followed beyond that."""
CURVATURE = 0.1
"""Typical second derivative of the cross-entropy in a logit: p (1 - p) of a probability near 0.1 or 0.9."""


@dataclass(frozen=True)
class Whitening:
    """Orthonormal directions (D, r), None for the axes themselves; variances (r,) along them, and that of the rest."""

    directions: Floats | None
    variances: Numbers
    rest: float

    def scaled(self, matrix: Floats, regularization: float, power: float) -> Floats:
        """(CURVATURE · covariance + regularization)^power times matrix (D, K): (D, K)."""
        inside = (CURVATURE * self.variances + regularization) ** power
        if self.directions is None:
            return (inside[:, None] * matrix).astype(np.float32)
        outside = (CURVATURE * self.rest + regularization) ** power
        along = (inside - outside).astype(np.float32)[:, None] * (self.directions.T @ matrix)  # (r, K)
        result: Floats = np.float32(outside) * matrix + self.directions @ along
        return result


def whitening(rows: Floats) -> Whitening:
    """The whitening of rows (N, D) about zero."""
    some = rows[:: -(-len(rows) // SAMPLE)]  # (n, D)
    n, dimensions = some.shape
    if min(n, dimensions) > WHOLE:
        directions = _leading(some)
        within = some @ directions
        variances, turn = np.linalg.eigh((within.T @ within / n).astype(np.float64))
        directions = directions @ turn.astype(np.float32)
    elif dimensions <= n:
        variances, found = np.linalg.eigh((some.T @ some / n).astype(np.float64))
        directions = found.astype(np.float32)
    else:
        _, directions, variances = _span(some)
    total = float(np.einsum("nd,nd->", some, some, dtype=np.float64)) / n
    rest = max(0.0, total - float(variances.sum())) / max(1, dimensions - len(variances))
    return Whitening(directions, np.maximum(variances, 0.0), rest)


def in_their_span(rows: Floats) -> tuple[Floats, Floats, Whitening] | None:
    """Few wide rows (N, D) as rows (N, r) of the same products, the basis (D, r) they stand in, and their whitening.

    A penalised linear fit has its coefficients in the span of its rows, so nothing is lost. None: no gain in it.
    """
    if len(rows) >= rows.shape[1] or len(rows) > WHOLE:
        return None
    within, basis, variances = _span(rows)
    return within, basis, Whitening(None, variances, 0.0)


def _span(rows: Floats) -> tuple[Floats, Floats, Numbers]:
    """Rows (N, r) in an orthonormal basis (D, r) of their span, and the mean squares (r,) along it, for N < D."""
    squares, vectors = np.linalg.eigh((rows @ rows.T).astype(np.float64))
    kept = squares > 1e-6 * squares[-1]
    lengths, vectors = np.sqrt(squares[kept]), vectors[:, kept]
    basis = rows.T @ (vectors / lengths).astype(np.float32)
    return (vectors * lengths).astype(np.float32), basis, squares[kept] / len(rows)


def _leading(rows: Floats) -> Floats:
    """An orthonormal basis (D, LEADING) that holds most of the variance of rows (N, D)."""
    basis = np.random.default_rng(0).standard_normal((rows.shape[1], LEADING), dtype=np.float32)
    for _ in range(2):
        basis = np.linalg.qr(rows.T @ (rows @ basis))[0]
    return basis
