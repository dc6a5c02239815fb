"""Series: what check and audit ask of them. N series (N, C, T) in their own units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from pipeline.series import Series
from pipeline.views import Invariance
from pipeline.views.series import (
    ChannelScale,
    ChannelShuffle,
    Jitter,
    Polarity,
    SegmentShuffle,
    SensorDrop,
    StepShift,
    Stretch,
    TimeReversal,
    WindowSlice,
)

POOLED, BANDS = 16, 8
DRIVERS, SHRUNK = 16, 0.01
"""channels up to which it is asked how each drives each, and the ridge of that regression"""


@dataclass(frozen=True)
class SeriesProof:
    """The questions, of series of one length."""

    contract: Series

    def features(self, batch: Tensor) -> dict[str, Tensor]:
        """Moments of each channel, its pooled course, its spectrum in octaves, and what its steps follow from."""
        found = {"moments": moments(batch), "course": course(batch), "spectrum": spectrum(batch)}
        if batch.shape[1] <= DRIVERS:
            found["dynamics"] = dynamics(batch)
        return {**found, "all": torch.cat(list(found.values()), dim=1)}

    def statistics(self, batch: Tensor) -> dict[str, Tensor]:
        """Mean, spread and first value of each channel, and how the channels compare."""
        spread = batch.std(2, correction=0)
        return {
            "the mean of each channel": batch.mean(2),
            "the spread of each channel": spread,
            "the first value of each channel": batch[:, :, 0],
            "how the channels compare": functional.normalize(spread, dim=1),
        }

    def breakers(self, statistic: str) -> Iterator[tuple[str, Invariance]]:
        """Shifts for places, scales for levels."""
        if "first" in statistic:
            yield "step_shift of 0.1", StepShift(share=0.1)
            yield "window_slice of 0.5 to 1", WindowSlice(share=(0.5, 1.0))
        else:
            for low, high in ((0.8, 1.25), (0.5, 2.0)):
                yield f"channel_scale of {low:g} to {high:g}", ChannelScale(factor=(low, high))

    def drafts(self) -> Sequence[Invariance]:
        """The usual invariances of sensors."""
        return [
            StepShift(share=0.05),
            StepShift(share=0.2),
            WindowSlice(share=(0.7, 1.0)),
            Stretch(speed=(0.8, 1.25)),
            Jitter(share=(0.0, 0.1)),
            ChannelScale(factor=(0.8, 1.25)),
            SensorDrop(count=1),
            ChannelShuffle(probability=0.5),
            SegmentShuffle(parts=4),
            Polarity(probability=0.5),
            TimeReversal(probability=0.5),
        ]

    def controls(self, fill: float) -> Sequence[Invariance]:
        """Moves in time, order, scale and noise."""
        return (
            StepShift(share=0.125),
            TimeReversal(probability=1.0),
            Stretch(speed=(0.7, 1.4)),
            SegmentShuffle(parts=4, probability=1.0),
            Jitter(share=(0.05, 0.3)),
            ChannelScale(factor=(0.6, 1.6)),
            SensorDrop(count=1, probability=1.0),
            Polarity(probability=1.0),
        )

    def mover(self, factor: str, fill: float) -> tuple[Invariance, str] | None:
        """One transformation a factor."""
        movers: dict[str, tuple[Invariance, str]] = {
            "onset": (StepShift(share=0.125), "share"),
            "tempo": (Stretch(speed=(0.7, 1.4)), "speed"),
            "noise": (Jitter(share=(0.0, 0.4)), "share"),
            "loudness": (ChannelScale(factor=(0.5, 2.0), each=False), "factor"),
            "polarity": (Polarity(probability=0.5), "inverted"),
            "direction": (TimeReversal(probability=0.5), "reversed"),
        }
        return movers.get(factor)

    def raw(self, batch: Tensor, side: int) -> Tensor:
        """The values (N, C·T'), pooled to at most ``side`` steps."""
        return functional.adaptive_avg_pool1d(batch, min(side, self.contract.steps)).flatten(1)

    def raw_again(self, rows: Tensor, side: int, smaller: int) -> Tensor:
        """Pooled values, pooled on."""
        return self.raw(rows.reshape(len(rows), self.contract.channels, min(side, self.contract.steps)), smaller)


def moments(batch: Tensor) -> Tensor:
    """Mean, spread, least, most and mean step of each channel: (N, 5C)."""
    steps = batch.diff(dim=2).abs().mean(2) if batch.shape[2] > 1 else torch.zeros_like(batch[:, :, 0])
    parts = [batch.mean(2), batch.std(2, correction=0), batch.amin(2), batch.amax(2), steps]
    return torch.cat(parts, dim=1).float()


def course(batch: Tensor) -> Tensor:
    """Each channel's mean over POOLED parts of time: (N, C·POOLED)."""
    return functional.adaptive_avg_pool1d(batch.float(), min(POOLED, batch.shape[2])).flatten(1)


def spectrum(batch: Tensor) -> Tensor:
    """Shares of each channel's power in BANDS octaves, their roots: (N, C·BANDS)."""
    centred = (batch - batch.mean(2, keepdim=True)).float()
    power = torch.fft.rfft(centred, dim=2).abs().square()[:, :, 1:]
    if not power.shape[2]:
        return torch.zeros(len(batch), batch.shape[1] * BANDS)
    octave = torch.arange(1, power.shape[2] + 1).log2().floor().long().clamp(max=BANDS - 1)
    banded = torch.zeros(*power.shape[:2], BANDS).index_add_(2, octave, power)
    return (banded / banded.sum(2, keepdim=True).clamp(min=1e-12)).sqrt().flatten(1)


def dynamics(batch: Tensor) -> Tensor:
    """How far the next step of each channel follows from where all channels are: (N, C·C), in the channels' units.

    The coefficients of a vector autoregression of order 1 (Lütkepohl, New Introduction to Multiple Time Series
    Analysis, 2005, section 3.2), by ridge regression over the window; their logarithms, since those of channels that
    stand still are large. What is in no moment and no channel alone, as a force or the direction of time, is here.
    """
    if batch.shape[2] < 2:
        return torch.zeros(len(batch), batch.shape[1] ** 2)
    values, steps = batch[:, :, :-1].double(), batch.double().diff(dim=2)
    spread = values.std(2, correction=0, keepdim=True)
    spread = spread.where(spread > 1e-9, 1.0)  # (N, C, 1)
    values = (values - values.mean(2, keepdim=True)) / spread
    steps = (steps - steps.mean(2, keepdim=True)) / spread
    ridge = SHRUNK * torch.eye(batch.shape[1], dtype=torch.float64)
    within = values @ values.transpose(1, 2) / values.shape[2] + ridge
    driven = torch.linalg.solve(within, values @ steps.transpose(1, 2) / values.shape[2])  # (N, from, to)
    driven = driven * spread.transpose(1, 2) / spread
    found: Tensor = (driven.sign() * driven.abs().log1p()).flatten(1).float()
    return found
