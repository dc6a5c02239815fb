"""The cheap probe: ridge regression of all label columns at once, its strength and its features chosen on folds.

Classes are read as indicator columns (one against all, the largest score wins), numbers as themselves, so that one
factorisation serves every column, every class and the control; the folds' products are parts of the whole. Which
features and which strength read a column best is chosen on the training part alone (cross-validation), so that the
accuracy on the test part is not that of the luckiest probe.

Legend: n training rows, m test rows, D features, K targets, S strengths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pipeline.check.labels import Column
from pipeline.check.sample import FOLDS

STRENGTHS = (0.01, 0.1, 1.0, 10.0)  # of the ridge, in variances of a standardised feature
CONSTANT = 1e-5  # a feature whose standard deviation is below this is left out


@dataclass(frozen=True)
class Ridge:
    """Linear maps of standardised features, one for each strength."""

    mean: Tensor
    scale: Tensor
    weights: Tensor
    """(S, D, K)"""
    offset: Tensor
    """(K,)"""
    folded: Tensor
    """(S, n, K): the scores of every training row by the folds that do not hold it"""

    def scores(self, rows: Tensor, strength: int) -> Tensor:
        """rows (m, D) → scores (m, K)."""
        return ((rows - self.mean) / self.scale) @ self.weights[strength] + self.offset


@dataclass(frozen=True)
class Reading:
    """For every column the probe that reads it best."""

    fits: Mapping[str, Ridge]
    chosen: Mapping[str, tuple[str, int]]
    """column to (kind of features, strength)"""

    def scores(self, column: Column, features: Mapping[str, Tensor]) -> Tensor:
        """What the column's probe says of test rows: (m, K of the column)."""
        kind, strength = self.chosen[column.name]
        return self.fits[kind].scores(features[kind], strength)[:, column.place]


def read(features: Mapping[str, Tensor], columns: Sequence[Column], targets: Tensor, folds: Tensor) -> Reading:
    """Fit every kind of features, and choose for each column the kind and the strength that folds read best.

    Args:
        features: kind to (n, D).
        columns: what is read; each has its place among the targets.
        targets: (n, K).
        folds: (n,) int64 below FOLDS; rows that belong together share a fold.
    """
    fits = {kind: ridge(rows, targets, folds) for kind, rows in features.items()}
    chosen = {}
    for column in columns:
        quality = {
            (kind, strength): float(column.valued(fit.folded[strength][:, column.place], targets).mean())
            for kind, fit in fits.items()
            for strength in range(len(STRENGTHS))
        }
        chosen[column.name] = max(quality, key=lambda probe: quality[probe])
    return Reading(fits, chosen)


def ridge(rows: Tensor, targets: Tensor, folds: Tensor) -> Ridge:
    """Ridge regression of targets (n, K) on rows (n, D), for all strengths, with the folds' predictions."""
    mean, scale = rows.mean(0), rows.std(0, correction=0)
    scale = torch.where(scale > CONSTANT, scale, torch.inf)
    rows, offset = (rows - mean) / scale, targets.mean(0)
    centred = targets - offset
    parts = [(folds == fold).nonzero().flatten() for fold in range(FOLDS)]
    grams = [rows[part].T @ rows[part] for part in parts]
    crosses = [rows[part].T @ centred[part] for part in parts]
    gram, cross = sum(grams[1:], grams[0]), sum(crosses[1:], crosses[0])
    folded = torch.empty(len(STRENGTHS), *targets.shape)
    weights = []
    for number, strength in enumerate(STRENGTHS):
        weights.append(_solved(gram, cross, strength * len(rows)))
        for fold, part in enumerate(parts):
            weight = _solved(gram - grams[fold], cross - crosses[fold], strength * len(rows))
            folded[number, part] = rows[part] @ weight + offset
    return Ridge(mean, scale, torch.stack(weights), offset, folded)


def _solved(gram: Tensor, cross: Tensor, penalty: float) -> Tensor:
    penalised = gram.clone()
    penalised.diagonal().add_(penalty)
    return torch.cholesky_solve(cross, torch.linalg.cholesky(penalised))
