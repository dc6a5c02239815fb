"""How factors lie on the directions of a space: one direction a factor, or all of them everywhere.

DCI (Eastwood and Williams, "A framework for the quantitative evaluation of disentangled representations", ICLR 2018):
from the importance of each direction for each factor, disentanglement is 1 - entropy of a direction's importances over
the factors (base K, directions weighed by their importance), completeness 1 - entropy of a factor's over the directions
(base D). Importances are the absolute weights of an L1 regression (the paper's first choice), those of a factor scaled
to the same sum, since factors are equally many-worded only so. MIG (Chen et al., "Isolating sources of disentanglement
in variational autoencoders", NeurIPS 2018, equation 6): the gap between the two directions that share most information
with a factor, in the factor's entropy; of numbers in BINS equal shares of rows.

A contrastive space is not made to be disentangled, and 0 is no fault: any rotation of a space has the same
similarities. n rows, D directions, K factors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
BINS = 20
PENALTIES = (0.001, 0.003, 0.01, 0.03, 0.1)
"""Of the L1 regression, in standard deviations of the target; the best on every fourth row is taken."""
STEPS = 300
"""Of the L1 regression's descent; its weights are then within 1e-3 of scikit-learn's."""
MOST = 10
"""Classes of one factor of which importances are taken, the most frequent ones."""


@dataclass(frozen=True)
class Factors:
    """Disentanglement, completeness and MIG in [0, 1], the importances (D, K), and how well each factor is read."""

    disentanglement: float
    completeness: float
    mig: float
    importance: Numbers
    informativeness: dict[str, float]
    """R² of the L1 regression on the rows that were held out, by factor"""


def factors(codes: npt.NDArray[np.floating], columns: Mapping[str, npt.NDArray[np.generic]]) -> Factors:
    """Measure codes (n, D) against at least two columns (n,): int64 codes of classes, or float64 numbers."""
    scaled = codes.astype(np.float64) / max(float(np.abs(codes).max()), np.finfo(np.float64).tiny)
    spread = scaled.std(axis=0)
    rows = (scaled - scaled.mean(axis=0)) / np.where(spread > 1e-12, spread, np.inf)
    importance, informative = [], {}
    for name, values in columns.items():
        weights, informative[name] = _importance(rows, values)
        importance.append(weights)
    table = np.stack(importance, axis=1)  # (D, K)
    shared = information(rows, columns)
    return Factors(disentanglement(table), completeness(table), gap(*shared), table, informative)


def disentanglement(importance: Numbers) -> float:
    """1 - entropy of each direction's importances over the factors, the mean weighed by the direction's importance.

    Args:
        importance: (D, K) at least 0, K >= 2.
    """
    total = importance.sum()
    if total <= 0:
        return 0.0
    by_direction = importance.sum(axis=1)
    scores = 1 - _entropy(importance, axis=1) / np.log(importance.shape[1])
    return float((scores * by_direction).sum() / total)


def completeness(importance: Numbers) -> float:
    """1 - entropy of each factor's importances over the directions, the mean over the factors that have any.

    Args:
        importance: (D, K) at least 0, D >= 2.
    """
    used = importance.sum(axis=0) > 0
    if not used.any():
        return 0.0
    scores = 1 - _entropy(importance, axis=0) / np.log(importance.shape[0])
    return float(scores[used].mean())


def gap(shared: Numbers, entropy: Numbers) -> float:
    """The mutual information gap.

    Args:
        shared: (D, K) mutual information in nats, D >= 2.
        entropy: (K,) of the factors, in nats.
    """
    ranked = np.sort(shared, axis=0)
    return float(((ranked[-1] - ranked[-2]) / entropy).mean())


def information(
    codes: npt.NDArray[np.floating], columns: Mapping[str, npt.NDArray[np.generic]]
) -> tuple[Numbers, Numbers]:
    """Mutual information (D, K) of directions in BINS shares and factors, and the factors' entropies (K,), in nats."""
    binned = np.stack([_shares(codes[:, direction]) for direction in range(codes.shape[1])], axis=1)
    shared, entropies = [], []
    for values in columns.values():
        factor = values.astype(np.int64) if values.dtype.kind in "iu" else _shares(values.astype(np.float64))
        _, factor = np.unique(factor, return_inverse=True)
        classes = int(factor.max()) + 1
        own = np.bincount(factor, minlength=classes) / len(factor)
        entropies.append(_sum(own))
        row = []
        for direction in range(binned.shape[1]):
            joint = np.bincount(binned[:, direction] * classes + factor, minlength=BINS * classes) / len(factor)
            table = joint.reshape(-1, classes)
            row.append(_sum(table.sum(axis=1)) + entropies[-1] - _sum(joint))
        shared.append(row)
    return np.maximum(np.array(shared).T, 0.0), np.array(entropies)


def lasso(rows: Numbers, targets: Numbers, penalties: Sequence[float]) -> Numbers:
    """Minimise |y - X·w|² / 2n + penalty · |w|₁ for every target and penalty at once: weights (P, D, T).

    Accelerated proximal gradient on the D x D products (Beck and Teboulle, "A fast iterative shrinkage-thresholding
    algorithm for linear inverse problems", SIAM J. Imaging Sciences 2, 2009).

    Args:
        rows: (n, D), centred.
        targets: (n, T), centred.
    """
    square, onto = rows.T @ rows / len(rows), rows.T @ targets / len(rows)  # (D, D), (D, T)
    step = 1 / max(float(np.linalg.eigvalsh(square)[-1]), 1e-12)
    limit = np.repeat(np.asarray(penalties), targets.shape[1]) * step  # (P·T,)
    wanted = np.tile(onto, (1, len(penalties)))
    weights = ahead = np.zeros_like(wanted)
    pace = 1.0
    for _ in range(STEPS):
        moved = ahead - step * (square @ ahead - wanted)
        after = np.sign(moved) * np.maximum(np.abs(moved) - limit, 0)
        faster = (1 + math.sqrt(1 + 4 * pace**2)) / 2
        ahead = after + (pace - 1) / faster * (after - weights)
        weights, pace = after, faster
    return weights.reshape(rows.shape[1], len(penalties), targets.shape[1]).transpose(1, 0, 2)


def _importance(rows: Numbers, values: npt.NDArray[np.generic]) -> tuple[Numbers, float]:
    """Absolute L1 weights of each direction for one factor, of sum 1 (or 0), and R² on the rows held out."""
    if values.dtype.kind in "iu":
        classes, counts = np.unique(values, return_counts=True)
        often = classes[np.argsort(-counts, kind="stable")][:MOST]
        targets = np.stack([(values == one).astype(np.float64) for one in often], axis=1)
    else:
        targets = values.astype(np.float64)[:, None]
    targets = (targets - targets.mean(axis=0)) / np.maximum(targets.std(axis=0), 1e-12)
    held = np.arange(len(rows)) % 4 == 3
    paths = lasso(rows[~held], targets[~held], PENALTIES)  # (P, D, T)
    errors = np.square(targets[held] - rows[held] @ paths).mean(axis=1)  # (P, T)
    best, each = errors.argmin(axis=0), np.arange(targets.shape[1])
    weights = np.abs(paths[best, :, each]).sum(axis=0)
    read = 1 - errors[best, each] / np.maximum(targets[held].var(axis=0), 1e-12)
    total = weights.sum()
    return (weights / total if total > 0 else weights), float(read.mean())


def _shares(values: npt.NDArray[np.floating]) -> npt.NDArray[np.int64]:
    """Bins of equally many rows (n,), equal values in one bin."""
    edges = np.quantile(values, np.linspace(0, 1, BINS + 1)[1:-1])
    return np.searchsorted(edges, values, side="right").astype(np.int64)


def _entropy(weights: Numbers, axis: int) -> Numbers:
    """Entropy in nats of weights scaled to sum 1 along an axis; 0 where there are none."""
    total = weights.sum(axis=axis, keepdims=True)
    shares = weights / np.where(total > 0, total, 1)
    logs = np.log(np.where(shares > 0, shares, 1))
    return np.asarray(-(shares * logs).sum(axis=axis), dtype=np.float64)


def _sum(shares: Numbers) -> float:
    positive = shares[shares > 0]
    return float(-(positive * np.log(positive)).sum())
