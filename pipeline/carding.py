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
from pipeline.shards import Column, Grouped
from pipeline.sources import ColumnKind
from pipeline.spec import Refusal

SPLITS = ("train", "test")


def counted_column(name: str, label: str, kind: ColumnKind, rows: list[Row], position: int) -> Column:
    """One label column of a data set: its classes and how often each occurs.

    Args:
        name: of the data set.
        label: of the column.
        kind: of its values.
        rows: all kept pictures, their splits known.
        position: of the column in each row's labels.

    Raises:
        Refusal: nothing to tell apart in it.
    """
    values = {row.labels[position] for row in rows}
    trained = {row.labels[position] for row in rows if row.split == "train"}
    if len(trained) < 2:
        only = f"the one {'class' if kind == 'class' else 'value'} {next(iter(trained))!r} to train on"
        raise Refusal(f"data set {name}: column '{label}' has only {only}; take it out of labels, or mend the data")
    if kind == "number":
        return Column(kind=kind, classes=(), counts={}, agreement=None)
    classes = tuple(sorted(str(value) for value in values))
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


def mean_std(moments: npt.NDArray[np.int64], area: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Of each channel over the canvas, in [0, 1], from exact sums (N, 2, C), and so the same in any order."""
    n = len(moments) * area
    totals = [[sum(values) for values in moments[:, power].T.tolist()] for power in range(2)]  # Python's whole numbers
    mean = tuple(total / (255 * n) for total in totals[0])
    return mean, tuple(math.sqrt(n * q - s * s) / (255 * n) for s, q in zip(*totals, strict=True))


def sizes(shapes: npt.NDArray[np.int32]) -> dict[str, tuple[int, int, int]]:
    """Least, middle and largest height and width of pictures (N, 2)."""
    ordered = np.sort(shapes, axis=0)
    middle = (len(ordered) - 1) // 2
    return {
        side: (int(ordered[0, place]), int(ordered[middle, place]), int(ordered[-1, place]))
        for place, side in enumerate(("height", "width"))
    }
