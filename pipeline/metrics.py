"""Metrics: how two vectors are compared. A similarity is larger for closer vectors, so a distance enters negated.

Shapes: A anchors, C candidates, D dimensions.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

Metric = Literal["cosine", "dot", "euclidean", "squared_euclidean"]
"""cosine of the angle; inner product; minus the Euclidean distance; minus its square."""

METRICS: frozenset[str] = frozenset(get_args(Metric))


def similarity(anchors: Tensor, candidates: Tensor, metric: Metric) -> Tensor:
    """Similarity of every anchor (A, D) to every candidate (C, D): (A, C), all of it in memory.

    Meant for small problems and for oracles: differences are taken before they are squared, so that near-duplicates
    keep their digits, and nothing is blocked. Cosine normalises here; a zero vector has cosine 0 to everything.
    """
    if metric == "cosine":
        anchors, candidates = unit(anchors), unit(candidates)
    if metric in ("cosine", "dot"):
        return anchors @ candidates.T
    squared = (anchors[:, None, :] - candidates[None, :, :]).square().sum(-1)
    if metric == "squared_euclidean":
        return -squared
    apart = squared > 0  # the root has no derivative at 0: a pair at distance 0 gets gradient 0
    return -torch.where(apart, torch.where(apart, squared, 1.0).sqrt(), 0.0)


def unit(vectors: Tensor) -> Tensor:
    """Rows (N, D) scaled to Euclidean length 1. A zero row stays zero and has gradient 0."""
    length = vectors.square().sum(-1, keepdim=True)
    present = length > 0
    return torch.where(present, vectors / torch.where(present, length, 1.0).sqrt(), 0.0)
