"""A list of invariances, applied in order, neighbours together where they are one operation.

The first may take pictures of any size and fix the size (``image_crop``).

N images (N,C,H,W).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

import torch
from torch import Tensor

from pipeline.keys import Keys
from pipeline.views.grouping import Motion, Resampled, Step, by_matrix, grouped, mirrored, mixture, sizing
from pipeline.views.image_matrix import mix
from pipeline.views.image_plane import Parameters, as_float, permute, resample
from pipeline.views.image_resize import crop
from pipeline.views.one_by_one import chain, run

if TYPE_CHECKING:
    from pipeline.views import Invariance


def draw_all(invariances: Sequence[Invariance], keys: Keys) -> list[Parameters]:
    """The parameters of every invariance; each has a stream of its own, its position in the list."""
    return [invariance.draw(keys.fold(position)) for position, invariance in enumerate(invariances)]


def apply_all(
    images: Tensor | Sequence[Tensor],
    invariances: Sequence[Invariance],
    parameters: Sequence[Parameters],
    size: tuple[int, int] | None = None,
) -> Tensor:
    """Apply the invariances in their order: N images, floating point or uint8 -> (N,C,*size) floating point.

    ``size`` is theirs, if it is None; images of other sizes need a sizing first.
    """
    size = size or (images[0].shape[-2], images[0].shape[-1])
    groups = grouped(list(zip(invariances, parameters, strict=True)))
    while groups:
        operations = chain(images, groups, size)
        images = run(images, operations) if operations else _at_once(images, groups[0], size)
        groups = groups[max(1, len(operations)) :]
    if not isinstance(images, Tensor):
        raise TypeError("nothing brings the images to one size")
    return as_float(images)


def _at_once(images: Tensor | Sequence[Tensor], group: Sequence[Step], size: tuple[int, int]) -> Tensor:
    """Apply neighbours that are one operation to a batch."""
    first, drawn = group[0]
    if not isinstance(images, Tensor):
        raise TypeError(f"invariance {first.kind} needs images of one size")
    if sizing(first):
        heights, widths = (torch.full((len(images),), side) for side in images.shape[-2:])
        return crop(images, first.boxes(drawn, heights, widths, size), size, mirrored(group[1:], len(images)))
    if isinstance(first, get_args(Motion)):
        return _move(images, group)
    if by_matrix(first):
        return mix(as_float(images), mixture(group, len(images)))
    applied: Tensor = first.apply(as_float(images), drawn)
    return applied


def _move(images: Tensor, motions: Sequence[Step]) -> Tensor:
    """Apply motions, in their order, as one map."""
    matrix = torch.eye(3).expand(len(images), 3, 3)
    for motion, parameters in motions:
        matrix = matrix @ motion.matrix(parameters, *images.shape[-2:])
    fills = [motion.fill for motion, _ in motions if isinstance(motion, get_args(Resampled))]
    return resample(as_float(images), matrix, fills[0]) if fills else permute(images, matrix)
