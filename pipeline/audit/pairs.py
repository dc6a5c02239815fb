"""One walk over the similarities of two views, from which every measure of pairs reads.

For view rows a (n, D) and b (n, D) of length one, the product a·bᵀ (n, n) has the positives (a_i, b_i) on its diagonal
and the negatives (a_i, b_j), i != j, off it. It is made block by block, once, and never all held: each reader takes
from a block what it needs and forgets it.

Legend: n samples, R anchors of a block, D dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pipeline.audit.estimate import NotComputable, Numbers

ENTRIES = 1 << 20
"""Similarities of a block: 8 MiB in float64, and as much for each copy that a reader makes."""
ROUNDING = 1e-6
"""Cosines in float32 that differ by less are equal."""


@dataclass(frozen=True)
class Block:
    """The cosines (R, n) of the anchors ``start`` and following with all candidates. Readers do not write to it."""

    start: int
    cosines: Numbers

    @cached_property
    def anchors(self) -> slice:
        """Where the block's anchors stand among the n rows."""
        return slice(self.start, self.start + len(self.cosines))

    @cached_property
    def diagonal(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Indices of the positives within the block."""
        inside = np.arange(len(self.cosines))
        return inside, inside + self.start

    @cached_property
    def positives(self) -> Numbers:
        """(R,) cosine of each anchor with its positive."""
        found: Numbers = self.cosines[self.diagonal]
        return found

    def negatives(self, values: Numbers, instead: float = 0.0) -> Numbers:
        """``values`` (R, n), a fresh array, with the positives overwritten."""
        values[self.diagonal] = instead
        return values


class Reader(Protocol):
    """What a measure of pairs does with a block."""

    def read(self, block: Block) -> None:
        """Take from the block what the measure needs."""


def walk(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32], *readers: Reader) -> None:
    """Show every block of a·bᵀ to every reader; a and b (n, D) of length one, n >= 3.

    Raises:
        NotComputable: fewer than three rows, or rows that are not of length one.
    """
    n = len(a)
    if n < 3:
        raise NotComputable(f"{n} rows; at least 3 are needed")
    demand_directions(a, b)
    height = max(1, ENTRIES // n)
    for start in range(0, n, height):
        block = Block(start, np.clip(a[start : start + height] @ b.T, -1, 1).astype(np.float64))
        for reader in readers:
            reader.read(block)


def demand_directions(*views: npt.NDArray[np.float32]) -> None:
    """Refuse rows (n, D) that are not of length one: on them, cosines and distances on the sphere mean nothing.

    Raises:
        NotComputable: NaN, infinity, or a length that differs from one by more than a thousandth.
    """
    for rows in views:
        lengths = np.sqrt(np.einsum("nd,nd->n", rows, rows, dtype=np.float64))
        if not np.isfinite(lengths).all():
            raise NotComputable("rows hold NaN or infinity")
        worst = int(np.abs(lengths - 1).argmax()) if len(lengths) else 0
        if len(lengths) and abs(lengths[worst] - 1) > 1e-3:
            raise NotComputable(f"row {worst} has length {lengths[worst]:g}; only rows of length one have directions")
