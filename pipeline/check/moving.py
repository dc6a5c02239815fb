"""What an invariance makes of a part's pictures: the features of several drawn views, applied always or as declared.

A view under a probability p is the picture itself, or what the invariance makes of it when it always acts; so one set
of views serves both.

Legend: n pictures, V views, D features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pipeline.check.sample import EPOCH, Part
from pipeline.check.windows import begun, cut_from_files
from pipeline.keys import Keys
from pipeline.views import Compose, Invariance, Maybe, Repeat, apply_view, draw_parameters

VIEWS = 3  # of a picture
ALIKE = 2000  # number of a view whose parameters all pictures share
STARTED = 1000  # number of the view that a picture of the orbit starts from
CHUNK = 256  # pictures at a time

Views = list[dict[str, Tensor]]
"""For each view the features of every picture, kind to (n, D)."""


@dataclass(frozen=True)
class Moved:
    """Views of one part."""

    views: Views
    changed: Tensor
    """(V, n): whether a view differs from the picture at all"""
    first: Tensor
    """(n, C, H, W): the first view of every picture"""
    second: Tensor
    """the second, or the first again where one was drawn"""

    def as_declared(self, plain: Mapping[str, Tensor], acts: Tensor) -> Views:
        """The views where ``acts`` (V, n), the pictures' own features where not."""
        return [
            {kind: torch.where(acts[number][:, None], view[kind], plain[kind]) for kind in plain}
            for number, view in enumerate(self.views)
        ]


def always(invariance: Any) -> Any:
    """The same invariance with probability 1, and its parts as well."""
    if isinstance(invariance, (Compose, Repeat, Maybe)):
        parts = invariance.of
        inner = tuple(always(part) for part in parts) if isinstance(parts, tuple) else always(parts)
        invariance = invariance.model_copy(update={"of": inner})
    probability = getattr(invariance, "probability", 1.0)
    return invariance if probability == 1.0 else invariance.model_copy(update={"probability": 1.0})


def sometimes(invariance: Any) -> float:
    """The probability that the declaration gives an invariance; 1 where only its parts have one."""
    return float(getattr(invariance, "probability", 1.0))


def moved(
    part: Part,
    invariances: Sequence[Invariance],
    seed: int,
    images: Tensor | None = None,
    count: int = VIEWS,
    first_view: int = 0,
    told: Callable[[int], object] = int,
    alike: bool = False,
) -> Moved:
    """Draw views of every picture of a part, or of other ``images`` under its keys; ``told`` hears of each chunk.

    With ``alike`` all pictures of a view have the same parameters.
    """
    source = part.images if images is None else images
    proof, same = part.proof, np.zeros(len(source), np.int64)
    keys = [
        Keys.of(seed, EPOCH, same, ALIKE + number) if alike else part.keys(seed, first_view + number)
        for number in range(count)
    ]
    changed = torch.empty(count, len(source), dtype=torch.bool)
    images_of = [torch.empty_like(source) for _ in range(min(count, 2))]
    chunks: list[list[dict[str, Tensor]]] = [[] for _ in keys]
    for rows in _chunks(len(source)):
        drawn = [draw_parameters(invariances, each.take(rows)) for each in keys]
        starts = [source[rows]] * count
        if images is None and cut_from_files(part, invariances):
            starts = begun(part, rows, invariances[0], [each[0] for each in drawn])
        for number, (start, parameters) in enumerate(zip(starts, drawn, strict=True)):
            view = apply_view(start, invariances, parameters, part.contract.size)
            changed[number, rows] = (view != part.images[rows]).flatten(1).any(1)
            chunks[number].append(proof.features(view))
            if number < 2:
                images_of[number][rows] = view
            told(len(view))
    found = [{kind: torch.cat([chunk[kind] for chunk in each]) for kind in each[0]} for each in chunks]
    return Moved(found, changed, images_of[0], images_of[-1])


def acts(part: Part, seed: int, probability: float) -> Tensor:
    """Which views a declared probability leaves to the invariance: (V, n)."""
    return torch.stack([part.keys(seed, view).uniform("declared") < probability for view in range(VIEWS)])


def _chunks(count: int) -> Iterator[slice]:
    for start in range(0, count, CHUNK):
        yield slice(start, min(start + CHUNK, count))
