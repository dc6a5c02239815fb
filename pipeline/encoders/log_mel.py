"""Sound as a picture of its log-mel spectrogram, read by any encoder of pictures.

The spectrogram is the first layer of the encoder, and not a step before it: so views act on the waveform, the bundle
takes waveforms, and the same arithmetic runs in training and later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from pipeline.audio.mel import LogMelLayer, empty_filters
from pipeline.encoders.small import Small
from pipeline.encoders.small_residual import SmallResidual
from pipeline.encoders.timm_model import Timm
from pipeline.encoders.torchvision_model import Torchvision
from pipeline.spec import Rule, Spec

Picture = Annotated[Small | SmallResidual | Timm | Torchvision, Field(discriminator="kind")]
DECIBELS = 20.0
"""that the encoder of pictures reads as 1, so that its input is of the size of normalised pixels"""


class LogMelNetwork(nn.Module):
    """x (N, C, T) → h (N, dim); children ``log_mel`` (without weights) and ``trunk``."""

    def __init__(self, log_mel: LogMelLayer, trunk: nn.Module):
        super().__init__()
        self.log_mel, self.trunk = log_mel, trunk
        self.dim = trunk.dim

    def forward(self, x: Tensor) -> Tensor:
        picture = self.log_mel(x) / DECIBELS  # (N, C, bins, frames)
        h: Tensor = self.trunk(picture.contiguous(memory_format=torch.channels_last))
        return h


class LogMel(Spec):
    """Log-mel spectrogram of the waveform, each channel for itself, then an encoder of pictures."""

    kind: Literal["log_mel"]
    rate: int = Field(ge=100, le=1_000_000)
    """hertz: that of the data's ``input``"""
    window: float = Field(gt=0, le=1000)
    """milliseconds that one frame sees (Hann); 25 is usual for speech"""
    hop: float = Field(gt=0, le=1000)
    """milliseconds from frame to frame; 10 is usual for speech"""
    bins: int = Field(ge=4, le=512)
    """mel bins"""
    low: float = Field(ge=0)
    """hertz: the lower edge of the first bin"""
    high: float = Field(gt=0)
    """hertz: the upper edge of the last bin, at most half the rate"""
    floor: float = Field(ge=-200, le=100)
    """decibels: what is quieter is this, relative to a clip of the data's own spread; -50 leaves out faint noise"""
    trunk: Picture
    """what reads the picture of (bins, frames)"""

    sides: ClassVar[int] = 1

    def rules(self) -> Iterator[Rule]:
        if self.high > self.rate / 2:
            yield "high", f"must be at most half the rate: {self.rate / 2:g}"
        elif self.low >= self.high:
            yield "low", f"must be below high ({self.high:g})"
        elif round(self.rate * self.window / 1000) < 2 or round(self.rate * self.hop / 1000) < 1:
            yield "window", f"at {self.rate} Hz it has fewer than 2 samples, or hop none; use more milliseconds"
        elif empty := empty_filters(self.rate, self.window, self.bins, self.low, self.high):
            yield "bins", f"{empty} of them hear nothing: a window of {self.window:g} ms tells fewer apart; use fewer"

    def build(self, channels: int) -> nn.Module:
        """An untrained network for sound of ``channels`` channels, drawn from torch's global generator."""
        layer = LogMelLayer(self.rate, self.window, self.hop, self.bins, self.low, self.high, self.floor)
        return LogMelNetwork(layer, self.trunk.build(channels))

    def batch_statistics(self) -> bool:
        """Whether a sample's h depends on the rest of its batch while training."""
        return self.trunk.batch_statistics()
