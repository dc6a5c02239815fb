"""What one invariance (or all together) does to every label: the numbers behind erased, merged and transported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pipeline.check.erased import Left, left, read_views, worth
from pipeline.check.ground import Ground
from pipeline.check.interval import SMALL, Figure, figure
from pipeline.check.labels import Column
from pipeline.check.merged import from_anywhere, symmetrised
from pipeline.check.moving import Moved, Views, acts, always, moved, sometimes
from pipeline.check.reading import read
from pipeline.check.transported import Change, changes


@dataclass(frozen=True)
class Loss:
    """One label under one invariance."""

    column: Column
    erased: Left
    erased_always: Left
    """the same object where the probability is 1, or where it does not matter"""
    merged: Left
    """of the views as declared"""
    merged_always: Left
    """once the picture and whatever the invariance makes of it are one"""
    retained: Left
    """what the probe of the pictures reads from the views as declared"""
    retained_always: Left
    carried: Figure | None
    """the last, in what a probe of the views reads: None where that is nothing"""
    changes: tuple[Change, ...]
    read: Tensor
    """(m,) what the probe of the pictures reads from the first view, classes only"""


@dataclass(frozen=True)
class Judged:
    """One invariance, or all together."""

    losses: dict[str, Loss]
    train: tuple[Views, Moved]
    """views as declared, and as always"""
    test: tuple[Views, Moved]
    probability: float


def judge(
    ground: Ground, invariances: Sequence[Any], together: bool = False, told: Callable[[int], object] = int
) -> Judged:
    """Draw views of both parts under one invariance, or under a whole list that is taken as it is declared."""
    seed, probability = ground.check.seed, 1.0 if together else sometimes(invariances[0])
    acting = list(invariances) if together else [always(invariances[0])]
    train, test = (moved(part, acting, seed, told=told) for part in (ground.train, ground.test))
    views_train, views_test = train.views, test.views
    if probability < 1:
        views_train = train.as_declared(ground.plain_train, acts(ground.train, seed, probability))
        views_test = test.as_declared(ground.plain_test, acts(ground.test, seed, probability))
    judged = Judged({}, (views_train, train), (views_test, test), probability)
    if ground.columns:
        origins = (train.views, test.views)
        if not together:
            origins = (
                from_anywhere(ground.train, acting[0], train, seed, told),
                from_anywhere(ground.test, acting[0], test, seed, told),
            )
        alike = None if together or not acting[0].group else _alike(ground, acting[0])
        judged.losses.update(_losses(ground, judged, origins, alike))
    return judged


def _alike(ground: Ground, invariance: Any) -> dict[str, Left]:
    """What one member of a group, the same for all pictures, erases: a known motion hides nothing but what it cuts."""
    train, test = (
        moved(part, [invariance], ground.check.seed, count=1, alike=True).views for part in (ground.train, ground.test)
    )
    reading = read(train[0], ground.columns, ground.targets, ground.folds)
    return {
        each.name: _left(ground, each, each.values(reading.scores(each, test[0])), reading.chosen[each.name][0])
        for each in ground.columns
    }


def _losses(
    ground: Ground, judged: Judged, origins: tuple[Views, Views], alike: dict[str, Left] | None
) -> dict[str, Loss]:
    (views_train, train), (views_test, test) = judged.train, judged.test
    columns, targets, folds = ground.columns, ground.targets, ground.folds
    reading_always = read_views(train.views, columns, targets, folds)
    reading = reading_always if judged.probability == 1 else read_views(views_train, columns, targets, folds)

    def symmetric(one: Views, other: Views) -> dict[str, Left]:
        fitted, held = read(symmetrised(one), columns, targets, folds), symmetrised(other)
        return {
            each.name: _left(ground, each, each.values(fitted.scores(each, held)), fitted.chosen[each.name][0])
            for each in columns
        }

    merged_always = symmetric(*origins)
    merged = merged_always if judged.probability == 1 else symmetric(views_train, views_test)
    found = {}
    for column in columns:
        probe, name = ground.before.chosen[column.name][0], column.name
        plain = ground.values[name]
        acted = test.changed[:, column.rows]
        read_always = _changed(worth(reading_always, column, test.views), acted, plain)
        carried_always = _changed(worth(ground.before, column, test.views), acted, plain)
        plain_scores = ground.before.scores(column, ground.plain_test)
        view_scores = ground.before.scores(column, test.views[0])
        if alike is not None:
            erased = erased_always = alike[name]
        else:
            always_worth = worth(reading_always, column, test.views).mean(0)
            erased = erased_always = _left(ground, column, always_worth, reading_always.chosen[name][0])
            if judged.probability < 1:
                erased = _left(ground, column, worth(reading, column, views_test).mean(0), reading.chosen[name][0])
        found[name] = Loss(
            column,
            erased,
            erased_always,
            merged[name],
            merged_always[name],
            _left(ground, column, worth(ground.before, column, views_test).mean(0), probe),
            _left(ground, column, carried_always, probe),
            _carried(ground, column, carried_always, read_always),
            tuple(
                changes(
                    column,
                    plain_scores,
                    view_scores,
                    test.changed[0],
                    ground.plain_train[probe],
                    ground.plain_test[probe],
                    test.views[0][probe],
                    torch.from_numpy(ground.train.labels[name]),
                )
            )
            if ground.readable(column)
            else (),
            view_scores.argmax(1),
        )
    return found


def _left(ground: Ground, column: Column, after: Tensor, probe: str) -> Left:
    return left(column, ground.values[column.name], after, probe, ground.resampled)


def _changed(values: Tensor, acted: Tensor, plain: Tensor) -> Tensor:
    """The mean of values (V, rows) over the views that differ from the picture; the picture's own where none does."""
    count = acted.sum(0)
    mean = (values * acted).sum(0) / count.clamp(min=1)
    return torch.where(count > 0, mean, plain)


def _carried(ground: Ground, column: Column, transported: Tensor, trained: Tensor) -> Figure | None:
    """What a probe of the pictures reads from the views, in parts of what a probe of the views does."""
    means = ground.resampled.mean
    reach = torch.minimum(means(trained, column.rows), means(ground.values[column.name], column.rows)) - column.chance
    if float(figure(reach)[1]) <= SMALL:
        return None
    return figure((means(transported, column.rows) - column.chance) / reach.clamp(min=SMALL))
