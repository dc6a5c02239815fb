"""The invariances of sound and of series, one row a kind, and the laws that all of them keep.

Laws are plain functions that raise AssertionError, so that tests and mutants can call them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pipeline.keys import Keys
from pipeline.views import audio, series
from pipeline.views.distribution import Choice, Constant, LogUniform, Normal, Uniform

RATE = 8000
COUNT, CHANNELS, SAMPLES = 24, 2, 700  # of the clips that laws are tried on: 88 ms, so that all is fast
AUDIO: dict[str, Any] = {
    "time_shift": audio.TimeShift(ms=20),
    "time_reversal": audio.TimeReversal(),
    "time_mask": audio.TimeMask(ms=(5, 40)),
    "gain": audio.Gain(db=12),
    "polarity": audio.Polarity(),
    "noise_at_snr": audio.NoiseAtSnr(snr=(0, 20), exponent=(0, 2)),
    "background": audio.Background(snr=(0, 20)),
    "tempo": audio.Tempo(speed=(0.6, 1.6)),
    "pitch": audio.Pitch(semitones=5),
    "band_filter": audio.BandFilter(low=(50, 400), high=(800, 3000)),
    "frequency_mask": audio.FrequencyMask(share=(0.05, 0.3), count=2),
    "reverberation": audio.Reverberation(seconds=(0.01, 0.08)),
}
SERIES: dict[str, Any] = {
    "window_slice": series.WindowSlice(share=(0.4, 0.9)),
    "step_shift": series.StepShift(share=0.3),
    "stretch": series.Stretch(speed=(0.5, 2.0)),
    "segment_shuffle": series.SegmentShuffle(parts=5),
    "jitter": series.Jitter(share=(0.05, 0.5)),
    "channel_scale": series.ChannelScale(factor=(0.5, 2.0)),
    "sensor_drop": series.SensorDrop(),
    "channel_shuffle": series.ChannelShuffle(),
}
LAWS = AUDIO | SERIES
BELL = Normal(mean=2, std=3, low=-6, high=7)
VARIANTS: dict[str, Any] = {  # other fields, and parameters by distribution
    "time_shift, wrapped, normal": audio.TimeShift(ms=BELL, edge="wrap"),
    "time_mask, several, hard, choice": audio.TimeMask(ms=Choice(values=(2, 9), weights=(1, 2)), count=3, fade_ms=0),
    "gain, uniform": audio.Gain(db=Uniform(low=-10, high=-1)),
    "noise_at_snr, white, constant": audio.NoiseAtSnr(snr=Constant(value=6)),
    "background, hum": audio.Background(sounds=("hum",), snr=Constant(value=3)),
    "background, babble": audio.Background(sounds=("babble",)),
    "tempo, log-uniform": audio.Tempo(speed=LogUniform(low=0.7, high=0.9)),
    "pitch, normal": audio.Pitch(semitones=BELL),
    "band_filter, no top": audio.BandFilter(low=(100, 200), high=(4000, 9000)),
    "frequency_mask, uniform": audio.FrequencyMask(share=Uniform(low=0.2, high=0.5)),
    "reverberation, long": audio.Reverberation(seconds=Constant(value=0.5), direct=Uniform(low=-5, high=5)),
    "window_slice, padded": series.WindowSlice(share=Uniform(low=0.2, high=0.6), fit="pad"),
    "step_shift, held": series.StepShift(share=Choice(values=(-0.1, 0.2), weights=(1, 1)), edge="hold"),
    "step_shift, wrapped": series.StepShift(share=0.9, edge="wrap"),
    "stretch, constant": series.Stretch(speed=Constant(value=1.5)),
    "channel_scale, one for all": series.ChannelScale(each=False),
    "channel_scale, log-uniform": series.ChannelScale(factor=LogUniform(low=0.1, high=0.5)),
    "sensor_drop, choice": series.SensorDrop(count=Choice(values=(1, 2), weights=(1, 1)), probability=1.0),
}
ALL = LAWS | VARIANTS
TOLERANCE = 2e-5  # of float32 clips in about [-1, 1]: batches of other sizes may sum in another order


def keys(count: int = COUNT, view: int = 0, epoch: int = 0) -> Keys:
    return Keys.of(0, epoch, np.arange(count), view)


def clips(
    count: int = COUNT, channels: int = CHANNELS, samples: int = SAMPLES, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Tones that swell and noise, a silent clip and a constant one among them: (count,channels,samples)."""
    made = Keys.of(4, 0, np.arange(count))
    time = torch.arange(samples) / RATE
    hertz = made.uniform("hertz", 100, 900, (channels, 1))
    tones = (2 * torch.pi * (hertz * time + made.uniform("turn", shape=(channels, 1)))).sin()
    tones = tones * (0.2 + 0.6 * (samples and torch.linspace(0, 3, samples).sin() ** 2))
    noisy = tones + 0.05 * made.normal("noise", shape=(channels, samples))
    noisy[5::11] = 0.0
    noisy[7::11] = 0.3
    return noisy.to(dtype)


def view(invariance: Any, batch: Tensor, drawn: Keys, rate: int = RATE) -> Tensor:
    made = invariance.apply(batch, invariance.draw(drawn), rate)
    assert isinstance(made, Tensor)
    return made


def close(first: Tensor, second: Tensor, tolerance: float = TOLERANCE) -> bool:
    return torch.allclose(first, second, rtol=tolerance, atol=tolerance)


def a_view_is_a_function_of_its_own_row(invariance: Any) -> None:
    whole = view(invariance, clips(), keys())
    for rows in (np.arange(COUNT)[::-1], np.array([3, 3, 0]), np.array([7]), np.array([5, 8]), np.arange(1, COUNT, 2)):
        assert close(view(invariance, clips()[rows.copy()], keys().take(rows)), whole[rows.copy()])


def the_same_call_gives_the_same_bits_and_leaves_its_input_alone(invariance: Any) -> None:
    batch = clips()
    first = view(invariance, batch, keys())
    assert torch.equal(batch, clips())
    assert torch.equal(first, view(invariance, batch, keys()))


def strength_0_is_the_identity_and_1_is_itself(invariance: Any) -> None:
    batch = clips()
    assert torch.equal(view(invariance.at(0.0), batch, keys()), batch)
    assert invariance.at(1.0) == invariance


def shape_type_and_finiteness_are_kept(invariance: Any) -> None:
    for channels, samples in ((3, SAMPLES), (3, 1), (3, 2), (3, 3), (4, 5), (3, 31), (3, 997)):
        for batch in (clips(9, channels, samples), torch.zeros(4, channels, samples), torch.ones(4, channels, samples)):
            made = view(invariance, batch, keys(len(batch)))
            assert made.shape == batch.shape
            assert made.dtype == batch.dtype
            assert bool(made.isfinite().all()), (channels, samples)
    assert view(invariance, clips(0), keys(0)).shape == (0, CHANNELS, SAMPLES)
    assert view(invariance, clips()[:, :, :0], keys()).shape == (COUNT, CHANNELS, 0)


def a_row_on_which_nothing_acts_keeps_its_bits(invariance: Any) -> None:
    batch = clips()
    never = invariance.model_copy(update={"probability": 0.0})
    assert torch.equal(view(never, batch, keys()), batch)
    often = invariance.model_copy(update={"probability": 0.5})
    acts = keys().uniform("applied") < 0.5
    made = view(often, batch, keys())
    assert torch.equal(made[~acts], batch[~acts])
    assert not torch.equal(made[acts], batch[acts])


def parameters_of_two_views_are_independent(invariance: Any) -> None:
    count = 4000
    first, second = (invariance.draw(keys(count, number)) for number in (0, 1))
    for name, values in first.items():
        assert len(values) == count
        assert values.device.type == "cpu"
        assert values.dtype in (torch.float32, torch.int64, torch.bool)
        assert name != "word" or len(values.unique()) == count
        pairs = zip(values.double().reshape(count, -1).T, second[name].double().reshape(count, -1).T, strict=True)
        for one, other in pairs:
            if one.std() > 0:
                assert abs(float(torch.corrcoef(torch.stack([one, other]))[0, 1])) < 5 / count**0.5, name


def parameters_are_functions_of_their_key(invariance: Any) -> None:
    whole = invariance.draw(keys())
    some = invariance.draw(keys().take(np.array([20, 3, 3])))
    for name, values in whole.items():
        assert torch.equal(some[name], values[[20, 3, 3]]), name
    later = invariance.draw(keys(epoch=1))
    changing = [name for name, values in whole.items() if values.float().std() > 0]
    assert changing or '"constant"' in invariance.model_dump_json()
    assert all(not torch.equal(later[name], whole[name]) for name in changing)


EVERY: Sequence[Any] = (
    a_view_is_a_function_of_its_own_row,
    the_same_call_gives_the_same_bits_and_leaves_its_input_alone,
    strength_0_is_the_identity_and_1_is_itself,
    shape_type_and_finiteness_are_kept,
    a_row_on_which_nothing_acts_keeps_its_bits,
    parameters_of_two_views_are_independent,
    parameters_are_functions_of_their_key,
)
