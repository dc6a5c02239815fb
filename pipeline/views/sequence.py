"""A list of invariances, applied in order; neighbouring maps of the plane are composed first and resampled once.

So a shift and a rotation blur once, and the canvas cuts once, at the end: what a shift moves off the canvas a later
rotation brings back. Only a map whose edges are filled otherwise is left apart. Likewise a resizing takes the mirrors
that follow it along, and a jitter by colour matrix its neighbours of that kind and grays.

The first invariance may take pictures of any size and fix the size (``image_crop``); uint8 pictures stay uint8 as far
as only whole pixels are moved.

N images (N,C,H,W).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeGuard, get_args

import torch
from torch import Tensor

from pipeline.keys import Keys
from pipeline.views.image_colour import Grayscale
from pipeline.views.image_crop import Sizing
from pipeline.views.image_geometry import HorizontalFlip, RightAngle, Rotation, Shift, VerticalFlip
from pipeline.views.image_jitter import ColorJitter, jitter
from pipeline.views.image_matrix import grayed, jittered, mean_colour, mix, unmixed
from pipeline.views.image_plane import Parameters, as_float, permute, resample
from pipeline.views.image_projection import Affine, Perspective
from pipeline.views.image_resize import crop

if TYPE_CHECKING:
    from pipeline.views import Invariance

Resampled = Shift | Rotation | Affine | Perspective
Mirror = HorizontalFlip | VerticalFlip
Motion = Resampled | RightAngle | Mirror
"""An invariance that is a map of the plane."""
Step = tuple[Any, Parameters]
"""An invariance, and what was drawn for it."""


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
    steps = list(zip(invariances, parameters, strict=True))
    while steps:
        first, drawn = steps[0]
        count = next(
            (number for number in range(1, len(steps)) if not _together(steps[:number], steps[number])), len(steps)
        )
        taken, steps = steps[:count], steps[count:]
        if sizing(first):
            images = _resize(images, first, taken, size or (images[0].shape[-2], images[0].shape[-1]))
            continue
        if not isinstance(images, Tensor):
            raise TypeError(f"invariance {first.kind} needs images of one size")
        if isinstance(first, get_args(Motion)):
            images = _move(images, taken)
        elif isinstance(first, ColorJitter):
            images = _jitter(images, taken)
        else:
            images = first.apply(as_float(images), drawn)
    if not isinstance(images, Tensor):
        raise TypeError("nothing brings the images to one size")
    return as_float(images)


def sizing(invariance: Invariance) -> TypeGuard[Sizing]:
    """Whether an invariance may stand first where pictures have other sizes than the view."""
    return isinstance(invariance, get_args(Sizing))


def _together(steps: Sequence[Step], other: Step) -> bool:
    """Whether a step is one with those before it."""
    first, invariance = steps[0][0], other[0]
    if sizing(first):
        return isinstance(invariance, get_args(Mirror))
    if isinstance(first, ColorJitter):
        again = isinstance(invariance, ColorJitter) and invariance.method == first.method == "matrix"
        return again or isinstance(invariance, Grayscale)
    if not isinstance(first, get_args(Motion)) or not isinstance(invariance, get_args(Motion)):
        return False
    # one resampling: what comes in at the edges must be the same
    motions = [*(earlier for earlier, _ in steps), invariance]
    return len({motion.fill for motion in motions if isinstance(motion, get_args(Resampled))}) <= 1


def _resize(images: Tensor | Sequence[Tensor], first: Sizing, steps: Sequence[Step], size: tuple[int, int]) -> Tensor:
    """Bring boxes of pictures to their size, mirrored by the steps that follow."""
    if isinstance(images, Tensor):
        heights, widths = (torch.full((len(images),), side) for side in images.shape[-2:])
    else:
        heights, widths = torch.tensor([image.shape[-2:] for image in images]).T
    mirrored = torch.zeros(len(images), 2, dtype=torch.bool)
    for mirror, drawn in steps[1:]:
        mirrored[:, int(isinstance(mirror, HorizontalFlip))] ^= drawn["flipped"]
    return crop(images, first.boxes(steps[0][1], heights, widths, size), size, mirrored)


def _move(images: Tensor, motions: Sequence[Step]) -> Tensor:
    """Apply motions, in their order, as one map."""
    matrix = torch.eye(3).expand(len(images), 3, 3)
    for motion, parameters in motions:
        matrix = matrix @ motion.matrix(parameters, *images.shape[-2:])
    fills = [motion.fill for motion, _ in motions if isinstance(motion, get_args(Resampled))]
    return resample(as_float(images), matrix, fills[0]) if fills else permute(images, matrix)


def _jitter(images: Tensor, steps: Sequence[Step]) -> Tensor:
    """Apply a jitter and the grays after it; with others of their kind, all as one matrix a picture if it is by matrix.

    Values are then cut to [0, 1] once, at the end.
    """
    first, drawn = steps[0]
    if first.method == "exact":
        return jitter(images, drawn, [parameters["gray"] for _, parameters in steps[1:]])
    mean = mean_colour(images)
    matrix = unmixed(mean)
    for invariance, drawn in steps:
        matrix = grayed(matrix, drawn["gray"]) if isinstance(invariance, Grayscale) else jittered(matrix, mean, drawn)
    return mix(images, matrix)
