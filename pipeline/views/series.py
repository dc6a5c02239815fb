"""The invariances of series: arrays of channels over time, from sensors, EEG or trajectories, of any unit and rate.

As those of sound (audio.py), with parameters that are shares of the window or of a channel's own spread, so that the
``rate`` that each is handed does not matter to any.
"""

from __future__ import annotations

from pipeline.views.audio_level import Polarity
from pipeline.views.audio_time import TimeReversal
from pipeline.views.series_change import ChannelScale, ChannelShuffle, Jitter, SensorDrop
from pipeline.views.series_order import SegmentShuffle
from pipeline.views.series_time import StepShift, Stretch, WindowSlice

SeriesInvariance = (
    WindowSlice
    | StepShift
    | Stretch
    | SegmentShuffle
    | TimeReversal
    | Polarity
    | Jitter
    | ChannelScale
    | SensorDrop
    | ChannelShuffle
)
"""One thing that a space of series ignores."""

__all__ = [
    "ChannelScale",
    "ChannelShuffle",
    "Jitter",
    "Polarity",
    "SegmentShuffle",
    "SensorDrop",
    "SeriesInvariance",
    "StepShift",
    "Stretch",
    "TimeReversal",
    "WindowSlice",
]
