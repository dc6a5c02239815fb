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
from pipeline.views.combinators import Choose, Combinator, Compose, Maybe, Repeat
from pipeline.views.factors import FACTORS, MEANINGS, SYNONYMS, factor
from pipeline.views.image_colour import Brightness, Contrast, Grayscale, Hue, Saturation
from pipeline.views.image_crop import ResizedCrop
from pipeline.views.image_damage import Erase, Jpeg
from pipeline.views.image_detail import Blur, Noise
from pipeline.views.image_geometry import HorizontalFlip, RightAngle, Rotation, Shift, VerticalFlip
from pipeline.views.image_jitter import ColorJitter
from pipeline.views.image_plane import Parameters
from pipeline.views.image_projection import Affine, Perspective
from pipeline.views.image_tone import ChannelDrop, ChannelGain, Posterize, Sharpness, Solarize
from pipeline.views.sequence import apply_all, draw_all

Invariance = Annotated[
    Shift
    | Rotation
    | RightAngle
    | HorizontalFlip
    | VerticalFlip
    | Affine
    | Perspective
    | ResizedCrop
    | Brightness
    | Contrast
    | Saturation
    | Hue
    | ColorJitter
    | Grayscale
    | Solarize
    | Posterize
    | Sharpness
    | ChannelGain
    | ChannelDrop
    | Blur
    | Noise
    | Erase
    | Jpeg
    | Compose
    | Choose
    | Maybe
    | Repeat,
    Field(discriminator="kind"),
]
"""One thing that the space must ignore.

Each has ``draw(keys)``, ``apply(images, parameters)``, ``at(strength)`` (0 the identity, 1 itself),
``channels_fault(channels)``, and says what it ``removes`` (factors), whether it is ``invertible`` (another of its kind
undoes it, but for rounding and the canvas's edge) and whether all of its kind form a ``group``.
"""

for _combinator in get_args(Combinator):  # made of invariances, so complete only now
    _combinator.model_rebuild(_types_namespace={"Invariance": Invariance})

BLOCK = 2**20  # values that are worked on at a time on a CPU: 4 MiB

__all__ = [
    "FACTORS",
    "MEANINGS",
    "SYNONYMS",
    "Affine",
    "Blur",
    "Brightness",
    "ChannelDrop",
    "ChannelGain",
    "Choose",
    "ColorJitter",
    "Compose",
    "Contrast",
    "Erase",
    "Grayscale",
    "HorizontalFlip",
    "Hue",
    "Invariance",
    "Jpeg",
    "Maybe",
    "Noise",
    "Parameters",
    "Perspective",
    "Posterize",
    "Repeat",
    "ResizedCrop",
    "RightAngle",
    "Rotation",
    "Saturation",
    "Sharpness",
    "Shift",
    "Solarize",
    "VerticalFlip",
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
    return draw_all(invariances, keys)


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
        # half precision has too few digits for coordinates and for sums over filters
        view = images[rows].float() if images.dtype in (torch.float16, torch.bfloat16) else images[rows]
        parts.append(apply_all(view, invariances, block).to(images.dtype))
    return torch.cat(parts) if len(parts) > 1 else parts[0]


def fault(invariance: Invariance, channels: int, height: int, width: int) -> str | None:
    """Why an invariance cannot be used on images of this size, with a remedy; None if it can."""
    if isinstance(invariance, get_args(Combinator)):
        reasons = ((part.kind, fault(part, channels, height, width)) for part in invariance.parts)
        return next((f"{kind} {reason}" for kind, reason in reasons if reason), None)
    if isinstance(invariance, RightAngle) and height != width:
        return f"needs square images, the data is {height} x {width}; use horizontal_flip and vertical_flip"
    if isinstance(invariance, Shift) and invariance.pixels >= min(height, width):
        return f"pixels = {invariance.pixels:g} moves a picture of {height} x {width} off its canvas; use less"
    return invariance.channels_fault(channels)


def removed(invariances: Iterable[Invariance]) -> frozenset[str]:
    """All factors that the invariances remove together."""
    return frozenset().union(*(invariance.removes for invariance in invariances))
