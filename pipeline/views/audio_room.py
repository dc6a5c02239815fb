"""Invariance to the room: reverberation by an impulse response that is drawn for each clip.

The response is the direct sound and behind it noise that decays exponentially, by 60 dB in the reverberation time
(Polack 1988; Moorer, Computer Music Journal 3, 1979). The direct sound keeps its level; the energy of the rest lies a
given number of dB below it, in expectation over the noise. It ends where the longest that can be drawn has decayed.

N clips (N,C,T); times in seconds, ratios in dB; rate in samples a second.
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
from pipeline.views.audio_rows import NEAR, fast_length, field_word, normal_noise, on_rows
from pipeline.views.image_plane import Parameters, applied
from pipeline.views.parameter import Range, Span, bounds, draw, towards, within

DECAY = 3.0 * math.log(10.0)  # nepers in 60 dB of amplitude


class Reverberation(Spec):
    """Put the clip into a random room; what would ring beyond its end is lost."""

    kind: Literal["reverberation"] = "reverberation"
    seconds: Range = (0.1, 0.6)
    """shortest and longest reverberation time (to 60 dB below), drawn log-uniformly; or its distribution"""
    direct: Range = (0.0, 15.0)
    """smallest and largest ratio of direct to reverberant sound, in dB, drawn uniformly; or its distribution"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being in a room"""

    removes: ClassVar[frozenset[str]] = frozenset({"room"})
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        times = "must be two times in seconds in rising order, from 0.01 to 10"
        yield from within("seconds", self.seconds, Span(0.01, 10), times)
        yield from within(
            "direct", self.direct, Span(-NEAR, NEAR), "must be two ratios in dB in rising order, up to 60"
        )

    def draw(self, keys: Keys) -> Parameters:
        """``seconds`` (N,); ``direct`` (N,) in dB; ``acts`` (N,) bool; ``word`` (N,) int64: the key of the noise."""
        return {
            "seconds": draw(keys, "seconds", self.seconds, log=True),
            "direct": draw(keys, "direct", self.direct),
            "acts": applied(keys, self.probability),
            "word": field_word(keys),
        }

    def apply(self, clips: Tensor, parameters: Parameters, rate: int) -> Tensor:
        seconds, direct, word = (parameters[name] for name in ("seconds", "direct", "word"))

        longest = min(clips.shape[-1], math.ceil(bounds(self.seconds)[1] * rate))

        def change(part: Tensor, rows: Tensor) -> Tensor:
            return convolved(part, responses(part, longest, seconds[rows], direct[rows], word[rows], rate))

        return on_rows(clips, parameters["acts"], change)

    def at(self, strength: float) -> Reverberation:
        """The same with its ratios drawn up to 60 dB by ``strength`` in [0, 1]; 0 is the identity."""
        probability = self.probability if strength else 0.0
        return self.model_copy(update={"direct": towards(self.direct, NEAR, strength), "probability": probability})

    def channels_fault(self, channels: int) -> str | None:
        return None

    def size_fault(self, samples: int, rate: int) -> str | None:
        return None


def responses(like: Tensor, count: int, seconds: Tensor, direct: Tensor, word: Tensor, rate: int) -> Tensor:
    """The first ``count`` samples of the impulse responses of M rooms: (M,count).

    Args:
        like: its type and device are the responses'.
        seconds: reverberation times (M,).
        direct: energy of the first sample, which is 1, over that of all others (M,) in dB.
        word: keys of the noise (M,) int64.
    """
    fall = DECAY / (seconds.double() * rate)  # (M,) nepers a sample
    energy = (direct.double() * (-math.log(10.0) / 10.0)).exp()
    # the energy of noise of variance v that decays from sample 1 on is v / (exp(2 fall) - 1)
    level = (energy * torch.expm1(2.0 * fall)).sqrt()
    noise = normal_noise(word, (count,), like)
    time = torch.arange(count, device=like.device, dtype=like.dtype)
    tail = noise.mul_((time * -fall.to(like)[:, None]).exp_()).mul_(level.to(like)[:, None])
    tail[:, 0] = 1.0
    return tail


def convolved(clips: Tensor, response: Tensor) -> Tensor:
    """``clips`` (M,C,T) convolved with ``response`` (M,R), the first T samples of it."""
    count = clips.shape[-1]
    length = fast_length(count + response.shape[-1] - 1)
    spectrum = torch.fft.rfft(clips, length).mul_(torch.fft.rfft(response, length)[:, None])
    made: Tensor = torch.fft.irfft(spectrum, length)
    return made[..., :count]
