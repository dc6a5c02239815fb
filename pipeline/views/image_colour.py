"""Invariances to light and colour: brightness, contrast, saturation, hue, grayscale.

The arithmetic is torchvision's (``transforms.v2.functional``), clamps and all, with one factor a sample.

N images (N,C,H,W) with values in [0, 1]; C = 3 is red, green, blue. Factors (N,).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from pipeline.keys import Keys
from pipeline.spec import Rule, Spec
from pipeline.views.image_plane import Parameters, applied
from pipeline.views.parameter import Amount, Span, draw, towards, within

LUMA = (0.2989, 0.587, 0.114)  # ITU-R BT.601, the digits that torchvision uses


def needs_colour(channels: int) -> str | None:
    """Why an operation on colours cannot be used on that many channels, or None."""
    return None if channels == 3 else f"needs 3 channels (red, green, blue), the data has {channels}"


class Brightness(Spec):
    """Multiply by a random factor."""

    kind: Literal["brightness"] = "brightness"
    amount: Amount
    """largest change of the factor, drawn uniformly from 1 - amount (but not below 0) to 1 + amount; or the
    distribution of the change: -0.1 to 0.4 is a factor from 0.9 to 1.4"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being changed at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"brightness"})
    invertible: ClassVar[bool] = False  # values are cut at 1
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        yield from within("amount", self.amount, Span(-1))

    def draw(self, keys: Keys) -> Parameters:
        """``factor`` (N,)."""
        return {"factor": draw_factor(keys, "factor", self.amount, applied(keys, self.probability))}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        return brighten(images, parameters["factor"])

    def at(self, strength: float) -> Brightness:
        """The same with its range scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"amount": towards(self.amount, 0.0, strength)})

    def channels_fault(self, channels: int) -> str | None:
        return None


class Contrast(Spec):
    """Spread the values about the picture's mean by a random factor."""

    kind: Literal["contrast"] = "contrast"
    amount: Amount
    """largest change of the factor, drawn uniformly from 1 - amount (but not below 0) to 1 + amount; or the
    distribution of the change: -0.1 to 0.4 is a factor from 0.9 to 1.4"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being changed at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"contrast"})
    invertible: ClassVar[bool] = False  # values are cut at 0 and 1
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        yield from within("amount", self.amount, Span(-1))

    def draw(self, keys: Keys) -> Parameters:
        """``factor`` (N,)."""
        return {"factor": draw_factor(keys, "factor", self.amount, applied(keys, self.probability))}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        return stretch(images, parameters["factor"])

    def at(self, strength: float) -> Contrast:
        """The same with its range scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"amount": towards(self.amount, 0.0, strength)})

    def channels_fault(self, channels: int) -> str | None:
        return None


class Saturation(Spec):
    """Spread the colours about their gray by a random factor."""

    kind: Literal["saturation"] = "saturation"
    amount: Amount
    """largest change of the factor, drawn uniformly from 1 - amount (but not below 0) to 1 + amount; or the
    distribution of the change: -0.1 to 0.4 is a factor from 0.9 to 1.4"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being changed at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"saturation"})
    invertible: ClassVar[bool] = False  # values are cut at 0 and 1
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        yield from within("amount", self.amount, Span(-1))

    def draw(self, keys: Keys) -> Parameters:
        """``factor`` (N,)."""
        return {"factor": draw_factor(keys, "factor", self.amount, applied(keys, self.probability))}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        return saturate(images, parameters["factor"])

    def at(self, strength: float) -> Saturation:
        """The same with its range scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"amount": towards(self.amount, 0.0, strength)})

    def channels_fault(self, channels: int) -> str | None:
        return needs_colour(channels)


class Hue(Spec):
    """Turn the hue circle (of HSV) by a random angle."""

    kind: Literal["hue"] = "hue"
    amount: Amount
    """largest angle to either side, drawn uniformly, in turns of the circle: 0.5 reaches every hue; or the distribution
    of the angle, red towards green"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being changed at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"hue"})
    invertible: ClassVar[bool] = True
    group: ClassVar[bool] = True

    def rules(self) -> Iterator[Rule]:
        yield from within("amount", self.amount, Span(-0.5, 0.5))

    def draw(self, keys: Keys) -> Parameters:
        """``turn`` (N,): turns of the circle."""
        return {"turn": draw(keys, "turn", self.amount) * applied(keys, self.probability)}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        rows = parameters["turn"].nonzero().flatten()
        where = rows.to(images.device)
        turned = turn_hue(images.index_select(0, where), parameters["turn"][rows])
        return images.index_copy(0, where, turned)

    def at(self, strength: float) -> Hue:
        """The same with its range scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"amount": towards(self.amount, 0.0, strength)})

    def channels_fault(self, channels: int) -> str | None:
        return needs_colour(channels)


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
        return gray_own(images.clone(), parameters["gray"]) if bool(parameters["gray"].any()) else images

    def at(self, strength: float) -> Grayscale:
        """The same with its probability scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"probability": self.probability * strength})

    def channels_fault(self, channels: int) -> str | None:
        return needs_colour(channels)


def draw_factor(keys: Keys, stream: str, amount: Amount, acts: Tensor) -> Tensor:
    """Factors (N,), 1 where ``acts`` (N,) is false: from 1 - amount (at least 0) to 1 + amount, or 1 plus a change."""
    if isinstance(amount, (int, float)):
        factor = keys.uniform(stream, max(0.0, 1.0 - amount), 1.0 + amount)
    else:
        factor = 1.0 + draw(keys, stream, amount)
    return torch.where(acts, factor, 1.0)


def gray(images: Tensor) -> Tensor:
    """The gray of images: (N,C,H,W) -> (N,1,H,W); the mean of the channels where there are not three."""
    if images.shape[1] != 3:
        return images.mean(1, keepdim=True)
    red, green, blue = images.unbind(1)
    return (red * LUMA[0]).add_(green, alpha=LUMA[1]).add_(blue, alpha=LUMA[2])[:, None]


def gray_own(images: Tensor, made: Tensor) -> Tensor:
    """Make the rows of ``images`` (N,3,H,W) gray, in place, where ``made`` (N,) is true."""
    rows = made.nonzero().flatten().to(images.device)
    return images.index_copy_(0, rows, gray(images.index_select(0, rows)).expand(-1, 3, -1, -1))


def brighten(images: Tensor, factor: Tensor) -> Tensor:
    """``factor`` (N,) times ``images`` (N,C,H,W), cut to [0, 1]."""
    return (images * by_row(factor, images)).clamp_(0.0, 1.0)


def stretch(images: Tensor, factor: Tensor) -> Tensor:
    """Change the contrast of ``images`` (N,C,H,W) about the mean of their gray."""
    return _blend(images, gray(images).mean((1, 2, 3), keepdim=True), by_row(factor, images))


def saturate(images: Tensor, factor: Tensor) -> Tensor:
    """Change the saturation of ``images`` (N,3,H,W) about their gray."""
    return _blend(images, gray(images), by_row(factor, images))


def turn_hue(images: Tensor, turn: Tensor, out: Tensor | None = None) -> Tensor:
    """Turn the hue of ``images`` (N,3,H,W) by ``turn`` (N,) circles, at the same value and saturation (HSV).

    With r, g, b the parts of the chroma that the channels have (one is 0, one is 1), the hue in sixths of the circle,
    from -3 to 3, is 1 - r + g + b with the sign of g - b; and back, red has clip(2 - |hue|, 0, 1), green
    clip(|hue + 1| - 1, 0, 1), blue clip(|hue - 1| - 1, 0, 1). The usual six cases, without a case. ``out`` may be the
    images themselves.
    """
    red, green, blue = images.unbind(1)  # (N,H,W)
    value, low = images.amax(1), images.amin(1)
    chroma = value - low
    hue = (green + blue).sub_(red).sub_(low)
    hue = hue.div_(chroma.clamp(min=torch.finfo(images.dtype).tiny)).add_(1.0).copysign_(green - blue)
    hue = hue.add_(6.0 * turn.to(images)[:, None, None])
    hue = hue.sub_((hue / 6.0).round_(), alpha=6.0)
    turned = torch.empty_like(images) if out is None else out
    # chroma * clip(2 - a, 0, 1) = 2 chroma - chroma * clip(a, 1, 2), and with a - 1 likewise
    torch.addcmul(value.add_(chroma), chroma, hue.abs().clamp_(1.0, 2.0), value=-1.0, out=turned[:, 0])
    low = low.sub_(chroma)
    torch.addcmul(low, chroma, (hue + 1.0).abs_().clamp_(1.0, 2.0), out=turned[:, 1])
    torch.addcmul(low, chroma, hue.sub_(1.0).abs_().clamp_(1.0, 2.0), out=turned[:, 2])
    return turned.clamp_(0.0, 1.0)


def by_row(factor: Tensor, images: Tensor) -> Tensor:
    """Factors (N,) as they multiply ``images``: (N,1,1,1)."""
    return factor.to(images)[:, None, None, None]


def _blend(images: Tensor, other: Tensor, factor: Tensor) -> Tensor:
    """factor * images + (1 - factor) * other, cut to [0, 1]; exact where the factor is 1."""
    return (images * factor).add_((1.0 - factor) * other).clamp_(0.0, 1.0)
