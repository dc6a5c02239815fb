"""Transformations of pictures that audits use beside the declared ones: controls, and what moves one factor alone.

Grayscale is left to hue and saturation, and compression is no control: storing pictures one by one is slow.
"""

from __future__ import annotations

from pipeline.views import (
    Affine,
    Blur,
    Brightness,
    ChannelGain,
    Contrast,
    Erase,
    HorizontalFlip,
    Hue,
    Invariance,
    Jpeg,
    Noise,
    Perspective,
    ResizedCrop,
    Rotation,
    Saturation,
    Shift,
)

Canvas = tuple[int, int, int]
"""Channels, height and width."""


def family(canvas: Canvas, fill: float = 0.0) -> tuple[Invariance, ...]:
    """All that may be a control, at full strength; what comes in at the edges is ``fill``."""
    side = min(canvas[1:])
    return (
        HorizontalFlip(probability=1.0),
        Rotation(degrees=30.0, fill=fill),
        Shift(pixels=side / 8, fill=fill),
        ResizedCrop(area=(0.4, 0.8), ratio=(0.75, 4 / 3)),
        Perspective(distortion=0.4, fill=fill, probability=1.0),
        Erase(area=(0.05, 0.2), fill=fill, probability=1.0),
        Brightness(amount=0.4),
        Contrast(amount=0.4),
        Saturation(amount=0.8),
        Hue(amount=0.25),
        Blur(sigma=(0.5, 1.5), probability=1.0),
        Noise(std=(0.02, 0.1)),
    )


def mover(factor: str, canvas: Canvas, fill: float = 0.0) -> tuple[Invariance, str] | None:
    """The transformation that moves one factor and the parameter that tells by how much; None: none moves it alone.

    Returns:
        (transformation, name of the parameter as in ``targets``), usable on this canvas or not (``views.fault``).
    """
    side = min(canvas[1:])
    movers: dict[str, tuple[Invariance, str]] = {
        "position": (Shift(pixels=side / 8, fill=fill), "shift"),
        "scale": (Affine(degrees=0.0, pixels=0.0, scale=(0.7, 1.4), shear=0.0, fill=fill), "scale"),
        "aspect": (ResizedCrop(area=(0.5, 0.5), ratio=(0.5, 2.0)), "aspect"),
        "orientation": (Rotation(degrees=45.0, fill=fill), "degrees"),
        "chirality": (HorizontalFlip(probability=0.5), "flipped"),
        "viewpoint": (Perspective(distortion=0.5, fill=fill, probability=1.0), "corners"),
        "occlusion": (Erase(area=(0.1, 0.3), fill=fill, probability=0.5), "erased"),
        "brightness": (Brightness(amount=0.4), "factor"),
        "contrast": (Contrast(amount=0.5), "factor"),
        "saturation": (Saturation(amount=0.9), "factor"),
        "hue": (Hue(amount=0.5), "turn"),
        "spectrum": (ChannelGain(amount=0.3), "channel_means"),
        "texture": (Blur(sigma=(0.0, 2.0), probability=1.0), "sigma"),
        "sharpness": (Blur(sigma=(0.0, 2.0), probability=1.0), "sigma"),
        "noise": (Noise(std=(0.0, 0.15)), "std"),
        "compression": (Jpeg(quality=(5, 95)), "quality"),
    }
    return movers.get(factor)
