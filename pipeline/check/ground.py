"""What all findings stand on: the sample, its features, its labels, and what a cheap probe reads before anything moves.

The control is the same probe on labels dealt out anew: a label that is not read better than that was never readable,
and nothing can be said of what is lost of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pipeline.check.interval import Figure, Resampled, figure
from pipeline.check.labels import Column, columns_of, permuted
from pipeline.check.reading import Reading, read
from pipeline.check.sample import Part, take
from pipeline.check.section import Check
from pipeline.keys import permutation
from pipeline.shards import Shards

CONTROL = -5  # of the order in which the control deals labels out


@dataclass(frozen=True)
class Ground:
    """The sample and what is read of it as it is."""

    check: Check
    train: Part
    test: Part
    plain_train: dict[str, Tensor]
    plain_test: dict[str, Tensor]
    columns: list[Column]
    targets: Tensor
    faults: dict[str, str]
    """columns that cannot be read, and why"""
    folds: Tensor
    before: Reading
    resampled: Resampled
    values: Mapping[str, Tensor]
    """column to what each test row is worth"""
    above: Mapping[str, Figure]
    """column to its accuracy (or R²) above chance and above the control, whichever is less"""

    def readable(self, column: Column) -> bool:
        """Whether the label was ever readable: its interval above chance and control does not reach 0."""
        return self.above[column.name][1] > 0


def prepare(shards: Shards, check: Check, told: Callable[[int], object] = int) -> Ground:
    """Take the sample, compute its features and read every label; ``told`` hears of pictures that are done."""
    train, test = take(shards, check)
    plain_train, plain_test = (part.proof.features(part.images) for part in (train, test))
    told(len(train) + len(test))
    columns, targets, faults = columns_of(shards.card.columns, check.words, train, test)
    folds, resampled = train.folds(), Resampled.of(test.groups, check.seed)
    if not columns:
        empty = Reading({}, {})
        return Ground(check, train, test, plain_train, plain_test, [], targets, faults, folds, empty, resampled, {}, {})
    dealt = permuted(targets, permutation(check.seed, CONTROL, len(train)))
    both = read(plain_train, columns, torch.cat([targets, dealt], dim=1), folds)
    values, above = {}, {}
    for column in columns:
        own = column.values(both.scores(column, plain_test))
        moved_on = slice(column.place.start + targets.shape[1], column.place.stop + targets.shape[1])
        chosen = replace(column, place=moved_on)
        control = chosen.values(both.scores(chosen, plain_test))
        gain = resampled.mean(own, column.rows) - column.chance
        over = resampled.mean(own, column.rows) - resampled.mean(control, column.rows)
        values[column.name], above[column.name] = own, figure(torch.minimum(gain, over))
    return Ground(
        check, train, test, plain_train, plain_test, columns, targets, faults, folds, both, resampled, values, above
    )
