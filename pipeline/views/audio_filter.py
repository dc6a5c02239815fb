"""Invariances to the balance of frequencies: a band that is let through, and bands that are masked; both by the FFT.

The band's edges are Butterworth filters of order 2, 12 dB an octave, by the bilinear transform, as scipy's
``butter(2, ...)`` and ``sosfilt``: their frequency response, on a clip that is followed by silence for as long as they
ring. A mask takes bins of the clip's own spectrum out, as SpecAugment does (Park et al. 2019, arXiv:1904.08779) with
those of a log-mel spectrogram: nothing is left there, and what is outside is as it was.

N clips (N,C,T); frequencies in Hz; rate in samples a second.
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
from pipeline.views.audio_rows import fast_length, on_rows
from pipeline.views.image_plane import Parameters, applied
from pipeline.views.parameter import Range, Span, bounds, draw, towards, within

LOWEST, HIGHEST = 10.0, 100_000.0  # Hz: at these edges, all that can be heard goes through
TOP = 0.49  # of the rate: an upper edge from here on lets everything through
RINGING = 4.0  # periods of an edge's frequency after which it has rung down by 140 dB


class BandFilter(Spec):
    """Let through what lies between two random frequencies, with 12 dB an octave outside: a telephone, a wall."""

    kind: Literal["band_filter"] = "band_filter"
    low: Range = (20.0, 300.0)
    """smallest and largest lower edge (3 dB down), in Hz, drawn log-uniformly; or its distribution"""
    high: Range = (2000.0, 8000.0)
    """smallest and largest upper edge (3 dB down), in Hz, drawn log-uniformly; or its distribution; above 0.49 of the
    rate it lets everything through"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being filtered"""

    removes: ClassVar[frozenset[str]] = frozenset({"timbre"})
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        pair = f"must be two frequencies in rising order, from {LOWEST:g} to {HIGHEST:,.0f} Hz"
        yield from within("low", self.low, Span(LOWEST, HIGHEST), pair)
        yield from within("high", self.high, Span(LOWEST, HIGHEST), pair)
        if bounds(self.low)[1] > bounds(self.high)[0]:
            yield "low", f"must stay below high, which goes down to {bounds(self.high)[0]:g} Hz"

    def draw(self, keys: Keys) -> Parameters:
        """``low`` and ``high`` (N,) in Hz; ``acts`` (N,) bool."""
        edges = {name: draw(keys, name, getattr(self, name), log=True) for name in ("low", "high")}
        return {**edges, "acts": applied(keys, self.probability)}

    def apply(self, clips: Tensor, parameters: Parameters, rate: int) -> Tensor:
        low, high = parameters["low"], parameters["high"]
        ringing = math.ceil(RINGING * rate / min(bounds(self.low)[0], bounds(self.high)[0]))
        return on_rows(clips, parameters["acts"], lambda part, rows: band(part, low[rows], high[rows], rate, ringing))

    def at(self, strength: float) -> BandFilter:
        """The same with its edges moved out by ``strength`` in [0, 1], to 10 Hz and 100 kHz; 0 is the identity."""
        edges = {"low": towards(self.low, LOWEST, strength, log=True)}
        edges["high"] = towards(self.high, HIGHEST, strength, log=True)
        return self.model_copy(update={**edges, "probability": self.probability if strength else 0.0})

    def channels_fault(self, channels: int) -> str | None:
        return None

    def size_fault(self, samples: int, rate: int) -> str | None:
        edge = bounds(self.low)[1]
        if edge < TOP * rate:
            return None
        return f"low = {edge:g} lets nothing through at {rate} Hz, where the band ends at {rate / 2:g}; use less"


class FrequencyMask(Spec):
    """Take random bands of frequencies out of the clip, of a width that is drawn on the mel scale."""

    kind: Literal["frequency_mask"] = "frequency_mask"
    share: Range = (0.0, 0.15)
    """narrowest and widest band, as a share of the mel scale up to half the rate, drawn uniformly; or its
    distribution"""
    count: int = Field(default=1, ge=1, le=100)
    """how many bands, which may overlap"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of any being masked"""

    removes: ClassVar[frozenset[str]] = frozenset({"timbre", "occlusion"})
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        pair = "must be two shares in rising order, from 0 to below 1"
        yield from within("share", self.share, Span(0, 1, open_high=True), pair)

    def draw(self, keys: Keys) -> Parameters:
        """``low`` and ``high`` (N,count): the bands' edges, as shares of the mel scale; equal for none."""
        share = draw(keys, "share", self.share, (self.count,)) * applied(keys, self.probability)[:, None]
        low = keys.uniform("place", shape=(self.count,)) * (1.0 - share)
        return {"low": low, "high": low + share}

    def apply(self, clips: Tensor, parameters: Parameters, rate: int) -> Tensor:
        low, high = (from_mel_share(parameters[name], rate) for name in ("low", "high"))
        acts = (parameters["high"] > parameters["low"]).any(1)
        return on_rows(clips, acts, lambda part, rows: mask_bands(part, low[rows], high[rows], rate))

    def at(self, strength: float) -> FrequencyMask:
        """The same with its widths scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"share": towards(self.share, 0.0, strength)})

    def channels_fault(self, channels: int) -> str | None:
        return None

    def size_fault(self, samples: int, rate: int) -> str | None:
        return None


def from_mel_share(share: Tensor, rate: int) -> Tensor:
    """Hz at a share of the mel scale (2595 log10(1 + f / 700), O'Shaughnessy 1987) up to half the rate: float64."""
    top = math.log1p(rate / 2 / 700.0)
    return 700.0 * torch.expm1(share.double() * top)


def band(clips: Tensor, low: Tensor, high: Tensor, rate: int, ringing: int) -> Tensor:
    """What of ``clips`` (M,C,T) lies between ``low`` and ``high`` (M,) Hz, the filters starting at rest.

    Args:
        ringing: samples after which the filters' response is over.
    """
    count = clips.shape[-1]
    length = fast_length(count + ringing)
    # the bilinear transform: a digital frequency f is the analog one tan(pi f / rate)
    analog = (torch.arange(length // 2 + 1, dtype=torch.float64) * (math.pi / length)).tan()
    analog = analog.abs().clamp_(1e-9, 1e9)  # at 0 Hz and at half the rate, where it is 0 and infinite
    analog = analog.to(clips)
    below = (low.double() * (math.pi / rate)).tan()[:, None].to(clips) / analog  # (M,bins)
    top = (high.double().clamp(max=TOP * rate) * (math.pi / rate)).tan().masked_fill_(high >= TOP * rate, math.inf)
    above = analog / top[:, None].to(clips)
    # 1 / ((1 - below^2 - i root below) (1 - above^2 + i root above)), root = sqrt(2)
    low_even, high_even = 1.0 - below.square(), 1.0 - above.square()
    even = torch.addcmul(low_even * high_even, below, above, value=2.0)
    odd = (above * low_even).sub_(below * high_even).mul_(math.sqrt(2.0))
    scale = torch.addcmul(even.square(), odd, odd).reciprocal_()
    response = torch.complex(even.mul_(scale), odd.mul_(scale).neg_())
    made: Tensor = torch.fft.irfft(torch.fft.rfft(clips, length).mul_(response[:, None]), length)
    return made[..., :count]


def mask_bands(clips: Tensor, low: Tensor, high: Tensor, rate: int) -> Tensor:
    """``clips`` (M,C,T) without the bins of their spectrum from ``low`` to below ``high`` (M,count) Hz."""
    count = clips.shape[-1]
    place = torch.arange(count // 2 + 1, dtype=torch.float64) * (rate / count)
    masked = (place >= low[..., None]) & (place < high[..., None])  # (M,count,bins)
    kept = masked.any(1).logical_not_().to(clips)  # a product with it is many times as fast as masked_fill
    made: Tensor = torch.fft.irfft(torch.fft.rfft(clips).mul_(kept[:, None]), count)
    return made
