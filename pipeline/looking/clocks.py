"""Columns that count time, and that tell episodes apart, by their names; how many steps a second a clock says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

CLOCKS = (
    *("t", "time", "times", "timestamp", "timestamps", "time_step", "timestep", "step", "steps", "step_index"),
    *("frame", "frame_index", "cycle", "tick", "seconds", "date", "datetime", "index", "row"),
)
"""names of columns, in small letters, that count time and are no channels"""
EPISODES = (
    *("episode", "episode_id", "episode_index", "trajectory", "trajectory_id", "trial", "trial_id", "run", "run_id"),
    *("sequence", "sequence_id", "series", "series_id", "recording", "recording_id", "session", "session_id"),
    *("segment", "segment_id", "window_id", "sample_id", "unit", "unit_id"),
    *("id", "subject", "subject_id", "patient_id"),
)
"""names of columns, in small letters, that tell episodes apart, the likeliest first"""
SECONDS = ("t", "time", "times", "timestamp", "timestamps", "seconds")
"""of them, those that may be in seconds"""


def rate_of(clocks: Sequence[tuple[str, float]]) -> tuple[int, list[str]]:
    """Steps a second, by columns of seconds and their steps, and what is told of it; 1 where none says it."""
    if not clocks:
        return 1, []
    step = float(np.median([step for _, step in clocks]))
    rate = round(1 / step) if 0 < step < 1 else 1
    if rate < 2 or abs(1 / step - rate) > 0.005 * rate or rate > 10**9:
        return 1, []
    told = f"as {clocks[0][0]} rises by {step:.4g} a step and was taken for seconds"
    return rate, [f"rate: {rate} steps a second, {told}"]


def clock_of(columns: Mapping[str, Sequence[Any]]) -> tuple[str, float] | None:
    """The first of these columns that counts seconds, and the usual step of it."""
    for name, cells in columns.items():
        if name.lower() in SECONDS:
            values = np.array([float(cell) if is_number(cell) else np.nan for cell in cells], np.float64)
            if len(values) > 1 and np.isfinite(values).all():
                return name, float(np.median(np.diff(values)))
    return None


def is_number(value: Any) -> bool:
    """Whether a cell holds a number."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, bytes)
