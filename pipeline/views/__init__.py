"""Floor 1: invariances, the declaration of what a latent space ignores, and the views that they make.

A view is one random transformation of a sample; here it is a pure function of (image, key). The parameters are drawn
from counter-based keys, so neither the batch, nor its order, nor its other rows have any effect.

N images (N,C,H,W), floating point, values in [0, 1].
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, get_args

import torch
from pydantic import Field
from torch import Tensor

from pipeline.keys import Keys
from pipeline.spec import Refusal
from pipeline.views.factors import FACTORS, MEANINGS, SYNONYMS, factor
from pipeline.views.image_colour import Brightness, ColorJitter, Contrast, Grayscale, Hue, Saturation
from pipeline.views.image_crop import ResizedCrop
from pipeline.views.image_detail import Blur, Noise
from pipeline.views.image_geometry import (
    HorizontalFlip,
    Motion,
    Parameters,
    RightAngle,
    Rotation,
    Shift,
    VerticalFlip,
    move,
    together,
)

Invariance = Annotated[
    Shift
    | Rotation
    | RightAngle
    | HorizontalFlip
    | VerticalFlip
    | ResizedCrop
    | Brightness
    | Contrast
    | Saturation
    | Hue
    | ColorJitter
    | Grayscale
    | Blur
    | Noise,
    Field(discriminator="kind"),
]
"""One thing that the space must ignore.

Each has ``draw(keys)``, ``apply(images, parameters)``, ``at(strength)`` (0 the identity, 1 itself),
``channels_fault(channels)``, and says what it ``removes`` (factors), whether it is ``invertible`` (another of its kind
undoes it, but for rounding and the canvas's edge) and whether all of its kind form a ``group``.
"""

BLOCK = 2**20  # values that are worked on at a time on a CPU: 4 MiB

__all__ = [
    "FACTORS",
    "MEANINGS",
    "SYNONYMS",
    "Invariance",
    "Parameters",
    "apply_view",
    "draw_parameters",
    "draw_view",
    "factor",
    "fault",
    "removed",
]


def draw_view(images: Tensor, invariances: Sequence[Invariance], keys: Keys) -> Tensor:
    """One view of every image: (N,C,H,W) -> (N,C,H,W), of the same type, on the same device.

    The images are not written to, but are themselves returned where nothing acts on them.

    Args:
        images: (N,C,H,W) floating point, values in [0, 1].
        invariances: in their order of application; neighbouring motions are one resampling.
        keys: N keys, of (seed, epoch, sample, view).

    Raises:
        Refusal: an invariance cannot be used on images of this size or number of channels.
        ValueError: the images are no floating-point batch, or the keys are not as many.
    """
    return apply_view(images, invariances, draw_parameters(invariances, keys))


def draw_parameters(invariances: Sequence[Invariance], keys: Keys) -> list[Parameters]:
    """The parameters of every invariance: tensors (N,...) by name, on the CPU; each has a stream of its own."""
    return [invariance.draw(keys.fold(position)) for position, invariance in enumerate(invariances)]


def apply_view(images: Tensor, invariances: Sequence[Invariance], parameters: Sequence[Parameters]) -> Tensor:
    """Apply the invariances with given parameters: (N,C,H,W) -> (N,C,H,W). Raises as ``draw_view`` does."""
    if images.ndim != 4 or not images.is_floating_point():
        raise ValueError(f"images must be (N,C,H,W) floating point, not {tuple(images.shape)} {images.dtype}")
    for invariance, drawn in zip(invariances, parameters, strict=True):
        reason = fault(invariance, *images.shape[1:])
        if reason:
            raise Refusal(f"invariance {invariance.kind}: {reason}")
        if any(len(values) != len(images) for values in drawn.values()):
            raise ValueError(f"invariance {invariance.kind}: parameters of other than {len(images)} images")
    if not len(images):
        return images.clone()
    # blocks that stay in the cache; a view is a function of its own row, so blocks change nothing
    count = max(1, BLOCK // images[0].numel()) if images.device.type == "cpu" else len(images)
    parts = []
    for start in range(0, len(images), count):
        rows = slice(start, start + count)
        block = [{name: values[rows] for name, values in drawn.items()} for drawn in parameters]
        parts.append(_apply(images[rows], invariances, block))
    return torch.cat(parts) if len(parts) > 1 else parts[0]


def _apply(images: Tensor, invariances: Sequence[Invariance], parameters: Sequence[Parameters]) -> Tensor:
    # half precision has too few digits for coordinates and for sums over filters
    view = images.float() if images.dtype in (torch.float16, torch.bfloat16) else images
    run: list[tuple[Motion, Parameters]] = []
    for invariance, drawn in zip(invariances, parameters, strict=True):
        motion = invariance if isinstance(invariance, get_args(Motion)) else None
        if run and (motion is None or not all(together(earlier, motion) for earlier, _ in run)):
            view, run = move(view, run), []
        if motion is not None:
            run.append((motion, drawn))
        else:
            view = invariance.apply(view, drawn)
    view = move(view, run) if run else view
    return view.to(images.dtype)


def fault(invariance: Invariance, channels: int, height: int, width: int) -> str | None:
    """Why an invariance cannot be used on images of this size, with a remedy; None if it can."""
    if isinstance(invariance, RightAngle) and height != width:
        return f"needs square images, the data is {height} x {width}; use horizontal_flip and vertical_flip"
    if isinstance(invariance, Shift) and invariance.pixels >= min(height, width):
        return f"pixels = {invariance.pixels:g} moves a picture of {height} x {width} off its canvas; use less"
    return invariance.channels_fault(channels)


def removed(invariances: Iterable[Invariance]) -> frozenset[str]:
    """All factors that the invariances remove together."""
    return frozenset().union(*(invariance.removes for invariance in invariances))
