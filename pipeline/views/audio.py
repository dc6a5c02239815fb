"""The invariances of sound: one thing each that a space of clips may be told to ignore.

Each is a frozen spec with ``draw(keys)``, whose parameters are in physical units (ms, dB, semitones, Hz) and know no
rate, and ``apply(clips, parameters, rate)``, a pure function of clips (N,C,T), row by row, that keeps their shape, type
and device. ``size_fault(samples, rate)`` says why it cannot be used on clips of this length and rate.
"""

from __future__ import annotations

from pipeline.views.audio_background import Background
from pipeline.views.audio_filter import BandFilter, FrequencyMask
from pipeline.views.audio_level import Gain, Polarity
from pipeline.views.audio_noise import NoiseAtSnr
from pipeline.views.audio_room import Reverberation
from pipeline.views.audio_tempo import Pitch, Tempo
from pipeline.views.audio_time import TimeMask, TimeReversal, TimeShift

AudioInvariance = (
    TimeShift
    | TimeReversal
    | TimeMask
    | Gain
    | Polarity
    | NoiseAtSnr
    | Background
    | Tempo
    | Pitch
    | BandFilter
    | FrequencyMask
    | Reverberation
)
"""One thing that a space of sounds ignores."""

__all__ = [
    "AudioInvariance",
    "Background",
    "BandFilter",
    "FrequencyMask",
    "Gain",
    "NoiseAtSnr",
    "Pitch",
    "Polarity",
    "Reverberation",
    "Tempo",
    "TimeMask",
    "TimeReversal",
    "TimeShift",
]
