"""Cheap features and trivial statistics of clips: what a label, or a partner, can be read from without training.

Each feature is blind to something: the envelope hears loudness over time and no timbre, the spectrum timbre and no
time, the map both and no detail, random filters (as of pictures, ``check.features``) texture wherever it stands.

Legend: N clips (N, C, T), M mel bins, F frames, D numbers.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

from pipeline.audio.mel import LogMelLayer, fitting_bins
from pipeline.check.features import SIDE, filters

FLOOR = -80.0  # decibels below full scale that count as silence
SEGMENTS = 16  # of the envelope
MAP = (8, 8)  # bins and frames of the pooled spectrogram
EDGE = 0.05  # part of a clip, at each end, that is its edge
HEARD = 30.0  # decibels below the loudest frame that still count as sound
RAW_BINS = 40
CHUNK = 64  # clips at a time


@cache
def mel_layer(rate: int, wanted: int = RAW_BINS) -> LogMelLayer:
    """A log-mel spectrogram of the usual 25 and 10 ms, with as many bins as they can tell apart, up to ``wanted``."""
    return LogMelLayer(rate, 25.0, 10.0, fitting_bins(rate, 25.0, wanted), 0.0, rate / 2, FLOOR)


def features(clips: Tensor, rate: int) -> dict[str, Tensor]:
    """Every feature of every clip: kind to (N, D) float32."""
    parts = [_features(clips[start : start + CHUNK].float(), rate) for start in range(0, len(clips), CHUNK)]
    found = {kind: torch.cat([part[kind] for part in parts]) for kind in parts[0]}
    return {**found, "all": torch.cat(list(found.values()), dim=1)}


def _features(clips: Tensor, rate: int) -> dict[str, Tensor]:
    level = mel_layer(rate, 32)(clips) / -FLOOR + 1  # (N, C, M, F), 0 silence, 1 full scale
    small = level
    if max(level.shape[2:]) > SIDE:
        small = functional.adaptive_avg_pool2d(level, (min(SIDE, level.shape[2]), min(SIDE, level.shape[3])))
    grid = (min(MAP[0], level.shape[2]), min(MAP[1], level.shape[3]))
    return {
        "envelope": envelope(clips),
        "spectrum": spectrum(level),
        "map": functional.adaptive_avg_pool2d(level, grid).flatten(1),
        "filters": filters(small),
    }


def envelope(clips: Tensor) -> Tensor:
    """Decibels of each of SEGMENTS parts of a clip, as shares of the way from silence to full scale."""
    power = functional.adaptive_avg_pool1d(clips.square(), min(SEGMENTS, clips.shape[-1]))
    return (10 * power.clamp(min=1e-8).log10() / -FLOOR + 1).clamp(0, 1).flatten(1)


def spectrum(level: Tensor) -> Tensor:
    """Mean and spread over time of each mel bin: (N, 2CM)."""
    return torch.cat([level.mean(3).flatten(1), level.std(3, correction=0).flatten(1)], dim=1)


def raw(clips: Tensor, rate: int) -> Tensor:
    """The raw control: log-mel statistics, mean and spread over time of each bin, (N, 2CM)."""
    layer = mel_layer(rate).to(clips.device)
    parts = [spectrum(layer(clips[start : start + CHUNK])) for start in range(0, len(clips), CHUNK)]
    layer.to("cpu")
    return torch.cat(parts)


def statistics(clips: Tensor, rate: int) -> dict[str, Tensor]:
    """Trivial statistics: what it is called to (N, D)."""
    parts = [_statistics(clips[start : start + CHUNK].float(), rate) for start in range(0, len(clips), CHUNK)]
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def _statistics(clips: Tensor, rate: int) -> dict[str, Tensor]:
    decibels = mel_layer(rate, 32)(clips)  # (N, C, M, F)
    frames = decibels.shape[-1]
    edge = max(1, round(EDGE * frames))
    ends = torch.cat([decibels[..., :edge], decibels[..., -edge:]], dim=-1).mean(-1).flatten(1)
    loud = decibels.amax((1, 2))  # (N, F)
    heard = loud >= loud.amax(1, keepdim=True) - HEARD
    first = heard.int().argmax(1)
    last = frames - 1 - heard.flip(1).int().argmax(1)
    places = torch.stack([first, last, last - first], dim=1).float() / frames
    return {
        "the level": 10 * clips.square().mean((1, 2), keepdim=True).clamp(min=1e-12).log10()[:, 0],
        "the DC offset": clips.mean(2),
        "the silence before and after": places[:, :2],
        "the length of the sound": places[:, 2:],
        "the spectrum at the edges": functional.normalize(ends - ends.mean(1, keepdim=True), dim=1),
        "the mean spectrum": decibels.mean(3).flatten(1) / 10,
    }
