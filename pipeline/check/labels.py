"""Label columns as targets of a regression, and what can be read of them at all.

A column of classes is an indicator a class; its value for a row is 1 where the largest score is the row's class. A
column of numbers is itself, standardised; its value for a row is 1 - squared error / variance, whose mean is R². So the
mean value is an accuracy or an R², and chance is the share of the largest class, or 0.

Legend: n training rows, m rows, K targets of one column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from pipeline.check.sample import Part
from pipeline.shards import Column as CardColumn

FEWEST = 2  # training rows of a class that is read
TESTED = 20  # test rows, at least
LOWEST = -1.0  # a number's value is cut there: what is far off counts as twice the variance


@dataclass(frozen=True)
class Column:
    """One label column that can be read."""

    name: str
    words: str
    """how sentences call it: a phrase of the domain, or the column's name"""
    kind: Literal["class", "number"]
    classes: tuple[str, ...]
    place: slice
    """its targets among all"""
    codes: Tensor
    """(m,) of the test rows: int64 codes, or standardised numbers"""
    rows: Tensor
    """test rows (int64) whose label counts"""
    chance: float
    """share of the largest class among these; 0 for numbers"""

    def values(self, scores: Tensor) -> Tensor:
        """What scores (m, K) of all test rows are worth: (rows,), 1 where right."""
        return self._worth(scores[self.rows], self.codes[self.rows])

    def valued(self, scores: Tensor, targets: Tensor) -> Tensor:
        """The same for training rows (n, K) against the targets (n, K of all columns)."""
        own = targets[:, self.place]
        return self._worth(scores, own.argmax(1) if self.kind == "class" else own[:, 0])

    def _worth(self, scores: Tensor, codes: Tensor) -> Tensor:
        if self.kind == "class":
            return (scores.argmax(1) == codes).float()
        return (1.0 - (scores[:, 0] - codes).square()).clamp_(min=LOWEST)


def columns_of(
    card: Mapping[str, CardColumn], words: Mapping[str, str], train: Part, test: Part
) -> tuple[list[Column], Tensor, dict[str, str]]:
    """Every column that can be read, the targets of the training rows (n, K of all), and why the others cannot be."""
    columns: list[Column] = []
    targets: list[Tensor] = []
    faults: dict[str, str] = {}
    for name, described in card.items():
        start = sum(part.shape[1] for part in targets)
        told = words.get(name, name)
        made = (_classes if described.kind == "class" else _numbers)(train.labels[name], test.labels[name], described)
        if isinstance(made, str):
            faults[name] = f"{told}: {made}"
            continue
        target, codes, rows, chance = made
        place = slice(start, start + target.shape[1])
        columns.append(Column(name, told, described.kind, described.classes, place, codes, rows, chance))
        targets.append(target)
    return columns, torch.cat(targets, dim=1) if targets else torch.empty(len(train), 0), faults


Made = tuple[Tensor, Tensor, Tensor, float]


def _classes(train: npt.NDArray[Any], test: npt.NDArray[Any], described: CardColumn) -> Made | str:
    count = max(len(described.classes), 1)
    seen = np.bincount(train[train >= 0], minlength=count)
    if (seen > 0).sum() < 2:
        return "all training pictures have one class, so there is nothing to read and nothing to lose"
    usable = seen >= FEWEST
    if usable.sum() < 2:
        return "hardly a class has two training pictures, so it cannot be read from examples"
    rows = np.flatnonzero((test >= 0) & usable[np.clip(test, 0, count - 1)])
    if len(rows) < TESTED:
        return f"{len(rows)} test pictures have a known class, at least {TESTED} are needed"
    chance = float(np.bincount(test[rows]).max() / len(rows))
    if chance == 1.0:
        return "all test pictures have one class, so a loss would not be seen"
    target = functional.one_hot(torch.from_numpy(np.clip(train, 0, None)), count).float()
    return target, torch.from_numpy(test), torch.from_numpy(rows), chance


def _numbers(train: npt.NDArray[Any], test: npt.NDArray[Any], described: CardColumn) -> Made | str:
    known, rows = np.isfinite(train), np.flatnonzero(np.isfinite(test))
    if known.sum() < FEWEST or len(rows) < TESTED:
        return f"{int(known.sum())} training and {len(rows)} test pictures have a number, so it cannot be read"
    mean, spread = float(train[known].mean()), float(test[rows].std())
    if spread <= 1e-12 * max(1.0, abs(mean)) or float(train[known].std()) == 0.0:
        return "all pictures have one number, so there is nothing to read and nothing to lose"
    target = np.where(known, (train - mean) / spread, 0.0)  # an unknown number is the mean, and teaches nothing
    codes = np.where(np.isfinite(test), (test - mean) / spread, 0.0)
    return (
        torch.from_numpy(target).float()[:, None],
        torch.from_numpy(codes).float(),
        torch.from_numpy(rows),
        0.0,
    )


def permuted(targets: Tensor, order: npt.NDArray[np.int64]) -> Tensor:
    """The control: the targets of all rows dealt out anew, columns and their balance kept."""
    return targets[torch.from_numpy(order)]


def named(columns: Sequence[Column], name: str) -> Column | None:
    """The column of that name, if it can be read."""
    return next((column for column in columns if column.name == name), None)
