"""The cheap probe of this package: ridge regression whose strength is chosen by generalised cross-validation.

Golub, Heath and Wahba, "Generalized cross-validation as a method for choosing a good ridge parameter", Technometrics 21
(1979): with A the smoother, the strength of least |y - A·y|² / (n - tr A)², which one eigendecomposition gives for all
strengths and all targets. Classes are read as indicator columns, the largest score wins.

What is read is told as *skill*: (accuracy - chance) / (1 - chance) of classes, chance being the share of the largest,
and R² of numbers. 0 is nothing, 1 everything; every layer is asked about the same test rows, resampled together.

n training rows, m test rows, D features, K targets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pipeline.achieved.targets import Target, different
from pipeline.check.interval import Resampled, figure
from pipeline.keys import permutation

PENALTIES = tuple(10.0**power for power in range(-4, 4))
"""Strengths of the ridge, in variances of a standardised feature."""
FEWEST = 20
"""Training rows, and test rows, that a target needs."""
SHUFFLED = "shuffled"
"""The control whose training labels are dealt out anew."""
Floats = npt.NDArray[np.float32]


class Smoother:
    """Training rows (n, D), decomposed once: fits any targets at any strength."""

    def __init__(self, rows: Tensor):
        largest = float(rows.abs().max())
        self.unit = largest if largest > 0 else 1.0  # so that no scale of the features makes them constant
        rows = rows.double() / self.unit
        self.mean, spread = rows.mean(0), rows.std(0, correction=0)
        self.scale = torch.where(spread > 1e-6 * self.mean.abs() + 1e-12, spread, torch.inf)  # a constant tells nothing
        self.rows = (rows - self.mean) / self.scale
        self.wide = self.rows.shape[1] > len(self.rows)
        square = self.rows @ self.rows.T if self.wide else self.rows.T @ self.rows
        values, self.vectors = torch.linalg.eigh(square / len(rows))
        self.values = values.clamp(min=0.0)

    def fit(self, targets: Tensor, groups: Tensor) -> tuple[Tensor, Tensor]:
        """Weights (D, K) and offset (K,) for targets (n, K); those of one group (K,) share their strength."""
        offset = targets.mean(0)
        centred = targets - offset
        n = len(self.rows)
        onto = self.vectors.T @ (centred if self.wide else self.rows.T @ centred)  # (min(n, D), K)
        total = centred.square().sum(0)
        best, chosen = torch.full_like(total, torch.inf), torch.zeros_like(total)
        for penalty in PENALTIES:
            kept = self.values / (self.values + penalty)
            if self.wide:
                left = (onto * (1 - kept)[:, None]).square().sum(0)
            else:
                along = onto.square() / (n * self.values.clamp(min=1e-12))[:, None]
                left = total - (along * (2 * kept - kept.square())[:, None]).sum(0)
            left = left.clamp(min=0.0)
            free = max(n - 1 - float(kept.sum()), 1.0)
            loss = torch.stack([left[groups == group].sum() for group in groups]) / free**2
            better = loss < best
            best, chosen = torch.where(better, loss, best), torch.where(better, penalty, chosen)
        shrunk = onto / (n * (self.values[:, None] + chosen))
        weights = self.vectors @ shrunk
        return (self.rows.T @ weights if self.wide else weights), offset

    def scores(self, rows: Tensor, weights: Tensor, offset: Tensor) -> Tensor:
        """Test rows (m, D) → scores (m, K)."""
        return ((rows.double() / self.unit - self.mean) / self.scale) @ weights + offset


@dataclass(frozen=True)
class Question:
    """One thing that is asked of test rows: what it is, what the training rows say, and chance."""

    name: str
    kind: str
    train: Tensor
    """(n, K): indicators or numbers; of the training rows that count"""
    train_rows: Tensor
    """(n,) bool"""
    test: Tensor
    """(m,) codes, or (m, K) numbers"""
    test_rows: Tensor
    """int64: the test rows that count"""
    chance: float
    """share of the largest class among these; 0 of numbers"""
    classes: int
    """different ones; 0 of numbers"""

    def values(self, scores: Tensor) -> Tensor:
        """What scores (m, K) are worth: (rows,), whose mean is the skill."""
        if self.kind == "class":
            right = (scores[self.test_rows].argmax(1) == self.test[self.test_rows]).double()
            return (right - self.chance) / (1 - self.chance)
        truth = self.test[self.test_rows]
        whole = (truth - truth.mean(0)).square().sum(1).mean()
        return 1 - (scores[self.test_rows] - truth).square().sum(1) / whole


def question(train: Target, test: Target) -> Question | str:
    """What is asked, or why it cannot be: too few rows, or nothing that differs."""
    train_rows, test_rows = train.counts, test.counts.nonzero().flatten()
    if min(int(train_rows.sum()), len(test_rows)) < FEWEST:
        return f"{int(train_rows.sum())} training and {len(test_rows)} test rows; {FEWEST} of each are needed"
    if train.kind == "class":
        seen = test.values[test_rows]
        classes = int(max(train.values[train_rows].max(), seen.max())) + 1
        largest = int(torch.bincount(seen, minlength=classes).max())
        if largest == len(seen) or different(train.values[train_rows]) < 2:
            return "all rows are of one class"
        codes = train.values.clamp(min=0)
        shown = torch.nn.functional.one_hot(codes.clamp(max=classes - 1), classes).double()
        return Question(
            train.name, "class", shown, train_rows, test.values, test_rows, largest / len(seen), different(seen)
        )
    if float(train.values[train_rows].var(0).sum()) < 1e-12 or float(test.values[test_rows].var(0).sum()) < 1e-12:
        return "all rows have one number"
    return Question(train.name, "number", train.values, train_rows, test.values, test_rows, 0.0, 0)


def dealt(asked: Question) -> Question:
    """The same question with the training labels dealt out anew."""
    counted = asked.train_rows.nonzero().flatten()
    order = torch.from_numpy(permutation(0, -8, len(counted)))
    train = asked.train.clone()
    train[counted] = asked.train[counted[order]]
    return Question(
        asked.name, asked.kind, train, asked.train_rows, asked.test, asked.test_rows, asked.chance, asked.classes
    )


def read(train: Floats | Tensor, test: Floats | Tensor, asked: list[Question]) -> list[Tensor]:
    """What one layer knows: for each question the worth of each of its test rows (rows,).

    Args:
        train: (n, D) features of the training rows.
        test: (m, D) features of the test rows.
    """
    rows, unseen = torch.as_tensor(train).double(), torch.as_tensor(test)
    found: dict[int, Tensor] = {}
    alike: dict[bytes, list[int]] = {}
    for number, each in enumerate(asked):
        alike.setdefault(each.train_rows.numpy().tobytes(), []).append(number)
    for numbers in alike.values():  # questions about the same training rows share their decomposition
        chosen = asked[numbers[0]].train_rows
        smoother = Smoother(rows[chosen])
        columns = [asked[number].train[chosen] for number in numbers]
        groups = torch.cat([torch.full((part.shape[1],), place) for place, part in enumerate(columns)])
        weights, offset = smoother.fit(torch.cat(columns, dim=1), groups)
        scores = smoother.scores(unseen, weights, offset)
        for place, number in enumerate(numbers):
            found[number] = asked[number].values(scores[:, groups == place])
    return [found[number] for number in range(len(asked))]


def skill(values: Tensor, asked: Question, resampled: Resampled) -> Tensor:
    """The mean worth over all test rows and over each resample: (R + 1,), not below -1."""
    return resampled.mean(values, asked.test_rows).clamp(min=-1.0)


def told(drawn: Tensor) -> dict[str, float]:
    """A value and its 95 % interval, of (R + 1,), as plain data."""
    value, low, high = figure(drawn)
    return {"value": value, "low": low, "high": high}
