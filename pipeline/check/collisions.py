"""Two inputs that an invariance makes the same view: what no encoder of its views can tell apart, whatever the labels.

All inputs go through the same drawn parameters, so that only what the map itself destroys collides (a projection such
as (x1, x2, x3, x4) to (x1, x2, 0, x4)); mirrors, turns and other bijections never do.

Legend: n inputs, pictures (n, C, H, W); those of other modalities need their ``size``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor

from pipeline.check.sample import EPOCH
from pipeline.keys import Keys
from pipeline.samples import Size
from pipeline.views import Parameters, apply_view, draw_parameters

DIGITS = 5  # decimals that two views share to be the same
DRAWS = 2
INPUTS = 2048


def collisions(
    images: Tensor,
    invariance: Any,
    seed: int,
    size: Size | None = None,
    begun: Callable[[slice, Parameters], Tensor] | None = None,
) -> list[tuple[int, int]]:
    """Pairs (i, j) of different inputs whose views are the same under the same parameters, each row at most once.

    Args:
        begun: what the views of some rows begin from, where that is cut from more than the inputs.
    """
    images = images[:INPUTS]
    before = _codes(images)
    found: dict[int, int] = {}
    for draw in range(DRAWS):
        keys = Keys.of(seed, EPOCH, np.zeros(len(images), np.int64), draw)
        drawn = draw_parameters([invariance], keys)
        start = images if begun is None else begun(slice(0, len(images)), drawn[0])
        view = apply_view(start, [invariance], drawn, size or (images.shape[-2], images.shape[-1]))
        if float(view.std()) == 0.0:
            continue  # a black picture for all: erased finds it
        after = _codes(view)
        order = np.lexsort((before, after))
        for left, right in zip(order[:-1].tolist(), order[1:].tolist(), strict=True):
            if after[left] == after[right] and before[left] != before[right]:
                found.setdefault(min(left, right), max(left, right))
    return sorted(found.items())


def _codes(images: Tensor) -> np.ndarray:
    """A number for each input, equal for equal inputs."""
    rows = np.ascontiguousarray(np.round(images.flatten(1).numpy(), DIGITS) + 0.0)
    _, code = np.unique(rows.view(f"V{rows.shape[1] * rows.itemsize}").ravel(), return_inverse=True)
    return np.asarray(code)
