"""Which neighbours in a list of invariances are one operation.

Maps of the plane are composed first and resampled once: so a shift and a rotation blur once, and the canvas cuts once,
at the end: what a shift moves off the canvas a later rotation brings back. Only a map whose edges are filled otherwise
is left apart. A resizing takes the mirrors that follow it along, and a jitter by colour matrix its neighbours of that
kind and grays; their values are cut to [0, 1] once, at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard, get_args

import torch
from torch import Tensor

from pipeline.views.image_colour import Grayscale
from pipeline.views.image_crop import Sizing
from pipeline.views.image_geometry import HorizontalFlip, RightAngle, Rotation, Shift, VerticalFlip
from pipeline.views.image_jitter import ColorJitter
from pipeline.views.image_matrix import followed, grayed, jitter_mixture
from pipeline.views.image_plane import Parameters
from pipeline.views.image_projection import Affine, Perspective

Resampled = Shift | Rotation | Affine | Perspective
Mirror = HorizontalFlip | VerticalFlip
Motion = Resampled | RightAngle | Mirror
"""An invariance that is a map of the plane."""
Step = tuple[Any, Parameters]
"""An invariance, and what was drawn for it."""


def grouped(steps: Sequence[Step]) -> list[list[Step]]:
    """The steps in their order, those that are one operation in one list."""
    groups: list[list[Step]] = []
    for step in steps:
        if groups and _together(groups[-1], step[0]):
            groups[-1].append(step)
        else:
            groups.append([step])
    return groups


def sizing(invariance: Any) -> TypeGuard[Sizing]:
    """Whether an invariance may stand first where pictures have other sizes than the view."""
    return isinstance(invariance, get_args(Sizing))


def by_matrix(invariance: Any) -> TypeGuard[ColorJitter]:
    """Whether an invariance is approximated by a colour matrix."""
    return isinstance(invariance, ColorJitter) and invariance.method == "matrix"


def mirrored(mirrors: Sequence[Step], count: int) -> Tensor:
    """What mirrors do together: (count,2) bool, upside down and left side right."""
    turned = torch.zeros(count, 2, dtype=torch.bool)
    for mirror, drawn in mirrors:
        turned[:, int(isinstance(mirror, HorizontalFlip))] ^= drawn["flipped"]
    return turned


def mixture(steps: Sequence[Step]) -> Tensor:
    """What jitters by colour matrix and grays do together, a jitter first: (N,3,6)."""
    mixed = jitter_mixture(steps[0][1])
    for invariance, drawn in steps[1:]:
        gray = isinstance(invariance, Grayscale)
        mixed = grayed(mixed, drawn["gray"]) if gray else followed(mixed, jitter_mixture(drawn))
    return mixed


def _together(group: Sequence[Step], invariance: Any) -> bool:
    first = group[0][0]
    if sizing(first):
        return isinstance(invariance, get_args(Mirror))
    if by_matrix(first):
        return by_matrix(invariance) or isinstance(invariance, Grayscale)
    if not isinstance(first, get_args(Motion)) or not isinstance(invariance, get_args(Motion)):
        return False
    # one resampling: what comes in at the edges must be the same
    motions = [*(earlier for earlier, _ in group), invariance]
    return len({motion.fill for motion in motions if isinstance(motion, get_args(Resampled))}) <= 1
