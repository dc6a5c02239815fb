"""What a data card says of the pictures and their labels: columns and codes, moments of the channels, sizes.

Legend: N pictures, C channels.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.first_pass import Row
from pipeline.modalities import Contract
from pipeline.shards import Column, Grouped
from pipeline.sources import ColumnKind

SPLITS = ("train", "test")
FLAT = 1e-14
"""Of the mean square: a variance below it is rounding."""


def counted_column(kind: ColumnKind, rows: list[Row], position: int) -> Column:
    """One label column of a data set: its classes and how often each occurs.

    Args:
        kind: of its values.
        rows: all kept pictures, their splits known.
        position: of the column in each row's labels.
    """
    if kind == "number":
        return Column(kind=kind, classes=(), counts={}, agreement=None)
    classes = tuple(sorted({str(row.labels[position]) for row in rows}))
    counts = {split: Counter(row.labels[position] for row in rows if row.split == split) for split in SPLITS}
    total = counts["train"].total()
    return Column(
        kind=kind,
        classes=classes,
        counts={split: tuple(counted[value] for value in classes) for split, counted in counts.items()},
        agreement=sum(count * count for count in counts["train"].values()) / total**2,
    )


def grouped(column: str, rows: list[Row], position: int) -> Grouped:
    """How the groups of a column lie on the two sides; arguments as for ``counted_column``."""
    found = {split: Counter(row.labels[position] for row in rows if row.split == split) for split in SPLITS}
    both = found["train"].keys() & found["test"].keys()
    pictures = {split: sum(counted[group] for group in both) for split, counted in found.items()}
    return Grouped(
        column=column, groups=len(found["train"].keys() | found["test"].keys()), both=len(both), pictures=pictures
    )


def codes(column: Column, values: list[str | float]) -> npt.NDArray[Any]:
    """Values as (N,) int64 numbers of their classes, or as float64."""
    if column.kind == "number":
        return np.array(values, dtype=np.float64)
    code = {value: number for number, value in enumerate(column.classes)}
    return np.array([code[str(value)] for value in values], dtype=np.int64)


def example_rows(train: list[Row], columns: dict[str, Column]) -> list[list[Row]]:
    """A line of pictures for each class of the first column of classes; one line where there is none."""
    for position, column in enumerate(columns.values()):
        if column.kind == "class":
            lines: dict[str | float, list[Row]] = {name: [] for name in column.classes}
            for row in train:
                lines[row.labels[position]].append(row)
            return [line for line in lines.values() if line]
    return [train]


def mean_std(
    moments: npt.NDArray[np.float64], area: int, contract: Contract
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Of each channel over the canvas, as an encoder reads it, from sums (N, 2, C), and so the same in any order.

    A channel that never varies has the spread 1, so that it can be divided by.
    """
    n, whole = len(moments) * area, contract.levels
    added = (lambda values: sum(map(int, values))) if contract.exact else math.fsum  # of whole numbers, Python's own
    totals: list[list[Any]] = [[added(values) for values in moments[:, power].T.tolist()] for power in range(2)]
    mean = tuple(total / (whole * n) for total in totals[0])
    spread = [n * q - s * s for s, q in zip(*totals, strict=True)]
    least = [0 if contract.exact else FLAT * n * q for q in totals[1]]
    return mean, tuple(
        math.sqrt(square) / (whole * n) if square > flat else 1.0 for square, flat in zip(spread, least, strict=True)
    )


def sizes(shapes: npt.NDArray[np.int32], sides: tuple[str, str]) -> dict[str, tuple[int, int, int]]:
    """Least, middle and largest of both sides of samples (N, 2)."""
    ordered = np.sort(shapes, axis=0)
    middle = (len(ordered) - 1) // 2
    return {
        side: (int(ordered[0, place]), int(ordered[middle, place]), int(ordered[-1, place]))
        for place, side in enumerate(sides)
    }
