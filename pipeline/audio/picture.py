"""What a clip looks like: its waveform above its log-mel spectrogram, in the colours of matplotlib's magma.

Legend: N clips, C channels, T samples. A function of the clip alone: the spectrogram is scaled by its own loudest bin.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

from pipeline.audio.mel import LogMelLayer, fitting_bins

WIDE, WAVE, MEL = 96, 24, 48
"""pixels: across, and down for waveform and spectrogram"""
DECIBELS = 60.0
"""below its loudest bin a spectrogram is black"""
PAPER, LINE, AXIS = (1.0, 1.0, 1.0), (0.12, 0.23, 0.42), (0.8, 0.82, 0.85)
MAGMA = (
    (0.001, 0.000, 0.014),
    (0.317, 0.071, 0.485),
    (0.716, 0.215, 0.475),
    (0.987, 0.535, 0.382),
    (0.987, 0.991, 0.750),
)
"""five even places of the map"""


@cache
def _layer(rate: int) -> LogMelLayer:
    return LogMelLayer(rate, 32.0, 10.0, fitting_bins(rate, 32.0, MEL), 0.0, rate / 2, -100.0)


def pictures(clips: Tensor, rate: int) -> Tensor:
    """clips (N, C, T) in [-1, 1] → (N, 3, WAVE + MEL, WIDE) in [0, 1]."""
    mono = clips.detach().cpu().float().mean(1)
    return torch.cat([_waveforms(mono), _spectrograms(mono, rate)], dim=2)


def _waveforms(mono: Tensor) -> Tensor:
    """Least and largest value of each column, as a filled line: (N, 3, WAVE, WIDE)."""
    highest = functional.adaptive_max_pool1d(mono[:, None], WIDE)[:, 0].clamp(-1, 1)
    lowest = -functional.adaptive_max_pool1d(-mono[:, None], WIDE)[:, 0].clamp(-1, 1)
    rows = torch.linspace(1, -1, WAVE)[None, :, None]  # the value at the middle of each row
    half = 1.0 / (WAVE - 1)
    inked = (rows <= highest[:, None] + half) & (rows >= lowest[:, None] - half)  # (N, WAVE, WIDE)
    shades = torch.tensor([PAPER, AXIS, LINE])
    level = torch.zeros(inked.shape, dtype=torch.long)
    level[:, WAVE // 2] = 1
    level[inked] = 2
    return shades[level].permute(0, 3, 1, 2)


def _spectrograms(mono: Tensor, rate: int) -> Tensor:
    """Low frequencies below: (N, 3, MEL, WIDE)."""
    decibels = _layer(rate)(mono[:, None])  # (N, 1, bins, frames)
    loudest = decibels.amax((1, 2, 3), keepdim=True).clamp(min=-60.0)  # silence stays black
    level = ((decibels - loudest) / DECIBELS + 1).clamp(0, 1).flip(2)
    level = functional.interpolate(level, (MEL, WIDE), mode="bilinear", align_corners=False)[:, 0]
    colours = torch.tensor(MAGMA)
    place = level * (len(MAGMA) - 1)
    low = place.floor().long().clamp(max=len(MAGMA) - 2)
    part = (place - low)[..., None]
    return (colours[low] * (1 - part) + colours[low + 1] * part).permute(0, 3, 1, 2)
