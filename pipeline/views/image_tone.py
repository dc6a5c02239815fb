"""Invariances to tone and bands: solarize, posterize, sharpness, gain by channel, dropped channels.

The arithmetic of the first three is torchvision's (``transforms.v2.functional``).

N images (N,C,H,W) with values in [0, 1].
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from pipeline.keys import Keys, uniform_field
from pipeline.spec import Spec
from pipeline.views.image_plane import Parameters, applied


class Solarize(Spec):
    """Invert the values from a threshold up (BYOL's second view)."""

    kind: Literal["solarize"] = "solarize"
    threshold: float = Field(default=0.5, ge=0, le=1)
    """values from here up are inverted"""
    probability: float = Field(default=0.2, ge=0, le=1)
    """of being solarized"""

    removes: ClassVar[frozenset[str]] = frozenset({"brightness", "contrast", "hue"})
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def draw(self, keys: Keys) -> Parameters:
        """``solarized`` (N,) bool."""
        return {"solarized": applied(keys, self.probability)}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        rows = parameters["solarized"].nonzero().flatten().to(images.device)
        part = images.index_select(0, rows)
        return images.index_copy(0, rows, torch.where(part >= self.threshold, 1.0 - part, part))

    def at(self, strength: float) -> Solarize:
        """The same with its probability scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"probability": self.probability * strength})

    def channels_fault(self, channels: int) -> str | None:
        return None


class Posterize(Spec):
    """Keep few steps of tone: values are rounded down to a number of bits."""

    kind: Literal["posterize"] = "posterize"
    bits: int = Field(ge=1, le=8)
    """bits that are kept of a value"""
    probability: float = Field(default=0.5, ge=0, le=1)
    """of being posterized"""

    removes: ClassVar[frozenset[str]] = frozenset({"texture"})
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def draw(self, keys: Keys) -> Parameters:
        """``posterized`` (N,) bool."""
        return {"posterized": applied(keys, self.probability)}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        rows = parameters["posterized"].nonzero().flatten().to(images.device)
        steps = 1 << self.bits
        return images.index_copy(0, rows, (images.index_select(0, rows) * steps).floor().clamp(0, steps - 1) / steps)

    def at(self, strength: float) -> Posterize:
        """The same with its probability scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"probability": self.probability * strength})

    def channels_fault(self, channels: int) -> str | None:
        return None


class Sharpness(Spec):
    """Blend with a slightly blurred picture by a uniform factor from 1 - amount to 1 + amount: blurred to sharpened."""

    kind: Literal["sharpness"] = "sharpness"
    amount: float = Field(ge=0)
    """largest change of the factor"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being changed at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"sharpness"})
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def draw(self, keys: Keys) -> Parameters:
        """``factor`` (N,)."""
        factor = keys.uniform("factor", max(0.0, 1.0 - self.amount), 1.0 + self.amount)
        return {"factor": torch.where(applied(keys, self.probability), factor, 1.0)}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        return sharpen(images, parameters["factor"])

    def at(self, strength: float) -> Sharpness:
        """The same with its range scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"amount": self.amount * strength})

    def channels_fault(self, channels: int) -> str | None:
        return None


class ChannelGain(Spec):
    """Multiply each channel by a uniform factor of its own from 1 - amount to 1 + amount: light of another colour."""

    kind: Literal["channel_gain"] = "channel_gain"
    amount: float = Field(ge=0, le=1)
    """largest change of a factor"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being changed at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"brightness", "hue", "saturation", "spectrum"})
    invertible: ClassVar[bool] = False  # values are cut at 1
    group: ClassVar[bool] = False

    def draw(self, keys: Keys) -> Parameters:
        """``acts`` (N,) bool; ``word`` (N,) int64: the key of the factors."""
        return {"acts": applied(keys, self.probability), "word": torch.from_numpy(keys.bits("word").view(np.int64))}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        change = self.amount * (2.0 * uniform_field(parameters["word"], (images.shape[1], 1, 1)) - 1.0)
        factor = 1.0 + change * parameters["acts"][:, None, None, None]
        return (images * factor.to(images)).clamp(0.0, 1.0)

    def at(self, strength: float) -> ChannelGain:
        """The same with its range scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"amount": self.amount * strength})

    def channels_fault(self, channels: int) -> str | None:
        return None


class ChannelDrop(Spec):
    """Put a number of channels, drawn anew for each picture, to one value: bands that are missing."""

    kind: Literal["channel_drop"] = "channel_drop"
    count: int = Field(default=1, ge=1)
    """channels that are dropped"""
    fill: float = Field(default=0.0, ge=0, le=1)
    """what they are put to, in [0, 1]"""
    probability: float = Field(default=0.5, ge=0, le=1)
    """of any being dropped"""

    removes: ClassVar[frozenset[str]] = frozenset({"hue", "saturation", "spectrum"})
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def draw(self, keys: Keys) -> Parameters:
        """``acts`` (N,) bool; ``word`` (N,) int64: the key of the choice."""
        return {"acts": applied(keys, self.probability), "word": torch.from_numpy(keys.bits("word").view(np.int64))}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        lots = uniform_field(parameters["word"], (images.shape[1],))  # (N,C)
        dropped = lots.argsort(dim=1).argsort(dim=1) < self.count
        dropped &= parameters["acts"][:, None]
        return images.masked_fill(dropped.to(images.device)[:, :, None, None], self.fill)

    def at(self, strength: float) -> ChannelDrop:
        """The same with its probability scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"probability": self.probability * strength})

    def channels_fault(self, channels: int) -> str | None:
        if self.count < channels:
            return None
        return f"count = {self.count} drops all of the data's {channels} channels; drop fewer"


def sharpen(images: Tensor, factor: Tensor) -> Tensor:
    """Blend ``images`` (N,C,H,W) with their 3x3 smoothing by ``factor`` (N,); the outermost pixels are left alone."""
    channels, height, width = images.shape[1:]
    if height <= 2 or width <= 2:
        return images
    kernel = torch.ones(3, 3, dtype=images.dtype, device=images.device)
    kernel[1, 1] = 5.0
    weight = (kernel / kernel.sum()).expand(channels, 1, 3, 3)
    smooth = functional.conv2d(images, weight, groups=channels)  # (N,C,H-2,W-2)
    sharp = images.clone()
    blend = factor.to(images)[:, None, None, None]
    inside = images[:, :, 1:-1, 1:-1]
    sharp[:, :, 1:-1, 1:-1] = (blend * inside + (1.0 - blend) * smooth).clamp(0.0, 1.0)
    return sharp
