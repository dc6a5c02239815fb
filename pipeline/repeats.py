"""Exact copies among a data set's pictures: how many, whether their labels agree, whether they stand on both sides.

Legend: N pictures, each with the digest of its raw bytes; a set is the pictures of one digest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

TOLD = 100
"""sets that the ledger names"""

Labels = tuple[str | float | None, ...]


@dataclass(frozen=True)
class Repeats:
    """Exact copies."""

    sets: tuple[tuple[int, ...], ...]
    """rows of each set of at least two, in the order of the rows"""
    conflicts: frozenset[int]
    """numbers of the sets whose labels differ"""
    across: frozenset[int]
    """numbers of the sets with pictures in train and in test"""

    @property
    def copies(self) -> int:
        """Pictures beyond the first of each set."""
        return sum(len(rows) - 1 for rows in self.sets)

    def summary(self) -> str:
        """A clause for one line; empty where there are no copies."""
        if not self.sets:
            return ""
        parts = [f"{self.copies} exact copies"]
        if self.conflicts:
            parts.append(f"{len(self.conflicts)} with other labels")
        if self.across:
            parts.append(f"{len(self.across)} both in train and in test")
        return ", ".join(parts)

    def plain(self, names: Sequence[str], splits: Sequence[str]) -> dict[str, Any]:
        """As the ledger writes it; the worst sets first."""
        numbers = sorted(
            range(len(self.sets)), key=lambda number: (number not in self.conflicts, number not in self.across, number)
        )
        return {
            "copies": self.copies,
            "sets": len(self.sets),
            "label_conflicts": len(self.conflicts),
            "train_and_test": len(self.across),
            "files": [
                [{"name": names[row], "split": splits[row]} for row in self.sets[number]] for number in numbers[:TOLD]
            ],
        }

    def surplus(self, splits: Sequence[str]) -> dict[int, str]:
        """Row → reason of what ``repeated: once`` takes away: test stays before train, and none of a conflict."""
        gone: dict[int, str] = {}
        for number, rows in enumerate(self.sets):
            if number in self.conflicts:
                gone |= dict.fromkeys(rows, "copies with different labels")
            else:
                first = min(rows, key=lambda row: (splits[row] != "test", row))
                gone |= {row: "exact copy" for row in rows if row != first}
        return gone


def sides(parts: npt.NDArray[np.float64], digests: npt.NDArray[Any], test: float) -> list[str]:
    """The split of each picture (N,): by the least part of all its copies, so that they are on one side."""
    _, inverse = np.unique(digests, return_inverse=True)
    least = np.ones(len(parts))
    np.minimum.at(least, inverse, parts)
    return ["test" if part < test else "train" for part in least[inverse]]


def repeats(digests: npt.NDArray[Any], splits: Sequence[str], labels: Sequence[Labels]) -> Repeats:
    """Find the exact copies.

    Args:
        digests: (N,) bytes.
        splits: of each picture.
        labels: of each picture.
    """
    _, inverse, counts = np.unique(digests, return_inverse=True, return_counts=True)
    found: dict[int, list[int]] = {}
    for row in np.flatnonzero(counts[inverse] > 1):
        found.setdefault(int(inverse[row]), []).append(int(row))
    sets = tuple(sorted(tuple(rows) for rows in found.values()))
    return Repeats(
        sets,
        frozenset(number for number, rows in enumerate(sets) if len({labels[row] for row in rows}) > 1),
        frozenset(number for number, rows in enumerate(sets) if len({splits[row] for row in rows}) > 1),
    )
