"""Invariances to how fast a clip goes, at the same pitch, and to its pitch, at the same tempo: by the phase vocoder.

Tempo keeps the clip's middle in the middle: a faster clip has silence at both ends, a slower one loses both ends.
Pitch is tempo undone by resampling, as librosa's ``pitch_shift``, and moves the formants along.

N clips (N,C,T); speeds as factors, pitch in semitones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from pipeline.keys import Keys
from pipeline.spec import Rule, Spec
from pipeline.views.audio_rows import cut, on_rows
from pipeline.views.audio_sinc import read_at
from pipeline.views.audio_vocoder import frame_size, stretched
from pipeline.views.image_plane import Parameters, applied
from pipeline.views.parameter import Amount, Range, Span, draw, towards, within

PIECE = 2**17  # samples that are worked on at a time on a CPU


class Tempo(Spec):
    """Play the clip at a random speed without changing its pitch."""

    kind: Literal["tempo"] = "tempo"
    speed: Range = (0.8, 1.25)
    """smallest and largest speed, as a factor, drawn log-uniformly: above 1 is faster; or its distribution"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being changed at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"tempo"})
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        yield from within("speed", self.speed, Span(0.25, 4), "must be two speeds in rising order, from 0.25 to 4")

    def draw(self, keys: Keys) -> Parameters:
        """``speed`` (N,), 1 for no change."""
        return {"speed": draw(keys, "speed", self.speed, log=True).where(applied(keys, self.probability), 1.0)}

    def apply(self, clips: Tensor, parameters: Parameters, rate: int) -> Tensor:
        speed = parameters["speed"]
        return on_rows(clips, speed != 1, lambda part, rows: change_tempo(part, speed[rows], frame_size(rate)))

    def at(self, strength: float) -> Tempo:
        """The same with its speeds drawn in to 1 by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"speed": towards(self.speed, 1.0, strength, log=True)})

    def channels_fault(self, channels: int) -> str | None:
        return None

    def size_fault(self, samples: int, rate: int) -> str | None:
        return None


class Pitch(Spec):
    """Make the clip higher or lower by a random number of semitones without changing its tempo."""

    kind: Literal["pitch"] = "pitch"
    semitones: Amount
    """largest change either way, in semitones, drawn uniformly; or the distribution of the change, higher above 0"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being changed at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"pitch"})
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        yield from within("semitones", self.semitones, Span(-24, 24))

    def draw(self, keys: Keys) -> Parameters:
        """``semitones`` (N,), 0 for no change."""
        return {"semitones": draw(keys, "semitones", self.semitones) * applied(keys, self.probability)}

    def apply(self, clips: Tensor, parameters: Parameters, rate: int) -> Tensor:
        up = parameters["semitones"]
        return on_rows(clips, up != 0, lambda part, rows: change_pitch(part, up[rows], frame_size(rate)))

    def at(self, strength: float) -> Pitch:
        """The same with its range scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"semitones": towards(self.semitones, 0.0, strength)})

    def channels_fault(self, channels: int) -> str | None:
        return None

    def size_fault(self, samples: int, rate: int) -> str | None:
        return None


def change_tempo(clips: Tensor, speed: Tensor, size: int) -> Tensor:
    """``clips`` (M,C,T) at ``speed`` (M,) times their own, about their middle; frames of ``size`` samples."""
    channels, count = clips.shape[1:]

    def change(part: Tensor, speed: Tensor) -> Tensor:
        made, lengths = stretched(part.flatten(0, 1), speed.repeat_interleave(channels), size)
        start = (lengths[::channels] - count).div(2, rounding_mode="floor")
        return cut(made.view(len(part), channels, -1), start, count)

    return in_pieces(clips, speed, change)


def change_pitch(clips: Tensor, semitones: Tensor, size: int) -> Tensor:
    """``clips`` (M,C,T) higher by ``semitones`` (M,); frames of ``size`` samples.

    What would lie above half the rate is taken out first.
    """
    time = torch.arange(clips.shape[-1], dtype=torch.float64)

    def change(part: Tensor, ratio: Tensor) -> Tensor:
        ratio = ratio.repeat_interleave(part.shape[1])  # (M*C,)
        made, _ = stretched(part.flatten(0, 1), 1.0 / ratio, size, high=(1.0 / ratio).clamp(max=1.0))
        return read_at(made, time * ratio[:, None]).view_as(part)

    return in_pieces(clips, (semitones.double() * (math.log(2.0) / 12.0)).exp(), change)


def in_pieces(clips: Tensor, speed: Tensor, change: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """``change(clips, speed)``; on a CPU in pieces that stay in its cache, of clips whose results are about as long."""
    most = max(1, PIECE // clips[0].numel()) if clips.device.type == "cpu" else len(clips)
    if len(clips) <= most:
        return change(clips, speed)
    made = torch.empty_like(clips)
    for part in speed.argsort().tensor_split(-(-len(clips) // most)):
        rows = part.to(clips.device)
        made.index_copy_(0, rows, change(clips.index_select(0, rows), speed[part]))
    return made
