"""Invariances to the values of a series: noise, the scale of its channels, channels that are missing or change places.

All is relative to the series itself, so that its unit does not matter.

N series (N,C,T) of any scale.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from pipeline.keys import Keys, normal_field, uniform_field
from pipeline.spec import Rule, Spec
from pipeline.views.audio_rows import by_clip, field_word, on_rows
from pipeline.views.image_plane import Parameters, applied
from pipeline.views.parameter import Count, Range, Span, bounds, draw, towards, within


class Jitter(Spec):
    """Add independent Gaussian noise to every value (Um et al. 2017, arXiv:1706.00527)."""

    kind: Literal["jitter"] = "jitter"
    share: Range = (0.0, 0.1)
    """smallest and largest standard deviation of the noise, as a share of that of the channel over the window"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of noise being added"""

    removes: ClassVar[frozenset[str]] = frozenset({"noise"})
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        yield from within("share", self.share, Span(0), "must be two shares in rising order, 0 or more")

    def draw(self, keys: Keys) -> Parameters:
        """``share`` (N,), 0 for no noise; ``word`` (N,) int64: the key of the noise."""
        return {"share": draw(keys, "share", self.share) * applied(keys, self.probability), "word": field_word(keys)}

    def apply(self, series: Tensor, parameters: Parameters, rate: int) -> Tensor:
        share, word = parameters["share"], parameters["word"]

        def change(part: Tensor, rows: Tensor) -> Tensor:
            noise = normal_field(word[rows].to(part.device), tuple(part.shape[1:])).to(part.dtype)
            spread = part.std(-1, correction=0, keepdim=True)
            return torch.addcmul(part, noise, spread * by_clip(share[rows], part))

        return on_rows(series, share != 0, change)

    def at(self, strength: float) -> Jitter:
        """The same with its range scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"share": towards(self.share, 0.0, strength)})

    def channels_fault(self, channels: int) -> str | None:
        return None

    def size_fault(self, steps: int, rate: int) -> str | None:
        return "noise in proportion to a series of one value is none; use more steps" if steps == 1 else None


class ChannelScale(Spec):
    """Multiply the series by a random factor: one for all channels, or one for each."""

    kind: Literal["channel_scale"] = "channel_scale"
    factor: Range = (0.8, 1.25)
    """smallest and largest factor, above 0, drawn log-uniformly; or its distribution"""
    each: bool = True
    """whether each channel has a factor of its own"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being changed at all"""

    invertible: ClassVar[bool] = True
    group: ClassVar[bool] = True

    @property
    def removes(self) -> frozenset[str]:
        """The loudness, and with factors for each channel how the channels compare."""
        return frozenset({"loudness", "spectrum"} if self.each else {"loudness"})

    def rules(self) -> Iterator[Rule]:
        pair = "must be two factors in rising order, above 0"
        yield from within("factor", self.factor, Span(0, open_low=True), pair)

    def draw(self, keys: Keys) -> Parameters:
        """``acts`` (N,) bool; ``factor`` (N,), or ``word`` (N,) int64: the key of the channels' factors."""
        acts = {"acts": applied(keys, self.probability)}
        if self.each:
            return {**acts, "word": field_word(keys)}
        return {**acts, "factor": draw(keys, "factor", self.factor, log=True)}

    def apply(self, series: Tensor, parameters: Parameters, rate: int) -> Tensor:
        if bounds(self.factor) == (1.0, 1.0):
            return series
        if self.each:
            factor = self._of_channels(uniform_field(parameters["word"], (series.shape[1],)))
        else:
            factor = parameters["factor"][:, None]
        return on_rows(series, parameters["acts"], lambda part, rows: part * factor[rows].to(part)[:, :, None])

    def _of_channels(self, unit: Tensor) -> Tensor:
        """Factors at uniform numbers in [0, 1): of the same shape."""
        if isinstance(self.factor, tuple):
            low, high = map(math.log, self.factor)
            return (low + (high - low) * unit).exp()
        return self.factor.quantile(unit.double())

    def at(self, strength: float) -> ChannelScale:
        """The same with its factors drawn in to 1 by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"factor": towards(self.factor, 1.0, strength, log=True)})

    def channels_fault(self, channels: int) -> str | None:
        return None

    def size_fault(self, steps: int, rate: int) -> str | None:
        return None


class SensorDrop(Spec):
    """Put a number of channels, drawn anew for each series, to 0: sensors that have come off."""

    kind: Literal["sensor_drop"] = "sensor_drop"
    count: Count = 1
    """channels that are dropped; or the distribution of their number"""
    probability: float = Field(default=0.5, ge=0, le=1)
    """of any being dropped"""

    removes: ClassVar[frozenset[str]] = frozenset({"spectrum"})
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        yield from within("count", self.count, Span(1))

    def draw(self, keys: Keys) -> Parameters:
        """``count`` (N,) int64: channels that are dropped, 0 for none; ``word`` (N,) int64: the key of which."""
        acts = applied(keys, self.probability)
        count = acts * self.count if isinstance(self.count, int) else draw(keys, "count", self.count).round() * acts
        return {"count": count.long(), "word": field_word(keys)}

    def apply(self, series: Tensor, parameters: Parameters, rate: int) -> Tensor:
        rank = uniform_field(parameters["word"], (series.shape[1],)).argsort(1).argsort(1)  # (N,C)
        gone = rank < parameters["count"][:, None]
        return on_rows(
            series, gone.any(1), lambda part, rows: part.masked_fill(gone[rows, :, None].to(part.device), 0.0)
        )

    def at(self, strength: float) -> SensorDrop:
        """The same with its probability scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"probability": self.probability * strength})

    def channels_fault(self, channels: int) -> str | None:
        most = self.count if isinstance(self.count, int) else round(bounds(self.count)[1])
        return None if most < channels else f"count = {most} drops all of the data's {channels} channels; drop fewer"

    def size_fault(self, steps: int, rate: int) -> str | None:
        return None


class ChannelShuffle(Spec):
    """Put the channels into a random order, all orders equally likely: sensors whose places are unknown."""

    kind: Literal["channel_shuffle"] = "channel_shuffle"
    probability: float = Field(default=0.5, ge=0, le=1)
    """of the order being drawn anew"""

    removes: ClassVar[frozenset[str]] = frozenset({"channel_order", "spectrum"})
    invertible: ClassVar[bool] = True
    group: ClassVar[bool] = True

    def draw(self, keys: Keys) -> Parameters:
        """``acts`` (N,) bool; ``word`` (N,) int64: the key of the order."""
        return {"acts": applied(keys, self.probability), "word": field_word(keys)}

    def apply(self, series: Tensor, parameters: Parameters, rate: int) -> Tensor:
        order = uniform_field(parameters["word"], (series.shape[1],)).argsort(1)  # (N,C)

        def change(part: Tensor, rows: Tensor) -> Tensor:
            return part.gather(1, order[rows, :, None].to(part.device).expand_as(part))

        return on_rows(series, parameters["acts"], change)

    def at(self, strength: float) -> ChannelShuffle:
        """The same with its probability scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"probability": self.probability * strength})

    def channels_fault(self, channels: int) -> str | None:
        return "needs 2 channels or more, the data has 1; leave it out" if channels == 1 else None

    def size_fault(self, steps: int, rate: int) -> str | None:
        return None
