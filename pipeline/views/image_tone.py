"""Invariances to tone and bands: solarize, posterize, sharpness, gain by channel, dropped channels.

The arithmetic of the first three is torchvision's (``transforms.v2.functional``).

N images (N,C,H,W) with values in [0, 1].
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from pipeline.keys import Keys, uniform_field
from pipeline.spec import Rule, Spec
from pipeline.views.image_colour import by_row, draw_factor
from pipeline.views.image_plane import Parameters, applied
from pipeline.views.parameter import Amount, Count, Level, Span, bounds, draw, towards, within


class Solarize(Spec):
    """Invert the values from a threshold up (BYOL's second view)."""

    kind: Literal["solarize"] = "solarize"
    threshold: Level = 0.5
    """values from here up, in [0, 1], are inverted; or the distribution of that limit"""
    probability: float = Field(default=0.2, ge=0, le=1)
    """of being solarized"""

    removes: ClassVar[frozenset[str]] = frozenset({"brightness", "contrast", "hue"})
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        yield from within("threshold", self.threshold, Span(0, 1))

    def draw(self, keys: Keys) -> Parameters:
        """``solarized`` (N,) bool; ``threshold`` (N,) if it is drawn."""
        solarized = {"solarized": applied(keys, self.probability)}
        return solarized | drawn(keys, "threshold", self.threshold)

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        rows = parameters["solarized"].nonzero().flatten()
        where = rows.to(images.device)
        part = images.index_select(0, where)
        fixed = self.threshold if isinstance(self.threshold, (int, float)) else None
        limit = by_row(parameters["threshold"][rows], images) if fixed is None else fixed
        return images.index_copy(0, where, torch.where(part >= limit, 1.0 - part, part))

    def at(self, strength: float) -> Solarize:
        """The same with its probability scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"probability": self.probability * strength})

    def channels_fault(self, channels: int) -> str | None:
        return None


class Posterize(Spec):
    """Keep few steps of tone: values are rounded down to a number of bits."""

    kind: Literal["posterize"] = "posterize"
    bits: Count
    """bits that are kept of a value, from 1 to 8; or the distribution of their number"""
    probability: float = Field(default=0.5, ge=0, le=1)
    """of being posterized"""

    removes: ClassVar[frozenset[str]] = frozenset({"texture"})
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        yield from within("bits", self.bits, Span(1, 8))

    def draw(self, keys: Keys) -> Parameters:
        """``posterized`` (N,) bool; ``bits`` (N,), whole numbers, if they are drawn."""
        posterized = {"posterized": applied(keys, self.probability)}
        return posterized | drawn(keys, "bits", self.bits)

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        rows = parameters["posterized"].nonzero().flatten()
        where = rows.to(images.device)
        bits = torch.full((len(rows),), self.bits) if isinstance(self.bits, int) else parameters["bits"][rows].round()
        steps = by_row(torch.exp2(bits), images)
        whole = (images.index_select(0, where) * steps).floor().clamp(min=0.0).minimum(steps - 1.0)
        return images.index_copy(0, where, whole / steps)

    def at(self, strength: float) -> Posterize:
        """The same with its probability scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"probability": self.probability * strength})

    def channels_fault(self, channels: int) -> str | None:
        return None


class Sharpness(Spec):
    """Blend with a slightly blurred picture by a random factor: below 1 blurs, above 1 sharpens."""

    kind: Literal["sharpness"] = "sharpness"
    amount: Amount
    """largest change of the factor, drawn uniformly from 1 - amount (but not below 0) to 1 + amount; or the
    distribution of the change: -0.1 to 0.4 is a factor from 0.9 to 1.4"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being changed at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"sharpness"})
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        yield from within("amount", self.amount, Span(-1))

    def draw(self, keys: Keys) -> Parameters:
        """``factor`` (N,)."""
        return {"factor": draw_factor(keys, "factor", self.amount, applied(keys, self.probability))}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        return sharpen(images, parameters["factor"])

    def at(self, strength: float) -> Sharpness:
        """The same with its range scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"amount": towards(self.amount, 0.0, strength)})

    def channels_fault(self, channels: int) -> str | None:
        return None


class ChannelGain(Spec):
    """Multiply each channel by a random factor of its own: light of another colour."""

    kind: Literal["channel_gain"] = "channel_gain"
    amount: Amount
    """largest change of a factor, up to 1, drawn uniformly from 1 - amount to 1 + amount; or the distribution of the
    change: -0.1 to 0.4 is a factor from 0.9 to 1.4"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being changed at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"brightness", "hue", "saturation", "spectrum"})
    invertible: ClassVar[bool] = False  # values are cut at 1
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        yield from within("amount", self.amount, Span(-1, 1))

    def draw(self, keys: Keys) -> Parameters:
        """``acts`` (N,) bool; ``word`` (N,) int64: the key of the factors."""
        return {"acts": applied(keys, self.probability), "word": torch.from_numpy(keys.bits("word").view(np.int64))}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        unit = uniform_field(parameters["word"], (images.shape[1], 1, 1))  # (N,C,1,1)
        if isinstance(self.amount, (int, float)):
            change = self.amount * (2.0 * unit - 1.0)
        else:
            change = self.amount.quantile(unit.double()).float()
        factor = 1.0 + change * parameters["acts"][:, None, None, None]
        return (images * factor.to(images)).clamp(0.0, 1.0)

    def at(self, strength: float) -> ChannelGain:
        """The same with its range scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"amount": towards(self.amount, 0.0, strength)})

    def channels_fault(self, channels: int) -> str | None:
        return None


class ChannelDrop(Spec):
    """Put a number of channels, drawn anew for each picture, to one value: bands that are missing."""

    kind: Literal["channel_drop"] = "channel_drop"
    count: Count = 1
    """channels that are dropped; or the distribution of their number"""
    fill: float = Field(default=0.0, ge=0, le=1)
    """what they are put to, in [0, 1]"""
    probability: float = Field(default=0.5, ge=0, le=1)
    """of any being dropped"""

    removes: ClassVar[frozenset[str]] = frozenset({"hue", "saturation", "spectrum"})
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        yield from within("count", self.count, Span(1))

    def draw(self, keys: Keys) -> Parameters:
        """``acts`` (N,) bool; ``word`` (N,) int64: the key of the choice; ``count`` (N,), if it is drawn."""
        word = torch.from_numpy(keys.bits("word").view(np.int64))
        return {"acts": applied(keys, self.probability), "word": word} | drawn(keys, "count", self.count)

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        lots = uniform_field(parameters["word"], (images.shape[1],))  # (N,C)
        count = self.count if isinstance(self.count, int) else parameters["count"].round()[:, None]
        dropped = lots.argsort(dim=1).argsort(dim=1) < count
        dropped &= parameters["acts"][:, None]
        return images.masked_fill(dropped.to(images.device)[:, :, None, None], self.fill)

    def at(self, strength: float) -> ChannelDrop:
        """The same with its probability scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"probability": self.probability * strength})

    def channels_fault(self, channels: int) -> str | None:
        most = self.count if isinstance(self.count, int) else round(bounds(self.count)[1])
        return None if most < channels else f"count = {most} drops all of the data's {channels} channels; drop fewer"


def drawn(keys: Keys, name: str, parameter: Level) -> Parameters:
    """What is drawn of a parameter that is a number, the same for all pictures, or a distribution: (N,) by name."""
    return {} if isinstance(parameter, (int, float)) else {name: draw(keys, name, parameter)}


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
