"""A list of invariances, applied in order; neighbouring maps of the plane are composed first and resampled once.

So a shift and a rotation blur once, and the canvas cuts once, at the end: what a shift moves off the canvas a later
rotation brings back. Only a map whose edges are filled otherwise is left apart.

N images (N,C,H,W).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

import torch
from torch import Tensor

from pipeline.keys import Keys
from pipeline.views.image_geometry import HorizontalFlip, RightAngle, Rotation, Shift, VerticalFlip
from pipeline.views.image_plane import Parameters, permute, resample
from pipeline.views.image_projection import Affine, Perspective

if TYPE_CHECKING:
    from pipeline.views import Invariance

Resampled = Shift | Rotation | Affine | Perspective
Motion = Resampled | RightAngle | HorizontalFlip | VerticalFlip
"""An invariance that is a map of the plane."""


def draw_all(invariances: Sequence[Invariance], keys: Keys) -> list[Parameters]:
    """The parameters of every invariance; each has a stream of its own, its position in the list."""
    return [invariance.draw(keys.fold(position)) for position, invariance in enumerate(invariances)]


def apply_all(images: Tensor, invariances: Sequence[Invariance], parameters: Sequence[Parameters]) -> Tensor:
    """Apply the invariances in their order: (N,C,H,W) -> (N,C,H,W)."""
    run: list[tuple[Motion, Parameters]] = []
    for invariance, drawn in zip(invariances, parameters, strict=True):
        motion = invariance if isinstance(invariance, get_args(Motion)) else None
        if run and (motion is None or not all(_together(earlier, motion) for earlier, _ in run)):
            images, run = _move(images, run), []
        if motion is not None:
            run.append((motion, drawn))
        else:
            images = invariance.apply(images, drawn)
    return _move(images, run) if run else images


def _together(first: Motion, second: Motion) -> bool:
    """Whether two motions are one resampling: what comes in at the edges must be the same."""
    return len({motion.fill for motion in (first, second) if isinstance(motion, get_args(Resampled))}) <= 1


def _move(images: Tensor, motions: Sequence[tuple[Motion, Parameters]]) -> Tensor:
    """Apply motions, in their order, as one map."""
    matrix = torch.eye(3).expand(len(images), 3, 3)
    for motion, parameters in motions:
        matrix = matrix @ motion.matrix(parameters, *images.shape[-2:])
    fills = [motion.fill for motion, _ in motions if isinstance(motion, get_args(Resampled))]
    return resample(images, matrix, fills[0]) if fills else permute(images, matrix)
