"""Invariance to noise at a given signal-to-noise ratio, white to brown, made from the key alone.

The ratio is exact, clip by clip, over all channels: as torchaudio's ``add_noise``. Coloured noise is white noise whose
spectrum is divided by frequency**(exponent / 2) (Timmer and Koenig, Astronomy and Astrophysics 300, 1995). A silent
clip has no signal to stand in a ratio to, so it stays silent.

N clips (N,C,T); ratios in dB.
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
from pipeline.views.audio_rows import NEAR, by_clip, field_word, normal_noise, normal_spectrum, on_rows
from pipeline.views.image_plane import Parameters, applied
from pipeline.views.parameter import Range, Span, bounds, draw, towards, within

PAIR = "must be two ratios in dB in rising order, up to 60"


class NoiseAtSnr(Spec):
    """Add noise, independent in each channel, so that the signal lies a random number of dB above it."""

    kind: Literal["noise_at_snr"] = "noise_at_snr"
    snr: Range = (10.0, 40.0)
    """smallest and largest ratio of signal to noise, in dB, drawn uniformly; or its distribution"""
    exponent: Range = (0.0, 0.0)
    """the power of the noise falls as 1 / frequency**exponent: 0 white, 1 pink, 2 brown; smallest and largest"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of noise being added"""

    removes: ClassVar[frozenset[str]] = frozenset({"noise"})
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        yield from within("snr", self.snr, Span(-NEAR, NEAR), PAIR)
        yield from within("exponent", self.exponent, Span(-2, 2), "must be two numbers in rising order, from -2 to 2")

    def draw(self, keys: Keys) -> Parameters:
        """``snr`` (N,) in dB; ``exponent`` (N,); ``acts`` (N,) bool; ``word`` (N,) int64: the key of the noise."""
        return {
            "snr": draw(keys, "snr", self.snr),
            "exponent": draw(keys, "exponent", self.exponent),
            "acts": applied(keys, self.probability),
            "word": field_word(keys),
        }

    def apply(self, clips: Tensor, parameters: Parameters, rate: int) -> Tensor:
        snr, exponent, word = (parameters[name] for name in ("snr", "exponent", "word"))
        white = bounds(self.exponent) == (0.0, 0.0)

        def change(part: Tensor, rows: Tensor) -> Tensor:
            drawn = word[rows]
            noise = normal_noise(drawn, part.shape[1:], part) if white else coloured(part, drawn, exponent[rows])
            return add_at(part, noise, snr[rows])

        return on_rows(clips, parameters["acts"], change)

    def at(self, strength: float) -> NoiseAtSnr:
        """The same with its ratios drawn up to 60 dB by ``strength`` in [0, 1]; 0 is the identity."""
        probability = self.probability if strength else 0.0
        return self.model_copy(update={"snr": towards(self.snr, NEAR, strength), "probability": probability})

    def channels_fault(self, channels: int) -> str | None:
        return None

    def size_fault(self, samples: int, rate: int) -> str | None:
        return None


def coloured(clips: Tensor, word: Tensor, exponent: Tensor) -> Tensor:
    """Noise of the shape of ``clips`` (M,C,T), keyed by ``word`` (M,), of power 1 / frequency**``exponent`` (M,)."""
    count = clips.shape[-1]
    bins = torch.arange(count // 2 + 1, device=clips.device, dtype=clips.dtype).clamp_(min=1.0)  # 0 Hz as the first
    slope = (by_clip(-0.5 * exponent, clips) * bins.log()).exp()  # (M,1,bins)
    made: Tensor = torch.fft.irfft(normal_spectrum(word, tuple(clips.shape[1:]), clips).mul_(slope), count)
    return made


def add_at(clips: Tensor, other: Tensor, snr: Tensor) -> Tensor:
    """``clips`` (M,C,T) and ``other`` of the same shape, at a ratio of ``snr`` (M,) dB between their powers."""
    signal, noise = (torch.linalg.vector_norm(each, dim=(1, 2), keepdim=True) for each in (clips, other))
    wanted = signal * by_clip((snr.double() * (-math.log(10.0) / 20.0)).exp(), clips)
    scale = torch.where(noise > 0, wanted / noise, 0.0)
    return torch.addcmul(clips, other, scale)
