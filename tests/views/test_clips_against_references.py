"""Every invariance of sound and of series computes what scipy, numpy or librosa compute of the same parameters.

Both sides are in float64 where ours can be, so that the tolerance is of the method and not of float32; what float32
costs is in its own test. librosa's part is skipped where it is not installed.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import fft, ndimage, signal, stats
from torch import Tensor

from pipeline.keys import Keys
from pipeline.views import audio, audio_sinc, audio_tempo, series
from pipeline.views.audio_background import hum, shaped, swell
from pipeline.views.audio_filter import band, from_mel_share, mask_bands
from pipeline.views.audio_noise import coloured
from pipeline.views.audio_room import responses
from pipeline.views.audio_rows import fast_length, normal_spectrum
from pipeline.views.audio_sinc import read_at
from pipeline.views.audio_tempo import change_pitch, change_tempo
from pipeline.views.audio_time import in_samples, silence
from pipeline.views.audio_vocoder import frame_size, stretched, vocoded
from pipeline.views.distribution import Constant
from pipeline.views.series_order import reordered

RATE = 8000
EXACT = 1e-12
LIBROSA = pytest.mark.skipif(importlib.util.find_spec("librosa") is None, reason="librosa is not installed")


def keys(count: int) -> Keys:
    return Keys.of(11, 0, np.arange(count))


def clips(count: int = 6, channels: int = 2, samples: int = 1501) -> Tensor:
    """Voices of a kind: harmonics whose pitch and level move, and some noise: (count,channels,samples) float64."""
    random = np.random.default_rng(3)
    time = np.arange(samples) / RATE
    pitch = 90 + 120 * random.random((count, channels, 1)) * (1 + 0.2 * np.sin(2 * np.pi * 3 * time))
    phase = 2 * np.pi * np.cumsum(pitch, -1) / RATE
    voice = sum(np.sin(number * phase + number) / number for number in range(1, 9))
    made = 0.2 * voice * (0.3 + np.sin(np.pi * time / time[-1]) ** 2) + 0.01 * random.normal(size=phase.shape)
    return torch.from_numpy(made)


def off(ours: Any, theirs: Any) -> float:
    """The largest difference."""
    return float(np.abs(np.asarray(ours) - np.asarray(theirs)).max())


def decibels(signal_: NDArray[Any], other: NDArray[Any]) -> float:
    return float(10 * np.log10(np.mean(signal_**2) / np.mean(other**2)))


def test_a_time_shift_is_that_of_scipy() -> None:
    batch = clips()
    for edge, mode in (("silence", "constant"), ("wrap", "grid-wrap")):
        invariance = audio.TimeShift(ms=60, edge=edge)
        drawn = invariance.draw(keys(6))
        made = invariance.apply(batch, drawn, RATE)
        for row, ms in enumerate(drawn["ms"].double().tolist()):
            theirs = ndimage.shift(batch[row].numpy(), (0, np.rint(ms * RATE / 1000)), order=0, mode=mode)
            assert off(made[row], theirs) == 0


def test_gain_polarity_and_reversal_are_those_of_numpy() -> None:
    batch = clips()
    for invariance in (audio.Gain(db=20), audio.Polarity(), audio.TimeReversal()):
        drawn = invariance.draw(keys(6))
        ((name, values),) = drawn.items()
        assert len(set(values.tolist())) > 1
        made = invariance.apply(batch, drawn, RATE)
        for row in range(6):
            theirs = {
                "db": batch[row].numpy() * np.power(10.0, np.float64(values[row]) / 20),
                "inverted": np.where(values[row], -1, 1) * batch[row].numpy(),
                "reversed": np.flip(batch[row].numpy(), -1) if values[row] else batch[row].numpy(),
            }[name]
            assert off(made[row], theirs) < EXACT


def test_a_time_mask_is_a_slice_of_zeros_between_straight_lines() -> None:
    batch = torch.ones(8, 2, 400, dtype=torch.float64)
    for fade in (0, 7, 1000):
        start, length = torch.arange(0, 320, 40)[:, None], torch.arange(1, 81, 10)[:, None]
        made = silence(batch, start, length, fade)
        for row, (first, count) in enumerate(zip(start[:, 0].tolist(), length[:, 0].tolist(), strict=True)):
            edge = min(fade, count // 2)
            theirs = np.ones(400)
            ramp = np.linspace(0, 1, edge + 2)[1:-1]
            theirs[first : first + count] = np.concatenate([ramp[::-1], np.zeros(count - 2 * edge), ramp])
            assert off(made[row], np.stack([theirs, theirs])) < EXACT


def test_time_masks_lie_anywhere_in_the_clip_and_are_as_long_as_drawn() -> None:
    invariance = audio.TimeMask(ms=(5, 30), fade_ms=0)
    drawn = invariance.draw(keys(3000))
    made = invariance.apply(torch.ones(3000, 1, 800), drawn, RATE)[:, 0] == 0
    assert torch.equal(made.sum(1), in_samples(drawn["ms"], RATE)[:, 0])
    first, last = made.int().argmax(1), 799 - made.flip(1).int().argmax(1)
    assert int(first.min()) == 0
    assert int(last.max()) == 799
    room = 800 - made.sum(1)
    assert stats.kstest(((first + 0.5) / (room + 1)).numpy(), "uniform").pvalue > 1e-3


def test_a_band_filter_is_scipys_butterworth() -> None:
    batch = clips()
    low = torch.tensor([20.0, 60.0, 100.0, 300.0, 800.0, 20.0])
    high = torch.tensor([3900.0, 2000.0, 900.0, 3000.0, 1200.0, 9000.0])
    made = band(batch, low, high, RATE, 4 * RATE // 20)
    for row in range(6):
        theirs = signal.sosfilt(signal.butter(2, float(low[row]), "high", fs=RATE, output="sos"), batch[row].numpy())
        if high[row] < 0.49 * RATE:
            theirs = signal.sosfilt(signal.butter(2, float(high[row]), "low", fs=RATE, output="sos"), theirs)
        assert off(made[row], theirs) < 1e-6
    invariance = audio.BandFilter(low=(30, 300), high=(900, 3000))
    drawn = invariance.draw(keys(6))
    whole = invariance.apply(batch, drawn, RATE)
    for row in range(6):
        sections = [signal.butter(2, float(drawn["low"][row]), "high", fs=RATE, output="sos")]
        sections += [signal.butter(2, float(drawn["high"][row]), "low", fs=RATE, output="sos")]
        assert off(whole[row], signal.sosfilt(np.concatenate(sections), batch[row].numpy())) < 1e-6


def test_a_frequency_mask_leaves_nothing_in_its_bands_and_all_else_as_it_was() -> None:
    for samples in (1500, 1501):
        batch = clips(samples=samples)
        invariance = audio.FrequencyMask(share=(0.05, 0.3), count=2)
        drawn = invariance.draw(keys(6))
        low, high = (from_mel_share(drawn[name], RATE).numpy() for name in ("low", "high"))
        made = invariance.apply(batch, drawn, RATE)
        hertz = np.fft.rfftfreq(samples, 1 / RATE)
        for row in range(6):
            spectrum = np.fft.rfft(batch[row].numpy())
            for number in range(2):
                spectrum[:, (hertz >= low[row, number]) & (hertz < high[row, number])] = 0
            assert off(made[row], np.fft.irfft(spectrum, samples)) < EXACT
        assert off(mask_bands(made, torch.from_numpy(low), torch.from_numpy(high), RATE), made) < EXACT
        assert bool(((drawn["high"] - drawn["low"]) >= 0.05 - 1e-6).all())
        assert bool(((drawn["low"] >= 0) & (drawn["high"] <= 1 + 1e-6)).all())


@LIBROSA
def test_the_mel_scale_is_librosas() -> None:
    import librosa

    share = torch.linspace(0, 1, 50)
    theirs = librosa.mel_to_hz(share.double().numpy() * librosa.hz_to_mel(RATE / 2, htk=True), htk=True)
    assert off(from_mel_share(share, RATE), theirs) < 1e-8


def test_noise_lies_exactly_as_far_below_the_clip_as_drawn() -> None:
    batch = clips(20)
    for invariance in (audio.NoiseAtSnr(snr=(-5, 30), exponent=(0, 2)), audio.Background(snr=(-5, 30))):
        drawn = invariance.draw(keys(20))
        added = (invariance.apply(batch, drawn, RATE) - batch).numpy()
        for row in range(20):
            assert abs(decibels(batch[row].numpy(), added[row]) - float(drawn["snr"][row])) < 1e-4


def test_white_noise_is_normal_and_flat_and_other_noise_falls_as_its_exponent() -> None:
    like = torch.zeros(12, 1, 40000, dtype=torch.float64)
    word = torch.from_numpy(keys(12).bits("word").view(np.int64))
    white = coloured(like, word, torch.zeros(12)).numpy()
    assert stats.kstest(white.ravel()[::7], "norm").pvalue > 1e-3
    for exponent in (0.0, 1.0, 2.0):
        noise = coloured(like, word, torch.full((12,), exponent)).numpy()[:, 0]
        hertz, power = signal.welch(noise, RATE, nperseg=1024)
        part = (hertz > 60) & (hertz < 3500)
        slope = np.polyfit(np.log(hertz[part]), np.log(power.mean(0)[part]), 1)[0]
        assert abs(slope + exponent) < 0.06


@pytest.mark.parametrize("samples", [1, 2, 5, 6])
def test_noise_that_is_made_as_its_spectrum_is_white(samples: int) -> None:
    count = 20000
    spectrum = normal_spectrum(torch.arange(count) << 20, (2, samples), torch.zeros(1, dtype=torch.float64))
    made = np.fft.irfft(spectrum.numpy(), samples).reshape(count, -1)
    assert np.abs(np.cov(made, rowvar=False) - np.eye(2 * samples)).max() < 5 * (2 / count) ** 0.5
    assert stats.kstest(made.ravel(), "norm").pvalue > 1e-3


def test_the_channels_noise_is_independent() -> None:
    noise = coloured(torch.zeros(1, 2, 40000), torch.tensor([5]), torch.zeros(1))[0]
    assert abs(float(torch.corrcoef(noise)[0, 1])) < 5 / 200


def test_hum_is_tones_at_multiples_of_the_mains() -> None:
    hertz, loud = torch.tensor([50.0, 60.0]), torch.rand(2, 8) + 0.2
    made = hum(torch.zeros(2, 1, RATE, dtype=torch.float64), hertz, loud, torch.rand(2, 8), RATE).numpy()
    place, power = signal.periodogram(made, RATE, scaling="spectrum", detrend=False)
    for row in range(2):
        tones = np.rint(hertz[row].item() * np.arange(1, 9)).astype(int)
        assert place[tones].tolist() == tones.tolist()
        assert off(power[row, tones], loud[row].double().numpy() ** 2 / 2) < 1e-6
        assert abs(power[row].sum() - (loud[row].double().numpy() ** 2 / 2).sum()) < 1e-6
    made = hum(torch.zeros(2, 1, 600), hertz, loud, torch.rand(2, 8), 110)  # all but the first would be above 55 Hz
    assert float(made[0].abs().max()) <= float(loud[0, 0]) + 1e-6


def test_babble_has_the_spectrum_and_the_pace_that_it_says() -> None:
    like = torch.zeros(12, 1, 80000, dtype=torch.float64)
    word = torch.from_numpy(keys(12).bits("word").view(np.int64))
    hertz, power = signal.welch(shaped(like, word, 500.0, 1.5, RATE).numpy(), RATE, nperseg=2048)
    level = 10 * np.log10(power.mean(0))
    at = lambda frequency: level[np.abs(hertz - frequency) < 60].mean()  # noqa: E731
    assert abs(at(100) - at(200)) < 1.5
    assert abs(at(1500) - at(3000) - 9) < 1.2
    pace = torch.tensor([[2.0, 3.0, 4.0, 5.5]])
    swells = swell(like[:1], pace, torch.rand(1, 4), RATE).numpy()[0]
    place, strength = signal.periodogram(swells, RATE, detrend="constant")
    assert sorted(place[np.argsort(strength)[-4:]]) == pace[0].tolist()
    assert 0 <= swells.min() <= swells.max() <= 1


def test_a_length_that_is_fast_is_long_enough_and_not_much_longer() -> None:
    for least in (1, 128, 129, 17280, 22399, 100_003):
        length = fast_length(least)
        assert least <= length < 1.13 * least + 128
        assert length % 128 == 0
        assert fft.next_fast_len(length, real=True) == length


def test_a_room_is_a_convolution_with_its_response() -> None:
    batch = clips()
    invariance = audio.Reverberation(seconds=(0.05, 0.4))
    drawn = invariance.draw(keys(6))
    response = responses(batch, 1501, *(drawn[name] for name in ("seconds", "direct", "word")), RATE).numpy()
    made = invariance.apply(batch, drawn, RATE)
    for row in range(6):
        theirs = signal.fftconvolve(batch[row].numpy(), response[row, None], axes=-1)[:, :1501]
        assert off(made[row], theirs) < EXACT


def test_a_response_decays_as_its_time_says_and_lies_below_the_direct_sound_as_drawn() -> None:
    count = 300
    like, word = (
        torch.zeros(1, dtype=torch.float64),
        torch.from_numpy(keys(count).bits("w").view(np.int64)),
    )
    for seconds, direct in ((0.2, 0.0), (0.6, 10.0)):
        made = responses(like, RATE, torch.full((count,), seconds), torch.full((count,), direct), word, RATE).numpy()
        assert off(made[:, 0], np.ones(count)) == 0
        energy = (made[:, 1:] ** 2).mean(0)  # over rooms
        assert abs(10 * np.log10(energy.sum()) + direct) < 0.1
        left = 10 * np.log10(np.cumsum(energy[::-1])[::-1] / energy.sum())  # Schroeder 1965
        early, late = (int(np.argmax(left < level)) for level in (-5.0, -35.0))
        assert abs(2 * (late - early) / RATE - seconds) < 0.02 * seconds


@LIBROSA
@pytest.mark.filterwarnings("ignore:n_fft=256 is too large")  # of clips shorter than a frame, which both take
@pytest.mark.parametrize("samples", [4000, 4097, 700, 129, 5, 1])
def test_the_phase_vocoder_is_librosas(samples: int) -> None:
    import librosa

    batch = clips(5, 1, 4097)[:, 0, :samples]
    speed = torch.tensor([0.5, 0.8, 0.9371, 1.25, 2.0])
    made, lengths = stretched(batch, speed, 256)
    for row, factor in enumerate(speed.double().tolist()):
        theirs = librosa.effects.time_stretch(batch[row].numpy(), rate=factor, n_fft=256, hop_length=64)
        assert int(lengths[row]) == len(theirs)
        assert len(theirs) == 0 or off(made[row, : len(theirs)], theirs) < 1e-9


@LIBROSA
def test_frames_are_read_between_as_librosa_reads_them() -> None:
    import librosa

    random = np.random.default_rng(0)
    frames = random.normal(size=(3, 33, 20)) + 1j * random.normal(size=(3, 33, 20))
    frames[:, :, 5:8] = 0  # silence within
    for rate in (0.7, 1.0, 1.9):
        theirs = librosa.phase_vocoder(frames, rate=rate, hop_length=16, n_fft=64)
        steps = torch.arange(0, 20, rate, dtype=torch.float64).expand(3, -1)
        ours = vocoded(torch.from_numpy(frames).transpose(1, 2), steps).transpose(1, 2)
        assert off(ours, theirs) < 1e-9


@LIBROSA
def test_a_pitch_shift_is_librosas_but_for_its_resampler() -> None:
    import librosa

    batch = clips(6, 1, 6000)
    semitones = torch.tensor([-7.0, -2.5, -0.3, 0.4, 3.0, 6.0])
    made = change_pitch(batch, semitones, 512)[:, 0].numpy()
    for row, steps in enumerate(semitones.double().tolist()):
        theirs = librosa.effects.pitch_shift(
            batch[row, 0].numpy(), sr=RATE, n_steps=steps, n_fft=512, hop_length=128, res_type="soxr_vhq"
        )
        inner = slice(64, -800)
        assert decibels(theirs[inner], (made[row] - theirs)[inner]) > 35


def peak(wave: NDArray[Any]) -> float:
    """The frequency of a tone, in Hz, between the bins of its spectrum (a parabola through three, in dB)."""
    spectrum = np.log(np.abs(np.fft.rfft(wave * signal.windows.hann(len(wave)))) + 1e-30)
    place = int(spectrum.argmax())
    left, middle, right = spectrum[place - 1 : place + 2]
    return float((place + 0.5 * (left - right) / (left - 2 * middle + right)) * RATE / len(wave))


def test_tempo_keeps_the_pitch_and_pitch_the_tempo() -> None:
    time = np.arange(RATE) / RATE
    tone = torch.from_numpy(np.sin(2 * np.pi * 440 * time)).expand(4, 1, -1)
    factors = torch.tensor([0.7, 0.9, 1.2, 1.4])
    for wave in change_tempo(tone, factors, 512).numpy()[:, 0]:
        assert abs(peak(wave[2000:6000]) - 440) < 1
    semitones = torch.tensor([-5.0, -1.0, 2.0, 7.0])
    for wave, up in zip(change_pitch(tone, semitones, 512).numpy()[:, 0], semitones.tolist(), strict=True):
        assert abs(peak(wave[1000:5000]) - 440 * 2 ** (up / 12)) < 1.5
    beat = tone * torch.from_numpy(1 - 0.9 * np.cos(2 * np.pi * 6 * time))  # swells, 1333 samples apart
    for made, spacing in (
        (change_tempo(beat, factors, 512), RATE / 6 / factors),
        (change_pitch(beat, semitones, 512), RATE / 6),
    ):
        for wave, apart in zip(made.numpy()[:, 0], np.broadcast_to(np.asarray(spacing), 4), strict=True):
            level = ndimage.gaussian_filter1d(np.abs(wave), 120)
            found = signal.find_peaks(level, height=0.4 * level.max(), distance=500)[0]
            assert len(found) >= 4
            assert abs(np.median(np.diff(found)) - apart) < 0.06 * apart


def test_tempo_is_about_the_middle() -> None:
    click = torch.zeros(2, 1, 4001)
    click[:, :, 1900:2101] = torch.hann_window(201) * (torch.arange(201) * 0.5).sin()
    for wave in change_tempo(click, torch.tensor([0.8, 1.3]), 256)[:, 0].abs().numpy():
        assert abs((wave * np.arange(4001)).sum() / wave.sum() - 2000) < 64  # a hop


def test_a_signal_is_read_between_its_samples_as_the_tone_that_it_is() -> None:
    places = torch.linspace(100, 800, 3001, dtype=torch.float64)[None]
    for share, tolerance in ((0.1, 1e-3), (0.5, 1e-3), (0.8, 1e-3)):  # of half the rate
        tone = (np.pi * share * torch.arange(1000, dtype=torch.float64) + 0.3).sin()[None]
        assert off(read_at(tone, places), (np.pi * share * places + 0.3).sin()) < tolerance
    whole = torch.rand(3, 50, dtype=torch.float64)
    assert off(read_at(whole, torch.arange(50, dtype=torch.float64).expand(3, -1)), whole) < EXACT
    assert off(read_at(whole, torch.full((3, 1), 200.0, dtype=torch.float64)), torch.zeros(3, 1)) == 0


def test_pieces_that_fit_the_cache_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = clips(7, 2, 900)
    values = torch.tensor([1.3, -0.7, 0.9, 2.0, -2.0, 0.3, 1.1])
    whole = [change_tempo(batch, values.exp2(), 256), change_pitch(batch, values, 256)]
    monkeypatch.setattr(audio_tempo, "PIECE", 2 * 1800)
    monkeypatch.setattr(audio_sinc, "PIECE", 1000)
    for once, again in zip(
        whole, [change_tempo(batch, values.exp2(), 256), change_pitch(batch, values, 256)], strict=True
    ):
        assert off(once, again) < EXACT


def test_frames_are_the_power_of_two_nearest_to_64_ms() -> None:
    assert [frame_size(rate) for rate in (8000, 16000, 22050, 44100, 48000, 10)] == [512, 1024, 1024, 2048, 4096, 4]


def test_float32_costs_less_than_a_ten_thousandth() -> None:
    batch = clips(6, 2, 6000)
    speed, up = torch.tensor([0.7, 0.9, 1.0, 1.1, 1.3, 1.6]), torch.tensor([-6.0, -3, -1, 1, 3, 6])
    for change, values in ((change_tempo, speed), (change_pitch, up)):
        assert decibels(change(batch, values, 512).numpy(), off_by(change, batch, values)) > 80


def off_by(change: Any, batch: Tensor, values: Tensor) -> NDArray[Any]:
    """What float32 changes."""
    return np.asarray(change(batch.float(), values, 512).double() - change(batch, values, 512))


# series


def test_a_slice_and_a_stretch_are_numpys_interpolation() -> None:
    batch = clips(6, 3, 97)
    time = np.arange(97.0)
    piece, play = series.WindowSlice(share=(0.2, 0.9)), series.Stretch(speed=(0.4, 2.5))
    drawn, played = piece.draw(keys(6)), play.draw(keys(6))
    made, fast = piece.apply(batch, drawn, 1), play.apply(batch, played, 1)
    for row in range(6):
        share, place, speed = (float(values[row]) for values in (drawn["share"], drawn["place"], played["speed"]))
        start = place * (96 - 96 * share)
        for channel in range(3):
            values = batch[row, channel].numpy()
            theirs = np.interp(np.linspace(start, start + 96 * share, 97), time, values)
            assert off(made[row, channel], theirs) < 1e-9
            assert off(fast[row, channel], np.interp(48 + speed * (time - 48), time, values)) < 1e-9


def test_a_padded_slice_keeps_its_steps_and_nothing_else() -> None:
    batch = clips(200, 1, 50) + 5
    invariance = series.WindowSlice(share=(0.2, 0.6), fit="pad")
    drawn = invariance.draw(keys(200))
    made = invariance.apply(batch, drawn, 1)[:, 0].numpy()
    for row, share in enumerate(drawn["share"].double().tolist()):
        (kept,) = made[row].nonzero()
        assert len(kept) == np.rint(50 * share)
        assert kept[-1] - kept[0] + 1 == len(kept)
        assert off(made[row, kept], batch[row, 0, kept]) == 0


def test_a_step_shift_is_that_of_scipy() -> None:
    batch = clips(6, 2, 60)
    for edge, mode in (("zero", "constant"), ("hold", "nearest"), ("wrap", "grid-wrap")):
        invariance = series.StepShift(share=0.6, edge=edge)
        drawn = invariance.draw(keys(6))
        made = invariance.apply(batch, drawn, 1)
        for row, share in enumerate(drawn["share"].double().tolist()):
            assert off(made[row], ndimage.shift(batch[row].numpy(), (0, np.rint(60 * share)), order=0, mode=mode)) == 0


@pytest.mark.parametrize("steps", [12, 13, 17, 4])
def test_parts_are_numpys_array_split_in_another_order(steps: int) -> None:
    batch = clips(30, 2, 20)[:, :, :steps]
    invariance = series.SegmentShuffle(parts=4, probability=0.8)
    drawn = invariance.draw(keys(30))
    made = invariance.apply(batch, drawn, 1)
    for row, order in enumerate(drawn["order"].tolist()):
        parts = np.array_split(batch[row].numpy(), 4, axis=-1)
        assert off(made[row], np.concatenate([parts[part] for part in order], axis=-1)) == 0
    assert off(reordered(batch, torch.arange(4).expand(30, -1)), batch) == 0


def test_jitter_is_normal_and_in_proportion_to_each_channels_spread() -> None:
    batch = torch.tensor([1.0, 50.0])[None, :, None] * clips(400, 1, 300) + torch.tensor([0.0, 9.0])[None, :, None]
    invariance = series.Jitter(share=Constant(value=0.3))
    added = invariance.apply(batch, invariance.draw(keys(400)), 1) - batch
    unit = (added / batch.std(-1, correction=0, keepdim=True) / 0.3).numpy()
    assert stats.kstest(unit[::3, 0].ravel()[::5], "norm").pvalue > 1e-3
    assert abs(unit[:, 1].std() - 1) < 0.01
    assert abs(np.corrcoef(unit[:, 0].ravel(), unit[:, 1].ravel())[0, 1]) < 5 / (400 * 300) ** 0.5


def test_channels_are_scaled_dropped_and_moved_as_wholes() -> None:
    count = 3000
    batch = (torch.arange(1.0, 5.0)[:, None] + torch.zeros(4, 3)).expand(count, -1, -1)
    factor = series.ChannelScale(factor=(0.5, 2.0)).apply(batch, series.ChannelScale().draw(keys(count)), 1) / batch
    assert off(factor, factor[:, :, :1].expand_as(factor)) < 1e-6
    logs = np.log(factor[:, :, 0].numpy())
    assert stats.kstest(logs.ravel() / np.log(2) / 2 + 0.5, "uniform").pvalue > 1e-3
    assert np.abs(np.corrcoef(logs.T) - np.eye(4)).max() < 5 / count**0.5
    one = series.ChannelScale(factor=(0.5, 2.0), each=False)
    assert off(one.apply(batch, drawn := one.draw(keys(count)), 1), batch * drawn["factor"][:, None, None]) < 1e-6
    drop = series.SensorDrop(count=2, probability=1.0)
    gone = drop.apply(batch, drop.draw(keys(count)), 1)[:, :, 0] == 0
    assert bool((gone.sum(1) == 2).all())
    assert stats.chisquare(gone.sum(0)).pvalue > 1e-3
    move = series.ChannelShuffle(probability=1.0)
    orders = move.apply(batch, move.draw(keys(count)), 1)[:, :, 0].numpy().astype(int)
    assert (np.sort(orders) == np.arange(1, 5)).all()
    counts = np.unique(orders, axis=0, return_counts=True)[1]
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > 1e-3


def test_draws_have_the_units_that_they_say() -> None:
    many = keys(4000)
    for drawn, low, high in (
        (audio.TimeShift(ms=30).draw(many)["ms"], -30, 30),
        (audio.Gain(db=6).draw(many)["db"], -6, 6),
        (audio.Pitch(semitones=4).draw(many)["semitones"], -4, 4),
        (audio.Tempo(speed=(0.5, 2)).draw(many)["speed"].log2(), -1, 1),
        (audio.NoiseAtSnr(snr=(3, 30)).draw(many)["snr"], 3, 30),
        (audio.BandFilter(low=(20, 200), high=(1000, 2000)).draw(many)["low"].log10(), np.log10(20), np.log10(200)),
        (audio.Reverberation(seconds=(0.1, 1)).draw(many)["seconds"].log10(), -1, 0),
    ):
        assert stats.kstest(drawn.numpy(), stats.uniform(low, high - low).cdf).pvalue > 1e-3
