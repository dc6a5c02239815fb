"""What was drawn for a transformation, as something that a probe can be asked: which turn, gray or not, how far.

Angles and hues are points of a circle; zooms and areas are logarithms. What a part did not do (it was not chosen, it
did not act) does not count for its parameters. Where nothing that was drawn can be asked (the key of a random matrix),
the change of each channel's mean is.

n pictures (n, C, H, W), or waves (n, C, T).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from pipeline.views import Code, Erase, Invariance, Parameters, ResizedCrop
from pipeline.views.combinators import Choose, Compose, Maybe, Repeat
from pipeline.views.image_crop import fitting_boxes

KEYS = ("word", "order")
"""Parameters that are keys or orders, which no picture shows as they are."""
TURNS = {"degrees": 360.0, "turn": 1.0, "hue": 1.0}
"""Parameters on a circle: how much of each is once around."""
RATIOS = ("scale",)
FEW = 8  # different whole numbers up to which they are classes
WIDE = 16  # numbers of one parameter that are asked, at most


@dataclass(frozen=True)
class Target:
    """One parameter of a transformation for each of n pictures."""

    name: str
    kind: Literal["class", "number"]
    values: Tensor
    """(n,) int64 codes, or (n, k) float64"""
    counts: Tensor
    """(n,) bool: whether the parameter had any effect"""


def targets(invariance: Invariance, drawn: Parameters, before: Tensor, after: Tensor) -> list[Target]:
    """Every parameter that varies; of ``before`` and ``after`` (n, C, H, W) the change where there is no other."""
    rows = torch.ones(len(before), dtype=torch.bool)
    size = before.shape[-2], before.shape[-1]
    found = [target for target in _of(invariance, drawn, "", rows, size) if _varies(target)]
    if not found:
        change = (after - before).flatten(2).mean(2).double()
        found = [target for target in [Target("channel_means", "number", change, rows)] if _varies(target)]
    return found


def _of(
    invariance: Invariance, drawn: Parameters, prefix: str, rows: Tensor, size: tuple[int, int]
) -> Iterator[Target]:
    if isinstance(invariance, Maybe | Choose | Compose | Repeat):
        yield from _parts(invariance, drawn, prefix, rows, size)
    elif isinstance(invariance, ResizedCrop):
        yield from _boxes(invariance, drawn, prefix, rows, size)
    elif isinstance(invariance, Erase):
        box, fits = fitting_boxes(drawn, *_sides(len(rows), size))
        erased = drawn["erased"] & fits
        yield Target(f"{prefix}erased", "class", erased.long(), rows)
        yield Target(f"{prefix}centre", "number", _centres(box, size), rows & erased)
    else:
        acts = drawn["acts"].bool() if isinstance(invariance, Code) else torch.ones_like(rows)
        for name, values in drawn.items():
            if name.rpartition(".")[2] not in KEYS:
                counts = rows if name == "acts" else rows & acts
                yield from _plain(f"{prefix}{name.removeprefix('drawn.')}", values, counts)


def _parts(
    invariance: Maybe | Choose | Compose | Repeat,
    drawn: Parameters,
    prefix: str,
    rows: Tensor,
    size: tuple[int, int],
) -> Iterator[Target]:
    """Parameters of a combinator's parts; what is repeated blurs its own parameters, and tells none."""
    if isinstance(invariance, Repeat) and invariance.times > 1:
        return
    if isinstance(invariance, Maybe):
        yield Target(f"{prefix}acts", "class", drawn["acts"].long(), rows)
    if isinstance(invariance, Choose):
        yield Target(f"{prefix}chosen", "class", drawn["chosen"].long(), rows)
    for number, part in enumerate(invariance.parts):
        counts = rows
        if isinstance(invariance, Maybe):
            counts = rows & drawn["acts"]
        if isinstance(invariance, Choose):
            counts = rows & (drawn["chosen"] == number)
        start = f"{number}."
        own = {name.removeprefix(start): values for name, values in drawn.items() if name.startswith(start)}
        yield from _of(part, own, f"{prefix}{part.kind}.", counts, size)


def _boxes(crop: ResizedCrop, drawn: Parameters, prefix: str, rows: Tensor, size: tuple[int, int]) -> Iterator[Target]:
    box = crop.boxes(drawn, *_sides(len(rows), size), size)
    tall, wide = box[:, 2].double(), box[:, 3].double()
    yield Target(f"{prefix}cropped", "class", drawn["cropped"].long(), rows)
    cut = rows & drawn["cropped"]
    yield Target(f"{prefix}centre", "number", _centres(box, size), cut)
    yield Target(f"{prefix}area", "number", (tall * wide).log()[:, None], cut)
    yield Target(f"{prefix}aspect", "number", (wide / tall).log()[:, None], cut)


def _centres(box: Tensor, size: tuple[int, int]) -> Tensor:
    """Middle of boxes (n, 4) in sides of the canvas: (n, 2)."""
    middle = torch.stack([box[:, 0] + box[:, 2] / 2, box[:, 1] + box[:, 3] / 2], dim=1).double()
    return middle / torch.tensor(size, dtype=torch.float64)


def _plain(name: str, values: Tensor, counts: Tensor) -> Iterator[Target]:
    last = name.rpartition(".")[2]
    if values.dtype == torch.bool or (not values.is_floating_point() and values.ndim == 1 and different(values) <= FEW):
        yield Target(name, "class", values.long(), counts)
    elif last in TURNS and values.ndim == 1:
        angle = values.double() * (2 * math.pi / TURNS[last])
        yield Target(name, "number", torch.stack([angle.cos(), angle.sin()], dim=1), counts)
    else:
        numbers = values.double().reshape(len(values), -1)
        if numbers.shape[1] <= WIDE:
            yield Target(name, "number", numbers.log() if last in RATIOS else numbers, counts)


def _sides(count: int, size: tuple[int, int]) -> tuple[Tensor, Tensor]:
    return torch.full((count,), size[0]), torch.full((count,), size[1])


def different(values: Tensor) -> int:
    """How many different values there are."""
    return len(np.unique(values.numpy()))


def _varies(target: Target) -> bool:
    values = target.values[target.counts]
    if len(values) < 2:
        return False
    if target.kind == "class":
        return different(values) > 1
    return bool(values.isfinite().all()) and float(values.var(0).sum()) > 1e-12
