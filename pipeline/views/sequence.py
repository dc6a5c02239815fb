"""A list of invariances, applied in order; neighbouring maps of the plane are composed first and resampled once.

So a shift and a rotation blur once, and the canvas cuts once, at the end: what a shift moves off the canvas a later
rotation brings back. Only a map whose edges are filled otherwise is left apart.

The first invariance may take pictures of any size and fix the size (``image_crop``); uint8 pictures stay uint8 as far
as only whole pixels are moved.

N images (N,C,H,W).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeGuard, get_args

import torch
from torch import Tensor

from pipeline.keys import Keys
from pipeline.views.image_crop import Sizing
from pipeline.views.image_geometry import HorizontalFlip, RightAngle, Rotation, Shift, VerticalFlip
from pipeline.views.image_plane import Parameters, permute, resample
from pipeline.views.image_projection import Affine, Perspective
from pipeline.views.image_resize import crop

if TYPE_CHECKING:
    from pipeline.views import Invariance

Resampled = Shift | Rotation | Affine | Perspective
Motion = Resampled | RightAngle | HorizontalFlip | VerticalFlip
"""An invariance that is a map of the plane."""


def draw_all(invariances: Sequence[Invariance], keys: Keys) -> list[Parameters]:
    """The parameters of every invariance; each has a stream of its own, its position in the list."""
    return [invariance.draw(keys.fold(position)) for position, invariance in enumerate(invariances)]


def apply_all(images: Tensor, invariances: Sequence[Invariance], parameters: Sequence[Parameters]) -> Tensor:
    """Apply the invariances in their order: (N,C,H,W), floating point or uint8 -> (N,C,H,W) floating point."""
    run: list[tuple[Motion, Parameters]] = []
    for invariance, drawn in zip(invariances, parameters, strict=True):
        motion = invariance if isinstance(invariance, get_args(Motion)) else None
        if run and (motion is None or not all(_together(earlier, motion) for earlier, _ in run)):
            images, run = _move(images, run), []
        if motion is not None:
            run.append((motion, drawn))
        elif sizing(invariance):
            images = invariance.apply(images, drawn)
        else:
            images = invariance.apply(as_float(images), drawn)
    return as_float(_move(images, run) if run else images)


def apply_sized(
    images: Tensor | Sequence[Tensor],
    invariances: Sequence[Invariance],
    parameters: Sequence[Parameters],
    size: tuple[int, int],
) -> Tensor:
    """Apply the invariances, the first of which fixes the size: N pictures of any size -> (N,C,*size)."""
    first = invariances[0]
    if not sizing(first):
        raise TypeError(f"invariance {first.kind} does not fix the size")
    heights, widths = torch.tensor([image.shape[-2:] for image in images]).T
    view = crop(images, first.boxes(parameters[0], heights, widths, size), size)
    return apply_all(view, invariances[1:], parameters[1:])


def sizing(invariance: Invariance) -> TypeGuard[Sizing]:
    """Whether an invariance may stand first where pictures have other sizes than the view."""
    return isinstance(invariance, get_args(Sizing))


def as_float(images: Tensor) -> Tensor:
    """uint8 as float32 in [0, 1]; floating point as it is."""
    return images if images.is_floating_point() else images.float().div_(255.0)


def _together(first: Motion, second: Motion) -> bool:
    """Whether two motions are one resampling: what comes in at the edges must be the same."""
    return len({motion.fill for motion in (first, second) if isinstance(motion, get_args(Resampled))}) <= 1


def _move(images: Tensor, motions: Sequence[tuple[Motion, Parameters]]) -> Tensor:
    """Apply motions, in their order, as one map."""
    matrix = torch.eye(3).expand(len(images), 3, 3)
    for motion, parameters in motions:
        matrix = matrix @ motion.matrix(parameters, *images.shape[-2:])
    fills = [motion.fill for motion, _ in motions if isinstance(motion, get_args(Resampled))]
    return resample(as_float(images), matrix, fills[0]) if fills else permute(images, matrix)
