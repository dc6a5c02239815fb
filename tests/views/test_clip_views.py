"""Views of sounds and series as training draws them: whole lists, combinators, blocks, and what cannot be used."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.samples import Steps, Waveform
from pipeline.spec import Refusal
from pipeline.views import FACTORS, Choose, Compose, Maybe, Repeat, draw_parameters, draw_view, removed
from pipeline.views.audio import Gain, NoiseAtSnr, Pitch, TimeMask, TimeShift
from pipeline.views.factors import OF_WAVES
from pipeline.views.series import Jitter, StepShift

sys.path.insert(0, str(Path(__file__).parent))

from clip_laws import AUDIO, COUNT, LAWS, RATE, SAMPLES, SERIES, clips, close, keys

SIZE, STEPS = Waveform(SAMPLES, RATE), Steps(SAMPLES, RATE)
SOUNDS, SENSORS = tuple(AUDIO.values()), tuple(SERIES.values())
LISTS: dict[str, tuple[tuple[Any, ...], Any]] = {
    "all of sound": (SOUNDS, SIZE),
    "all of sound, half the time": (
        tuple(each.model_copy(update={"probability": 0.5}) for each in SOUNDS),
        SIZE,
    ),
    "all of series": (SENSORS, STEPS),
    "made of others": (
        (
            Compose(of=(TimeShift(ms=5), Gain(db=3), NoiseAtSnr())),
            Choose(of=(Pitch(semitones=2), TimeMask(ms=(5, 20)), NoiseAtSnr()), weights=(1, 2, 1)),
            Maybe(of=Gain(db=9), probability=0.5),
        ),
        SIZE,
    ),
    "again and again": (
        (Repeat(of=Jitter(share=(0.1, 0.2)), times=3), Repeat(of=StepShift(share=0.1), times=2)),
        STEPS,
    ),
}
EACH = pytest.mark.parametrize(("invariances", "size"), LISTS.values(), ids=LISTS)
MANY = 1e-4  # of a dozen operations, each of which has its rounding


@EACH
@settings(max_examples=8)
@given(data=st.data())
def test_a_view_depends_on_its_own_clip_and_key_alone(
    invariances: tuple[Any, ...], size: Any, data: st.DataObject
) -> None:
    whole = draw_view(clips(), invariances, keys(), size)
    rows = data.draw(st.lists(st.integers(0, COUNT - 1), min_size=1, max_size=COUNT))
    part = draw_view(clips()[rows], invariances, keys().take(np.array(rows)), size)
    assert close(part, whole[rows], MANY)


@EACH
def test_blocks_leave_no_trace(invariances: tuple[Any, ...], size: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = draw_view(clips(), invariances, keys(), size)
    monkeypatch.setattr("pipeline.views.waves.BLOCK", 5 * clips()[0].numel())
    batch = clips()
    assert close(draw_view(batch, invariances, keys(), size), whole, MANY)
    assert torch.equal(batch, clips())


@EACH
def test_a_list_at_strength_0_is_the_identity(invariances: tuple[Any, ...], size: Any) -> None:
    assert torch.equal(draw_view(clips(), [each.at(0.0) for each in invariances], keys(), size), clips())


def test_neighbours_of_a_kind_draw_apart() -> None:
    first, second = draw_parameters([Gain(db=3), Gain(db=3)], keys())
    assert not torch.equal(first["db"], second["db"])


@pytest.mark.parametrize(
    ("invariance", "size", "fault"),
    [
        (TimeShift(ms=100), SIZE, "invariance time_shift: ms = 100 leaves nothing of a clip of 87.5 ms; use less"),
        (Maybe(of=TimeShift(ms=100), probability=0.1), SIZE, "invariance maybe: time_shift ms = 100 leaves nothing"),
    ],
)
def test_what_cannot_be_used_is_refused_and_not_applied(invariance: Any, size: Any, fault: str) -> None:
    with pytest.raises(Refusal) as caught:
        draw_view(clips(), [invariance], keys(), size)
    assert str(caught.value).startswith(fault)


def test_every_factor_of_waves_is_removed_by_some_invariance() -> None:
    assert removed(LAWS.values()) <= FACTORS
    assert removed(LAWS.values()) >= frozenset(OF_WAVES)
