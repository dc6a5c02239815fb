"""*Erased*: what a cheap probe trained and tested on views reads less of a label than one of the pictures.

The probe of the views is trained on all drawn views and tested on each; so it is given what the encoder is given. Of a
group of motions (mirrors, turns, shifts) all pictures go through the same one: a motion that is known hides nothing but
what it cuts off, and what comes of not knowing it is *merged*'s to find. The figure is the part of what is known of the
label, above chance, that is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pipeline.check.interval import Figure, Resampled, figure, kept
from pipeline.check.labels import Column
from pipeline.check.moving import Views
from pipeline.check.reading import Reading, read


@dataclass(frozen=True)
class Left:
    """What is left of one label."""

    figure: Figure | None
    """part of what is known above chance; None where nothing was known"""
    before: float
    after: float
    chance: float
    probe: str
    values: Tensor
    """(rows,) what each test row is worth afterwards"""


def read_views(views: Views, columns: list[Column], targets: Tensor, folds: Tensor) -> Reading:
    """The probe of views: every view of a training picture is a row, in the picture's fold."""
    stacked = {kind: torch.cat([view[kind] for view in views]) for kind in views[0]}
    return read(stacked, columns, targets.repeat(len(views), 1), folds.repeat(len(views)))


def worth(reading: Reading, column: Column, views: Views) -> Tensor:
    """What each test row is worth, for each of its views: (V, rows)."""
    return torch.stack([column.values(reading.scores(column, view)) for view in views])


def left(column: Column, before: Tensor, after: Tensor, probe: str, resampled: Resampled) -> Left:
    """Compare values (rows,) before and after, on the same resampled rows."""
    drawn_before, drawn_after = resampled.mean(before, column.rows), resampled.mean(after, column.rows)
    share = kept(drawn_after, drawn_before, column.chance)
    return Left(
        None if share is None else figure(share),
        float(drawn_before[0]),
        float(drawn_after[0]),
        column.chance,
        probe,
        after,
    )
