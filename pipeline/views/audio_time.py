"""Invariances to when a thing happens, to which way time runs, and to a part being silent.

Whole samples are moved, so a shift is exact: it is rounded to the nearest sample.

N clips (N,C,T); times in milliseconds; rate in samples a second.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from pipeline.keys import Keys
from pipeline.spec import Rule, Spec
from pipeline.views.audio_rows import cut, on_rows
from pipeline.views.image_plane import Parameters, applied
from pipeline.views.parameter import Amount, Range, Span, bounds, draw, towards, within


class TimeShift(Spec):
    """Move the clip in time by a random number of milliseconds, later or earlier."""

    kind: Literal["time_shift"] = "time_shift"
    ms: Amount
    """largest shift either way, in milliseconds, drawn uniformly; or the distribution of the shift, later above 0"""
    edge: Literal["silence", "wrap"] = "silence"
    """what comes in at the end that is left free: nothing, or what went out at the other"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being moved at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"onset"})
    invertible: ClassVar[bool] = True
    group: ClassVar[bool] = True

    def rules(self) -> Iterator[Rule]:
        yield from within("ms", self.ms, Span(-math.inf))

    def draw(self, keys: Keys) -> Parameters:
        """``ms`` (N,): later above 0."""
        return {"ms": draw(keys, "ms", self.ms) * applied(keys, self.probability)}

    def apply(self, clips: Tensor, parameters: Parameters, rate: int) -> Tensor:
        samples = in_samples(parameters["ms"], rate)
        wrap = self.edge == "wrap"
        return on_rows(clips, samples != 0, lambda part, rows: shift(part, samples[rows], wrap))

    def at(self, strength: float) -> TimeShift:
        """The same with its range scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"ms": towards(self.ms, 0.0, strength)})

    def channels_fault(self, channels: int) -> str | None:
        return None

    def size_fault(self, samples: int, rate: int) -> str | None:
        most = max(map(abs, bounds(self.ms)))
        if 0 < most * rate < 500:
            return f"ms = {most:g} is less than half a sample at {rate} Hz; use more"
        return too_long("ms", most, samples, rate) if self.edge == "silence" else None


class TimeReversal(Spec):
    """Play the clip backwards; exact."""

    kind: Literal["time_reversal"] = "time_reversal"
    probability: float = Field(default=0.5, ge=0, le=1)
    """of being reversed"""

    removes: ClassVar[frozenset[str]] = frozenset({"direction"})
    invertible: ClassVar[bool] = True
    group: ClassVar[bool] = True

    def draw(self, keys: Keys) -> Parameters:
        """``reversed`` (N,) bool."""
        return {"reversed": applied(keys, self.probability)}

    def apply(self, clips: Tensor, parameters: Parameters, rate: int) -> Tensor:
        return on_rows(clips, parameters["reversed"], lambda part, rows: part.flip(-1))

    def at(self, strength: float) -> TimeReversal:
        """The same with its probability scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"probability": self.probability * strength})

    def channels_fault(self, channels: int) -> str | None:
        return None

    def size_fault(self, samples: int, rate: int) -> str | None:
        return None


class TimeMask(Spec):
    """Silence random stretches of the clip, as SpecAugment does (Park et al. 2019, arXiv:1904.08779), on the waveform.

    Each fades out and in, over a time of its own, for a hard edge would be a click: a sound that was not there.
    """

    kind: Literal["time_mask"] = "time_mask"
    ms: Range
    """shortest and longest stretch, in milliseconds, drawn uniformly; or its distribution"""
    count: int = Field(default=1, ge=1, le=100)
    """how many stretches, which may overlap"""
    fade_ms: float = Field(default=2.0, ge=0, le=1000)
    """milliseconds of each fade, which lie inside the stretch and take at most half of it"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of any being silenced"""

    removes: ClassVar[frozenset[str]] = frozenset({"occlusion"})
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        yield from within("ms", self.ms, Span(0), "must be two times in milliseconds in rising order, 0 or more")

    def draw(self, keys: Keys) -> Parameters:
        """``ms`` (N,count): lengths, 0 for none; ``place`` (N,count): how far along, 0 at the start, 1 at the end."""
        ms = draw(keys, "ms", self.ms, (self.count,)) * applied(keys, self.probability)[:, None]
        return {"ms": ms, "place": keys.uniform("place", shape=(self.count,))}

    def apply(self, clips: Tensor, parameters: Parameters, rate: int) -> Tensor:
        length = in_samples(parameters["ms"], rate).clamp(max=clips.shape[-1])  # (N,count)
        room = clips.shape[-1] - length + 1
        start = (parameters["place"].double() * room).long().clamp(max=clips.shape[-1] - length)
        fade = round(self.fade_ms * rate / 1000)
        return on_rows(clips, (length > 0).any(1), lambda part, rows: silence(part, start[rows], length[rows], fade))

    def at(self, strength: float) -> TimeMask:
        """The same with its lengths scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"ms": towards(self.ms, 0.0, strength)})

    def channels_fault(self, channels: int) -> str | None:
        return None

    def size_fault(self, samples: int, rate: int) -> str | None:
        return too_long("ms", bounds(self.ms)[1], samples, rate)


def in_samples(ms: Tensor, rate: int) -> Tensor:
    """Milliseconds as the nearest whole number of samples: int64 of the same shape."""
    return (ms.double() * (rate / 1000.0)).round().long()


def too_long(name: str, ms: float, samples: int, rate: int) -> str | None:
    """Why a time is too long for a clip of ``samples``, with a remedy; None if it is not."""
    whole = 1000.0 * samples / rate
    return None if ms < whole else f"{name} = {ms:g} leaves nothing of a clip of {whole:g} ms; use less"


def shift(clips: Tensor, samples: Tensor, wrap: bool = False) -> Tensor:
    """``clips`` (M,C,T) later by ``samples`` (M,) int64; zeros come in, or with ``wrap`` what went out."""
    count = clips.shape[-1]
    if wrap:
        return cut(torch.cat([clips, clips], dim=-1), -samples % count, count)
    return cut(clips, -samples, count)


def silence(clips: Tensor, start: Tensor, length: Tensor, fade: int = 0) -> Tensor:
    """Silence ``length`` samples from ``start``, both (M,count) int64, of ``clips`` (M,C,T).

    The first and last ``fade`` samples inside (at most half of all) are on a straight line between sound and silence.
    """
    keep = clips.new_ones(len(clips), clips.shape[-1])
    time = torch.arange(clips.shape[-1], device=clips.device, dtype=clips.dtype)
    for first, count in zip(start.T[..., None], length.T[..., None], strict=True):  # (M,1)
        steps = (count // 2).clamp(max=fade) + 1
        outside = (time - (first + (count - 1) / 2).to(keep)).abs_().sub_(((count + 1) / 2).to(keep))  # 0 at both edges
        keep *= outside.div_(steps.to(keep)).add_(1.0).clamp_(0.0, 1.0)
    return clips * keep[:, None]
