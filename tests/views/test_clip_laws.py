"""The laws of every invariance of sound and of series: one row a kind in clip_laws, and all of them hold for it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, get_args

import pytest
import torch
from pydantic import Field, TypeAdapter

from pipeline.spec import SpecError, parse
from pipeline.views.audio import AudioInvariance, BandFilter, Pitch, Tempo, TimeMask, TimeShift
from pipeline.views.series import ChannelShuffle, SegmentShuffle, SensorDrop, SeriesInvariance, StepShift

sys.path.insert(0, str(Path(__file__).parent))

from clip_laws import ALL, AUDIO, COUNT, EVERY, LAWS, RATE, SERIES, clips, close, keys, view

EACH = pytest.mark.parametrize("invariance", ALL.values(), ids=ALL)
MOVES = ("time_shift", "step_shift", "tempo", "stretch")  # a wave that is out of step by far is no further away
MEMBERS = (*get_args(AudioInvariance), *get_args(SeriesInvariance))
READER: TypeAdapter[Any] = TypeAdapter(
    Annotated[AudioInvariance | SeriesInvariance, Field(discriminator="kind")]  # type: ignore[valid-type]
)


def test_every_kind_has_its_row() -> None:
    kinds = {member.model_fields["kind"].default for member in MEMBERS}
    assert kinds == set(LAWS)
    assert len(LAWS) == len(AUDIO) + len(SERIES)
    assert all(invariance.kind == kind for kind, invariance in LAWS.items())


@EACH
@pytest.mark.parametrize("law", EVERY, ids=lambda law: law.__name__)
def test_a_law_holds(law: Any, invariance: Any) -> None:
    law(invariance)


@EACH
def test_an_invariance_is_read_back_from_its_own_json(invariance: Any) -> None:
    assert READER.validate_json(invariance.model_dump_json()) == invariance
    assert READER.validate_json(invariance.at(0.5).model_dump_json()).kind == invariance.kind
    assert READER.validate_json(invariance.at(0.0).model_dump_json()) == invariance.at(0.0)
    assert all(field.description for name, field in type(invariance).model_fields.items() if name != "kind")


@EACH
def test_more_strength_moves_clips_further(invariance: Any) -> None:
    batch = clips(200)
    moved = [float((view(invariance.at(share), batch, keys(200)) - batch).abs().mean()) for share in (0.02, 0.2, 1.0)]
    assert 0 <= moved[0] <= moved[1]
    assert moved[0 if invariance.kind in MOVES else 1] < moved[2]


@EACH
@pytest.mark.parametrize("probability", [0.2, 1.0])
def test_an_invariance_acts_as_often_as_it_says(invariance: Any, probability: float) -> None:
    count = 600
    batch = clips(3, 3)[1:2].expand(count, -1, -1)
    acted = view(invariance.model_copy(update={"probability": probability}), batch, keys(count)) != batch
    share = float(acted.flatten(1).any(1).float().mean())
    still = {"channel_shuffle": 5 / 6, "segment_shuffle": 119 / 120}  # an order that is the one that was
    expected = probability * still.get(invariance.kind, 1.0)
    assert abs(share - expected) < max(0.02, 5 * (expected * (1 - expected) / count) ** 0.5)


@EACH
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 2e-3), (torch.float16, 2e-3), (torch.bfloat16, 2e-2)], ids=str
)
def test_other_types_come_back_as_they_came(invariance: Any, dtype: torch.dtype, tolerance: float) -> None:
    batch = clips(dtype=dtype)
    made = view(invariance, batch, keys())
    assert made.dtype == dtype
    assert close(made.float(), view(invariance, batch.float(), keys()), tolerance)


@EACH
def test_the_layout_in_memory_does_not_matter(invariance: Any) -> None:
    batch = clips(COUNT, 2)
    spread = batch.permute(2, 0, 1).contiguous().permute(1, 2, 0)
    assert not spread.is_contiguous()
    assert close(view(invariance, spread, keys()), view(invariance, batch, keys()))
    assert close(view(invariance, batch[::2], keys(12)), view(invariance, batch[::2].clone(), keys(12)))


@EACH
def test_what_an_invariance_says_of_itself(invariance: Any) -> None:
    assert invariance.removes
    assert isinstance(invariance.invertible, bool)
    assert not invariance.group or invariance.invertible
    assert invariance.channels_fault(3) is None
    assert invariance.size_fault(8000, RATE) is None


@pytest.mark.parametrize("kind", ["time_shift", "time_mask", "gain", "polarity", "time_reversal"])
def test_a_rate_and_its_samples_are_one_thing(kind: str) -> None:
    """Twice the samples at twice the rate: what is drawn is in physical units, so it lasts as long."""
    invariance = LAWS[kind]
    batch = clips().repeat_interleave(2, 2)
    twice = view(invariance, batch, keys(), 2 * RATE)
    once = view(invariance, clips(), keys())
    assert float((twice[:, :, ::2] - once).abs().mean()) < 0.05


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@EACH
def test_a_gpu_agrees_with_the_cpu(invariance: Any) -> None:
    made = view(invariance, clips().cuda(), keys())
    assert made.device.type == "cuda"
    assert close(made.cpu(), view(invariance, clips(), keys()), 1e-3)


@pytest.mark.parametrize(
    ("invariance", "samples", "rate", "fault"),
    [
        (TimeShift(ms=100), 800, 8000, "ms = 100 leaves nothing of a clip of 100 ms; use less"),
        (TimeShift(ms=0.05), 800, 8000, "ms = 0.05 is less than half a sample at 8000 Hz; use more"),
        (TimeMask(ms=(1, 200)), 800, 8000, "ms = 200 leaves nothing of a clip of 100 ms; use less"),
        (
            BandFilter(low=(100, 1200), high=(1500, 1600)),
            800,
            2000,
            "low = 1200 lets nothing through at 2000 Hz, where the band ends at 1000; use less",
        ),
        (StepShift(share=0.01), 10, 1, "share = 0.01 of 10 steps is not one step; use more"),
        (SegmentShuffle(parts=20), 10, 1, "parts = 20 of a series of 10 steps; use fewer"),
    ],
)
def test_clips_that_an_invariance_cannot_be_used_on_are_told(
    invariance: Any, samples: int, rate: int, fault: str
) -> None:
    assert invariance.size_fault(samples, rate) == fault


def test_channels_that_an_invariance_cannot_be_used_on_are_told() -> None:
    assert SensorDrop(count=3).channels_fault(3) == "count = 3 drops all of the data's 3 channels; drop fewer"
    assert ChannelShuffle().channels_fault(1) == "needs 2 channels or more, the data has 1; leave it out"


@pytest.mark.parametrize(
    ("content", "member", "fault"),
    [
        (
            {"kind": "tempo", "speed": [1.2, 0.8]},
            Tempo,
            "a.yaml: space.speed = [1.2, 0.8]: must be two speeds in rising order, from 0.25 to 4",
        ),
        ({"kind": "pitch", "semitones": 30}, Pitch, "a.yaml: space.semitones = 30: must be less than or equal to 24"),
        (
            {"kind": "band_filter", "low": [20, 3000]},
            BandFilter,
            "a.yaml: space.low = [20, 3000]: must stay below high, which goes down to 2000 Hz",
        ),
    ],
)
def test_a_field_that_cannot_be_is_told(content: dict[str, Any], member: Any, fault: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse(content, member, "a.yaml", "space")
    assert str(caught.value) == fault
