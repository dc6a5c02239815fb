"""Reading labels from features: ridge regression, for all label columns at once, its strength chosen on folds of the
training part.

Classes are read as indicator columns (one against all, the largest score wins), numbers as themselves; a product of
matrices and a factorisation serve every column, every fold and the control, so that a reading takes milliseconds.

Legend: n training rows, m test rows, D features, K columns of targets.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

FOLDS = 4
STRENGTHS = (1e-3, 1e-2, 1e-1, 1.0)  # of the ridge, in units of the features' mean variance times D ... see fit


@dataclass(frozen=True)
class Reader:
    """Linear maps of standardised features: ``weight[strength]`` (D, K)."""

    mean: Tensor
    scale: Tensor
    weights: Tensor
    offset: Tensor
    folded: Tensor
    """scores of every training row by the fold that has not seen it, for each strength: (S, n, K)"""

    def scores(self, rows: Tensor) -> Tensor:
        """rows (m, D) → scores for each strength (S, m, K)."""
        return ((rows - self.mean) / self.scale) @ self.weights + self.offset


def fit(rows: Tensor, targets: Tensor, folds: Tensor) -> Reader:
    """rows (n, D), targets (n, K), folds (n,) int64 in [0, FOLDS)."""
    mean, scale = rows.mean(0), rows.std(0, correction=0)
    scale = torch.where(scale > 1e-6, scale, torch.full_like(scale, torch.inf))
    rows = (rows - mean) / scale
    offset = targets.mean(0)
    centred = targets - offset
    parts = [folds == fold for fold in range(FOLDS)]
    grams = torch.stack([rows[part].T @ rows[part] for part in parts])
    crosses = torch.stack([rows[part].T @ centred[part] for part in parts])
    gram, cross = grams.sum(0), crosses.sum(0)
    ridge = torch.eye(len(gram)) * len(rows)
    folded = torch.zeros(len(STRENGTHS), len(rows), targets.shape[1])
    weights = []
    for number, strength in enumerate(STRENGTHS):
        weights.append(_solve(gram + strength * ridge, cross))
        for fold, part in enumerate(parts):
            weight = _solve(gram - grams[fold] + strength * ridge, cross - crosses[fold])
            folded[number, part] = rows[part] @ weight + offset
    return Reader(mean, scale, torch.stack(weights), offset, folded)


def _solve(gram: Tensor, cross: Tensor) -> Tensor:
    return torch.cholesky_solve(cross, torch.linalg.cholesky(gram))
