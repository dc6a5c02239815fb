"""Vectors that know which space they are of, and how the vectors of a space are compared: by its own metric only.

Legend: N vectors, A and B vectors that are compared, D dimensions, k neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from pipeline.metrics import Metric, similarity
from pipeline.spec import Refusal

Layer = Literal["h", "z"]
Rows = npt.NDArray[np.float32]
BLOCK = 2**24
"""numbers of a block of comparisons"""


@dataclass(frozen=True, eq=False)
class Vectors:
    """Vectors of one space. ``np.asarray`` gives the numbers; a part of them (``vectors[3]``, ``vectors[:10]``) is
    again ``Vectors``, and so keeps what they are."""

    values: Rows
    """(N, D)"""
    identity: str
    """of the bundle that made them"""
    layer: Layer
    """h: before the projection; z: where the loss acted, normalised as the space declares"""
    names: tuple[str, ...] | None = None
    """of the N inputs, where they have any"""

    def __post_init__(self) -> None:
        if self.values.ndim != 2:
            raise ValueError(f"vectors of shape {self.values.shape}; must be (N, D)")
        if self.names is not None and len(self.names) != len(self.values):
            raise ValueError(f"{len(self.names)} names of {len(self.values)} vectors")

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Vectors]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, rows: Any) -> Vectors:
        chosen = np.atleast_1d(np.arange(len(self))[rows])
        names = None if self.names is None else tuple(self.names[row] for row in chosen)
        return Vectors(self.values[chosen], self.identity, self.layer, names)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, D)."""
        return self.values.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the numbers."""
        return self.values.dtype


def as_tensor(rows: Rows) -> torch.Tensor:
    """Rows as a tensor; copied only where PyTorch cannot share them."""
    return torch.from_numpy(np.require(rows, np.float32, ["C", "W"]))


def similarities(a: Rows, b: Rows, metric: Metric) -> Rows:
    """Similarity of each of a (A, D) to each of b (B, D): (A, B); as ``pipeline.metrics`` has it, block by block."""
    second = as_tensor(b)
    rows = max(1, BLOCK // max(1, second.numel()))
    parts = [similarity(as_tensor(a[start : start + rows]), second, metric) for start in range(0, len(a), rows)]
    found: Rows = torch.cat(parts).numpy() if parts else np.empty((0, len(b)), np.float32)
    return found


def nearest(a: Rows, b: Rows, metric: Metric, k: int) -> tuple[npt.NDArray[np.int64], Rows]:
    """The k most similar of b (B, D) for each of a (A, D), the most similar first, the earlier first where two are
    equal: rows of b (A, k) and their similarities (A, k)."""
    places, values = [], []
    rows = max(1, BLOCK // max(1, len(b)))
    for start in range(0, len(a), rows):
        found = similarities(a[start : start + rows], b, metric)
        least = np.partition(found, len(b) - k, axis=1)[:, len(b) - k, None]  # (A', 1): the k-th largest
        for row, at_least in zip(found, least[:, 0], strict=True):
            near = np.flatnonzero(row >= at_least)
            order = near[np.argsort(-row[near], kind="stable")][:k]
            places.append(order)
            values.append(row[order])
    return np.array(places, np.int64).reshape(len(a), k), np.array(values, np.float32).reshape(len(a), k)


def distances(similar: Rows, metric: Metric) -> Rows:
    """Distances of similarities: 1 - cosine; the Euclidean distance or its square.

    Raises:
        Refusal: the metric is the inner product, which has no distance.
    """
    if metric == "dot":
        raise Refusal("distance: the space compares by the inner product, which has no distance; use similarity")
    return 1 - similar if metric == "cosine" else -similar
