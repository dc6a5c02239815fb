"""*Merged*: what is left of a label once a picture and its views share one representation.

A representation that ignores t is a function of what all views of a picture have in common. So the probe reads features
that are symmetrised over t: their mean over drawn views, and their second moment about it. Mirrors, turns and other
groups erase nothing, but a picture and its mirror image must then be one point: for them the views start from the
picture or, as often, from what t makes of it, which leaves the probe no hint of where they started (the Reynolds
operator of a group, with a random origin).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pipeline.check.moving import STARTED, Moved, Views, moved
from pipeline.check.sample import Part


def symmetrised(views: Views) -> dict[str, Tensor]:
    """Mean over views and the variance over them: kind to (n, 2D).

    Of all features side by side only the mean is read: their variances would be more columns than most data has rows.
    """
    found = {}
    for kind in views[0]:
        mean = sum((view[kind] for view in views[1:]), views[0][kind]) / len(views)
        found[kind] = mean
        if kind != "all":
            spread = sum(((view[kind] - mean).square() for view in views[1:]), (views[0][kind] - mean).square())
            found[kind] = torch.cat([mean, spread / len(views)], dim=1)
    return found


def from_anywhere(part: Part, invariance: Any, drawn: Moved, seed: int, told: Callable[[int], object] = int) -> Views:
    """Views that start from the picture or, of every second picture, from what the invariance makes of it."""
    if not invariance.group:
        return drawn.views
    keys = part.keys(seed, STARTED)
    starts = keys.uniform("start") < 0.5
    rows = starts.nonzero().flatten()
    if not len(rows):
        return drawn.views
    chosen = Part(
        part.images[rows],
        part.numbers[rows.numpy()],
        {name: values[rows.numpy()] for name, values in part.labels.items()},
        part.groups[rows.numpy()],
        part.contract,
    )
    begun = moved(chosen, [invariance], seed, count=1, first_view=STARTED).first
    again = moved(chosen, [invariance], seed, images=begun, told=told)
    views = []
    for plain, other in zip(drawn.views, again.views, strict=True):
        views.append({kind: plain[kind].index_copy(0, rows, other[kind]) for kind in plain})
    return views
