"""Invariances to light and colour: brightness, contrast, saturation, hue, their random mixture, and grayscale.

The arithmetic is torchvision's (``transforms.v2.functional``), clamps and all, with one factor a sample.

N images (N,C,H,W) with values in [0, 1]; C = 3 is red, green, blue. Factors (N,).
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from pipeline.keys import Keys
from pipeline.spec import Spec
from pipeline.views.image_geometry import Parameters, applied

LUMA = (0.2989, 0.587, 0.114)  # ITU-R BT.601, the digits that torchvision uses


def needs_colour(channels: int) -> str | None:
    """Why an operation on colours cannot be used on that many channels, or None."""
    return None if channels == 3 else f"needs 3 channels (red, green, blue), the data has {channels}"


class Brightness(Spec):
    """Multiply by a uniform factor from 1 - amount to 1 + amount."""

    kind: Literal["brightness"] = "brightness"
    amount: float = Field(ge=0)
    """largest change of the factor"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being changed at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"brightness"})
    invertible: ClassVar[bool] = False  # values are cut at 1
    group: ClassVar[bool] = False

    def draw(self, keys: Keys) -> Parameters:
        """``factor`` (N,)."""
        return {"factor": _factor(keys, "factor", self.amount, applied(keys, self.probability))}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        return brighten(images, parameters["factor"])

    def at(self, strength: float) -> Brightness:
        """The same with its range scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"amount": self.amount * strength})

    def channels_fault(self, channels: int) -> str | None:
        return None


class Contrast(Spec):
    """Spread the values about the picture's mean by a uniform factor from 1 - amount to 1 + amount."""

    kind: Literal["contrast"] = "contrast"
    amount: float = Field(ge=0)
    """largest change of the factor"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being changed at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"contrast"})
    invertible: ClassVar[bool] = False  # values are cut at 0 and 1
    group: ClassVar[bool] = False

    def draw(self, keys: Keys) -> Parameters:
        """``factor`` (N,)."""
        return {"factor": _factor(keys, "factor", self.amount, applied(keys, self.probability))}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        return stretch(images, parameters["factor"])

    def at(self, strength: float) -> Contrast:
        """The same with its range scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"amount": self.amount * strength})

    def channels_fault(self, channels: int) -> str | None:
        return None


class Saturation(Spec):
    """Spread the colours about their gray by a uniform factor from 1 - amount to 1 + amount."""

    kind: Literal["saturation"] = "saturation"
    amount: float = Field(ge=0)
    """largest change of the factor"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being changed at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"saturation"})
    invertible: ClassVar[bool] = False  # values are cut at 0 and 1
    group: ClassVar[bool] = False

    def draw(self, keys: Keys) -> Parameters:
        """``factor`` (N,)."""
        return {"factor": _factor(keys, "factor", self.amount, applied(keys, self.probability))}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        return saturate(images, parameters["factor"])

    def at(self, strength: float) -> Saturation:
        """The same with its range scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"amount": self.amount * strength})

    def channels_fault(self, channels: int) -> str | None:
        return needs_colour(channels)


class Hue(Spec):
    """Turn the hue circle (of HSV) by a uniform angle, to either side."""

    kind: Literal["hue"] = "hue"
    amount: float = Field(ge=0, le=0.5)
    """largest angle, in turns of the circle: 0.5 reaches every hue"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being changed at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"hue"})
    invertible: ClassVar[bool] = True
    group: ClassVar[bool] = True

    def draw(self, keys: Keys) -> Parameters:
        """``turn`` (N,): turns of the circle."""
        return {"turn": keys.uniform("turn", -self.amount, self.amount) * applied(keys, self.probability)}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        return turn_hue(images, parameters["turn"])

    def at(self, strength: float) -> Hue:
        """The same with its range scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"amount": self.amount * strength})

    def channels_fault(self, channels: int) -> str | None:
        return needs_colour(channels)


class ColorJitter(Spec):
    """Brightness, contrast, saturation and hue, in an order drawn for each picture (SimCLR, MoCo v2, BYOL)."""

    kind: Literal["color_jitter"] = "color_jitter"
    brightness: float = Field(ge=0)
    """largest change of the factor; 0 leaves it out"""
    contrast: float = Field(ge=0)
    """largest change of the factor; 0 leaves it out"""
    saturation: float = Field(ge=0)
    """largest change of the factor; 0 leaves it out"""
    hue: float = Field(ge=0, le=0.5)
    """largest angle, in turns of the hue circle; 0 leaves it out"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being changed at all"""

    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    @property
    def removes(self) -> frozenset[str]:
        """The factors whose range is not 0."""
        amounts = {"brightness": self.brightness, "contrast": self.contrast}
        amounts |= {"saturation": self.saturation, "hue": self.hue}
        return frozenset(name for name, amount in amounts.items() if amount > 0)

    def draw(self, keys: Keys) -> Parameters:
        """Three factors and ``hue`` in turns (N,); ``order`` (N,4) int64: which of the four is first, second, ..."""
        acts = applied(keys, self.probability)
        return {
            "brightness": _factor(keys, "brightness", self.brightness, acts),
            "contrast": _factor(keys, "contrast", self.contrast, acts),
            "saturation": _factor(keys, "saturation", self.saturation, acts),
            "hue": keys.uniform("hue", -self.hue, self.hue) * acts,
            "order": keys.orders("order", 4),
        }

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        return jitter(images, parameters)

    def at(self, strength: float) -> ColorJitter:
        """The same with its ranges scaled by ``strength`` in [0, 1]; 0 is the identity."""
        names = ("brightness", "contrast", "saturation", "hue")
        return self.model_copy(update={name: getattr(self, name) * strength for name in names})

    def channels_fault(self, channels: int) -> str | None:
        return needs_colour(channels) if self.saturation > 0 or self.hue > 0 else None


class Grayscale(Spec):
    """Replace the colours by their gray, in all three channels."""

    kind: Literal["grayscale"] = "grayscale"
    probability: float = Field(default=0.2, ge=0, le=1)
    """of being made gray"""

    removes: ClassVar[frozenset[str]] = frozenset({"hue", "saturation"})
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def draw(self, keys: Keys) -> Parameters:
        """``gray`` (N,) bool."""
        return {"gray": applied(keys, self.probability)}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        rows = parameters["gray"].nonzero().flatten().to(images.device)
        return images.index_copy(0, rows, luma(images[rows]).expand(-1, 3, -1, -1)) if len(rows) else images

    def at(self, strength: float) -> Grayscale:
        """The same with its probability scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"probability": self.probability * strength})

    def channels_fault(self, channels: int) -> str | None:
        return needs_colour(channels)


def _factor(keys: Keys, stream: str, amount: float, acts: Tensor) -> Tensor:
    factor = keys.uniform(stream, max(0.0, 1.0 - amount), 1.0 + amount)
    return torch.where(acts, factor, 1.0)


def luma(images: Tensor) -> Tensor:
    """The gray of colour images: (N,3,H,W) -> (N,1,H,W)."""
    red, green, blue = images.unbind(1)
    return (red * LUMA[0]).add_(green, alpha=LUMA[1]).add_(blue, alpha=LUMA[2])[:, None]


def brighten(images: Tensor, factor: Tensor) -> Tensor:
    """``factor`` (N,) times ``images`` (N,C,H,W), cut to [0, 1]."""
    return (images * _rows(factor, images)).clamp_(0.0, 1.0)


def stretch(images: Tensor, factor: Tensor) -> Tensor:
    """Change the contrast of ``images`` (N,C,H,W) about the mean of their gray (of all channels where C is not 3)."""
    gray = luma(images) if images.shape[1] == 3 else images
    return _blend(images, gray.mean((1, 2, 3), keepdim=True), factor)


def saturate(images: Tensor, factor: Tensor) -> Tensor:
    """Change the saturation of ``images`` (N,3,H,W) about their gray."""
    return _blend(images, luma(images), factor)


def turn_hue(images: Tensor, turn: Tensor) -> Tensor:
    """Turn the hue of ``images`` (N,3,H,W) by ``turn`` (N,) circles, at the same value and saturation (HSV).

    Channel n of HSV is value - chroma * clip(min(k, 4 - k), 0, 1), k = (n + 6 hue) mod 6, n = 5, 3, 1 for red, green
    and blue: the closed form of the usual six cases.
    """
    red, green, blue = images.unbind(1)  # (N,H,W)
    value, low = images.amax(1), images.amin(1)
    chroma = value - low
    safe = torch.where(chroma == 0, 1.0, chroma)
    sixths = torch.where(
        value == red,
        (green - blue) / safe,
        torch.where(value == green, (blue - red) / safe + 2.0, (red - green) / safe + 4.0),
    )
    sixths = sixths + 6.0 * turn.to(images)[:, None, None]
    turned = torch.empty_like(images)
    for channel, offset in enumerate((5.0, 3.0, 1.0)):
        k = (sixths + offset).remainder_(6.0)
        k = torch.minimum(k, 4.0 - k).clamp_(0.0, 1.0)
        turned[:, channel] = torch.addcmul(value, chroma, k, value=-1.0)
    return turned.clamp_(0.0, 1.0)


def jitter(images: Tensor, parameters: Parameters) -> Tensor:
    """Apply the four operations to ``images`` (N,C,H,W), each row in its own order; neutral factors are left out."""
    operations = (("brightness", brighten, 1.0), ("contrast", stretch, 1.0), ("saturation", saturate, 1.0))
    images = images.clone()
    order = parameters["order"]
    for step in range(order.shape[1]):
        for number, (name, operation, neutral) in enumerate((*operations, ("hue", turn_hue, 0.0))):
            factor = parameters[name]
            rows = ((order[:, step] == number) & (factor != neutral)).nonzero().flatten()
            if len(rows):
                where = rows.to(images.device)
                images[where] = operation(images[where], factor[rows])
    return images


def _rows(factor: Tensor, images: Tensor) -> Tensor:
    return factor.to(images)[:, None, None, None]


def _blend(images: Tensor, other: Tensor, factor: Tensor) -> Tensor:
    """factor * images + (1 - factor) * other, cut to [0, 1]; exact where the factor is 1."""
    factor = _rows(factor, images)
    return (images * factor).add_((1.0 - factor) * other).clamp_(0.0, 1.0)
