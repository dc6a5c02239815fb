"""Invariances to the time of a series: where a window lies, and how fast things go.

Lengths and places are shares of the window, so that the rate does not matter. Values between steps are read on a
straight line, as numpy's ``interp``.

N series (N,C,T) of any scale.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from pipeline.keys import Keys
from pipeline.spec import Rule, Spec
from pipeline.views.audio_rows import on_rows, places, taken
from pipeline.views.audio_time import shift
from pipeline.views.image_plane import Parameters, applied
from pipeline.views.parameter import Amount, Range, Span, bounds, draw, towards, within


class WindowSlice(Spec):
    """A random part of the window, drawn out to the whole of it (Le Guennec et al. 2016), or padded with zeros.

    A part that is drawn out starts between steps too; one that is padded is whole steps, which stay where they are.
    """

    kind: Literal["window_slice"] = "window_slice"
    share: Range = (0.7, 1.0)
    """shortest and longest part, as a share of the window, drawn uniformly; or its distribution"""
    fit: Literal["stretch", "pad"] = "stretch"
    """whether the part is drawn out, or what lies outside it is put to 0"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of a part being taken"""

    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    @property
    def removes(self) -> frozenset[str]:
        """When a thing happens and how fast it goes; or the part that is hidden."""
        return frozenset({"onset", "tempo", "occlusion"} if self.fit == "stretch" else {"occlusion"})

    def rules(self) -> Iterator[Rule]:
        pair = "must be two shares in rising order, above 0 and up to 1"
        yield from within("share", self.share, Span(0, 1, open_low=True), pair)

    def draw(self, keys: Keys) -> Parameters:
        """``share`` (N,), 1 for the whole; ``place`` (N,): how far along, 0 at the start, 1 at the end."""
        share = draw(keys, "share", self.share).where(applied(keys, self.probability), 1.0)
        return {"share": share, "place": keys.uniform("place")}

    def apply(self, series: Tensor, parameters: Parameters, rate: int) -> Tensor:
        share, place = parameters["share"].double(), parameters["place"].double()
        steps = series.shape[-1]

        def stretch(part: Tensor, rows: Tensor) -> Tensor:
            span = (share[rows] * (steps - 1))[:, None]
            start = place[rows, None] * (steps - 1 - span)
            along = torch.linspace(0.0, 1.0, steps, dtype=torch.float64)
            return between(part, start + span * along)

        def pad(part: Tensor, rows: Tensor) -> Tensor:
            length = (share[rows] * steps).round().clamp(min=1.0).long()
            start = (place[rows] * (steps - length + 1)).long()
            time = torch.arange(steps)
            outside = (time < start[:, None]) | (time >= (start + length)[:, None])
            return part.masked_fill(outside.to(part.device)[:, None], 0.0)

        return on_rows(series, share != 1, stretch if self.fit == "stretch" else pad)

    def at(self, strength: float) -> WindowSlice:
        """The same with its shares drawn up to 1 by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"share": towards(self.share, 1.0, strength)})

    def channels_fault(self, channels: int) -> str | None:
        return None

    def size_fault(self, steps: int, rate: int) -> str | None:
        return None


class StepShift(Spec):
    """Move the series in time by a random number of whole steps, later or earlier."""

    kind: Literal["step_shift"] = "step_shift"
    share: Amount
    """largest shift either way, as a share of the window, drawn uniformly; or the distribution of the shift"""
    edge: Literal["zero", "hold", "wrap"] = "zero"
    """what comes in at the end that is left free: zeros, the last value, or what went out at the other end"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being moved at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"onset"})
    invertible: ClassVar[bool] = True
    group: ClassVar[bool] = True

    def rules(self) -> Iterator[Rule]:
        yield from within("share", self.share, Span(-1, 1, open_high=True))

    def draw(self, keys: Keys) -> Parameters:
        """``share`` (N,): later above 0."""
        return {"share": draw(keys, "share", self.share) * applied(keys, self.probability)}

    def apply(self, series: Tensor, parameters: Parameters, rate: int) -> Tensor:
        last = series.shape[-1] - 1
        steps = (parameters["share"].double() * series.shape[-1]).round().long()

        def change(part: Tensor, rows: Tensor) -> Tensor:
            if self.edge != "hold":
                return shift(part, steps[rows], wrap=self.edge == "wrap")
            source = places(last + 1, part) - steps[rows, None].to(part.device)
            return taken(part, source.clamp(0, last))

        return on_rows(series, steps != 0, change)

    def at(self, strength: float) -> StepShift:
        """The same with its range scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"share": towards(self.share, 0.0, strength)})

    def channels_fault(self, channels: int) -> str | None:
        return None

    def size_fault(self, steps: int, rate: int) -> str | None:
        most = max(map(abs, bounds(self.share)))
        if round(most * steps) > 0 or most == 0:
            return None
        return f"share = {most:g} of {steps} steps is not one step; use more"


class Stretch(Spec):
    """Play the series at a random speed about the middle of its window; outside it the ends' values are held."""

    kind: Literal["stretch"] = "stretch"
    speed: Range = (0.8, 1.25)
    """smallest and largest speed, as a factor, drawn log-uniformly: above 1 is faster; or its distribution"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being changed at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"tempo"})
    invertible: ClassVar[bool] = True
    group: ClassVar[bool] = True

    def rules(self) -> Iterator[Rule]:
        yield from within("speed", self.speed, Span(0.1, 10), "must be two speeds in rising order, from 0.1 to 10")

    def draw(self, keys: Keys) -> Parameters:
        """``speed`` (N,), 1 for no change."""
        return {"speed": draw(keys, "speed", self.speed, log=True).where(applied(keys, self.probability), 1.0)}

    def apply(self, series: Tensor, parameters: Parameters, rate: int) -> Tensor:
        speed = parameters["speed"].double()
        middle = (series.shape[-1] - 1) / 2
        offset = torch.arange(series.shape[-1], dtype=torch.float64) - middle
        return on_rows(series, speed != 1, lambda part, rows: between(part, middle + speed[rows, None] * offset))

    def at(self, strength: float) -> Stretch:
        """The same with its speeds drawn in to 1 by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"speed": towards(self.speed, 1.0, strength, log=True)})

    def channels_fault(self, channels: int) -> str | None:
        return None

    def size_fault(self, steps: int, rate: int) -> str | None:
        return "a series of one value has no speed; use more steps" if steps == 1 else None


def between(series: Tensor, places: Tensor) -> Tensor:
    """``series`` (M,C,T) at ``places`` (M,S) float64, in steps, on straight lines between them: (M,C,S).

    Beyond the first and the last step, their values.
    """
    last = series.shape[-1] - 1
    places = places.clamp(0.0, float(last))
    low = places.floor().clamp(max=max(last - 1, 0))
    share = (places - low).to(series)[:, None]
    low = low.long().to(series.device)
    after = (low + 1).clamp(max=last)
    return torch.lerp(taken(series, low), taken(series, after), share)
