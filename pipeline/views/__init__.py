"""Floor 1: invariances, the declaration of what a latent space ignores, and the views that they make.

A view is one random transformation of a sample; here it is a pure function of (sample, key). The parameters are drawn
from counter-based keys, so neither the batch, nor its order, nor its other rows have any effect.

N images (N,C,H,W), floating point with values in [0, 1] or uint8 with 0 to 255, or a list of N uint8 (C,H_i,W_i); or
N waves (N,C,T), floating point, or a list of N (C,T_i). The type of their size tells which (``samples``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, get_args

import torch
from pydantic import Field
from torch import Tensor

from pipeline.keys import Keys
from pipeline.samples import Size, modality
from pipeline.spec import Refusal, Spec
from pipeline.views.audio import AudioInvariance
from pipeline.views.code import Code, CodeFault, code_digests, codes, located
from pipeline.views.combinators import Choose, Combinator, Compose, Maybe, Repeat
from pipeline.views.factors import FACTORS, MEANINGS, OF_PICTURES, SYNONYMS, factor
from pipeline.views.grouping import sizing
from pipeline.views.image_colour import Brightness, Contrast, Grayscale, Hue, Saturation
from pipeline.views.image_crop import CentreCrop, Resize, ResizedCrop, Sizing
from pipeline.views.image_damage import Erase, Jpeg
from pipeline.views.image_detail import Blur, Noise
from pipeline.views.image_geometry import HorizontalFlip, RightAngle, Rotation, Shift, VerticalFlip
from pipeline.views.image_jitter import ColorJitter
from pipeline.views.image_mixing import ChannelMix, ColorMatrix
from pipeline.views.image_plane import Parameters, as_float
from pipeline.views.image_projection import Affine, Perspective
from pipeline.views.image_tone import ChannelDrop, ChannelGain, Posterize, Sharpness, Solarize
from pipeline.views.parameter import bounds
from pipeline.views.sequence import Images, apply_all, draw_all
from pipeline.views.series import SeriesInvariance
from pipeline.views.waves import apply_waves, wave_channels
from pipeline.views.window import Window

ImageInvariance = (
    Shift
    | Rotation
    | RightAngle
    | HorizontalFlip
    | VerticalFlip
    | Affine
    | Perspective
    | ResizedCrop
    | Resize
    | CentreCrop
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
    | ColorMatrix
    | ChannelMix
    | Jpeg
)
"""What may be declared of pictures."""

OF_ANY = (Code, *get_args(Combinator))
"""What may be declared of every modality: code of the user's own, and what is made of others."""

OF_MODALITY: dict[str, tuple[type, ...]] = {
    "image": get_args(ImageInvariance),
    "audio": (Window, *get_args(AudioInvariance)),
    "series": (Window, *get_args(SeriesInvariance)),
}

Invariance = Annotated[
    ImageInvariance | Window | AudioInvariance | SeriesInvariance | Code | Compose | Choose | Maybe | Repeat,
    Field(discriminator="kind"),
]
"""One thing that the space must ignore.

Each has ``draw(keys)``, ``apply(images, parameters)`` (of waves with ``rate``), ``at(strength)`` (0 the identity, 1
itself), ``channels_fault(channels)``, of waves ``size_fault(samples, rate)``, and says what it ``removes`` (factors),
whether it is ``invertible`` (another of its kind undoes it, but for rounding and the canvas's edge) and whether all of
its kind form a ``group``.
"""

for _combinator in get_args(Combinator):  # made of invariances, so complete only now
    _combinator.model_rebuild(_types_namespace={"Invariance": Invariance})

__all__ = [
    "FACTORS",
    "MEANINGS",
    "OF_ANY",
    "OF_MODALITY",
    "OF_PICTURES",
    "SYNONYMS",
    "Affine",
    "Blur",
    "Brightness",
    "CentreCrop",
    "ChannelDrop",
    "ChannelGain",
    "ChannelMix",
    "Choose",
    "Code",
    "CodeFault",
    "ColorJitter",
    "ColorMatrix",
    "Compose",
    "Contrast",
    "Erase",
    "Grayscale",
    "HorizontalFlip",
    "Hue",
    "Images",
    "Invariance",
    "Jpeg",
    "Maybe",
    "Noise",
    "Parameters",
    "Perspective",
    "Posterize",
    "Repeat",
    "Resize",
    "ResizedCrop",
    "RightAngle",
    "Rotation",
    "Saturation",
    "Sharpness",
    "Shift",
    "Sizing",
    "Solarize",
    "VerticalFlip",
    "Window",
    "apply_view",
    "code_digests",
    "codes",
    "draw_parameters",
    "draw_view",
    "factor",
    "fault",
    "holds_window",
    "located",
    "misfit",
    "removed",
    "sizes_views",
    "sizing",
]


def draw_view(images: Images, invariances: Sequence[Invariance], keys: Keys, size: Size | None = None) -> Tensor:
    """One view of every image: (N,C,*size), floating point in [0, 1], on the same device; or of every wave: (N,C,T).

    The images are not written to, but are themselves returned where nothing acts on them.

    Args:
        images: (N,C,H,W) floating point in [0, 1], of whose type the view is; or uint8, of which it is float32; or a
            list of N uint8 (C,H_i,W_i).
        invariances: in their order of application; neighbouring motions are one resampling.
        keys: N keys, of (seed, epoch, sample, view).
        size: height and width of the view; None for the images' own. Another than theirs needs an invariance that
            fixes the size to stand first (``Sizing``). Of waves their ``Waveform`` or ``Steps``, always.

    Raises:
        Refusal: an invariance cannot be used on images of this size or number of channels, or none fixes the size.
        ValueError: the images are no such batch, or the keys are not as many.
    """
    return apply_view(images, invariances, draw_parameters(invariances, keys), size)


def draw_parameters(invariances: Sequence[Invariance], keys: Keys) -> list[Parameters]:
    """The parameters of every invariance: tensors (N,...) by name, on the CPU; each has a stream of its own."""
    return draw_all(invariances, keys)


def apply_view(
    images: Images,
    invariances: Sequence[Invariance],
    parameters: Sequence[Parameters],
    size: Size | None = None,
) -> Tensor:
    """Apply the invariances with given parameters: N images -> (N,C,*size). Raises as ``draw_view`` does."""
    if size is not None and modality(size) != "image":
        channels = wave_channels(images, invariances, size)
        _fit(invariances, parameters, channels, size, len(images))
        return apply_waves(images, invariances, parameters, size)
    channels, height, width = _shape(images)
    size = size or (height, width)
    sized = bool(invariances) and sizing(invariances[0])
    if not sized and not (isinstance(images, Tensor) and size == (height, width)):
        first = invariances[0].kind if invariances else "nothing"
        remedy = "begin with resized_crop, resize or centre_crop"
        raise Refusal(f"invariance {first}: comes first, where pictures are brought to {size[0]} x {size[1]}; {remedy}")
    _fit(invariances, parameters, channels, size, len(images))
    if isinstance(images, Tensor) and not len(images):
        return as_float(images.new_empty(0, channels, *size))
    if isinstance(images, Tensor) and images.dtype in (torch.float16, torch.bfloat16):
        # half precision has too few digits for coordinates and for sums over filters
        return apply_view(images.float(), invariances, parameters, size).to(images.dtype)
    return apply_all(images, invariances, parameters, size)


def _fit(
    invariances: Sequence[Invariance], parameters: Sequence[Parameters], channels: int, size: Size, count: int
) -> None:
    """Raise what ``draw_view`` says where an invariance or its parameters are not for this batch."""
    for invariance, drawn in zip(invariances, parameters, strict=True):
        reason = misfit(invariance, channels, size)
        if reason:
            raise Refusal(f"invariance {invariance.kind}: {reason}")
        if any(len(values) != count for values in drawn.values()):
            raise ValueError(f"invariance {invariance.kind}: parameters of other than {count} images")


def _shape(images: Images) -> tuple[int, int, int]:
    """Channels, and height and width of the first."""
    if isinstance(images, Tensor):
        if images.ndim != 4 or not (images.is_floating_point() or images.dtype == torch.uint8):
            raise ValueError(
                f"images must be (N,C,H,W) floating point or uint8, not {tuple(images.shape)} {images.dtype}"
            )
        return images.shape[1], images.shape[2], images.shape[3]
    if not images:
        raise ValueError("no image: the channels of an empty list are unknown")
    for image in images:
        if image.ndim != 3 or image.dtype != torch.uint8 or len(image) != len(images[0]) or not image.numel():
            raise ValueError(
                f"images must be (C,H,W) uint8 of as many channels, not {tuple(image.shape)} {image.dtype}"
            )
    return images[0].shape[0], images[0].shape[1], images[0].shape[2]


def sizes_views(invariance: Invariance) -> bool:
    """Whether an invariance may stand first where samples have another size than the view."""
    return sizing(invariance) or isinstance(invariance, Window)


def holds_window(invariance: Any) -> bool:
    """Whether an invariance is a window, or is made of one."""
    return isinstance(invariance, Window) or any(map(holds_window, getattr(invariance, "parts", ())))


def misfit(invariance: Any, channels: int, size: Size) -> str | None:
    """Why an invariance cannot be used on samples of this modality, size and number of channels; None if it can."""
    what = modality(size)
    if isinstance(invariance, get_args(Combinator)):
        reasons = ((part.kind, misfit(part, channels, size)) for part in invariance.parts)
        return next((f"{kind} {reason}" for kind, reason in reasons if reason), None)
    others = [name for name, kinds in OF_MODALITY.items() if isinstance(invariance, kinds)]
    if others and what not in others:
        able = (*OF_MODALITY.get(what, ()), *OF_ANY)
        kinds = (kind.model_fields["kind"].default for kind in able if issubclass(kind, Spec))
        return f"is for {' and '.join(others)}, and the data is {what}; known for it: {', '.join(sorted(kinds))}"
    if what == "image":
        return fault(invariance, channels, *size)
    reason: str | None = invariance.channels_fault(channels) or invariance.size_fault(*size)
    return reason


def fault(invariance: Invariance, channels: int, height: int, width: int) -> str | None:
    """Why an invariance cannot be used on images of this size, with a remedy; None if it can."""
    if isinstance(invariance, get_args(Combinator)):
        reasons = ((part.kind, fault(part, channels, height, width)) for part in invariance.parts)
        return next((f"{kind} {reason}" for kind, reason in reasons if reason), None)
    if isinstance(invariance, RightAngle) and height != width:
        return f"needs square images, the data is {height} x {width}; use horizontal_flip and vertical_flip"
    if isinstance(invariance, Shift) and (most := max(map(abs, bounds(invariance.pixels)))) >= min(height, width):
        return f"pixels = {most:g} moves a picture of {height} x {width} off its canvas; use less"
    if sizing(invariance):
        return invariance.size_fault(height, width)
    return invariance.channels_fault(channels)


def removed(invariances: Iterable[Invariance]) -> frozenset[str]:
    """All factors that the invariances remove together."""
    return frozenset().union(*(invariance.removes for invariance in invariances))
