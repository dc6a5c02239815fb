"""Log-mel spectrograms against librosa's published arithmetic, written out slowly, and against librosa itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.signal import get_window

from pipeline.audio.mel import LogMelLayer, empty_filters, mel_filters, to_hertz, to_mel

SETTINGS = [
    (8000, 25.0, 10.0, 40, 0.0, 4000.0),
    (16000, 32.0, 12.0, 64, 50.0, 7600.0),
    (22050, 46.0, 23.0, 80, 0.0, 11025.0),
]


def clips(rate: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    time = np.arange(rate) / rate
    swept = np.sin(2 * np.pi * (100 + 0.4 * rate * time) * time)
    return (0.3 * swept + 0.01 * random.normal(size=rate)).astype(np.float32)


def slowly(x: np.ndarray, rate: int, window: float, hop: float, bins: int, low: float, high: float) -> np.ndarray:
    """Mel power (bins, frames): frame by frame, filter by filter."""
    samples, step = round(rate * window / 1000), round(rate * hop / 1000)
    points = 2 ** math.ceil(math.log2(samples))
    hann = np.zeros(points)
    hann[(points - samples) // 2 :][:samples] = get_window("hann", samples)
    padded = np.pad(x.astype(np.float64), points // 2)
    frames = [padded[start : start + points] for start in range(0, len(padded) - points + 1, step)]
    power = np.array([np.abs(np.fft.rfft(frame * hann)) ** 2 for frame in frames])  # (F, K)

    def mel(f: float) -> float:
        return f * 3 / 200 if f < 1000 else 15 + 27 * math.log(f / 1000) / math.log(6.4)

    def hertz(m: float) -> float:
        return m * 200 / 3 if m < 15 else 1000 * math.exp((m - 15) * math.log(6.4) / 27)

    edges = [hertz(mel(low) + (mel(high) - mel(low)) * i / (bins + 1)) for i in range(bins + 2)]
    out = np.zeros((bins, len(frames)))
    for b in range(bins):
        left, middle, right = edges[b : b + 3]
        for k in range(points // 2 + 1):
            f = k * rate / points
            weight = max(0.0, min((f - left) / (middle - left), (right - f) / (right - middle)))
            out[b] += power[:, k] * weight * 2 / (right - left)
    return out


@pytest.mark.parametrize("setting", SETTINGS[:2])
def test_the_layer_is_the_arithmetic_written_out_slowly(setting: tuple[int, float, float, int, float, float]) -> None:
    x = clips(setting[0])
    ours = LogMelLayer(*setting, floor=-80.0)(torch.from_numpy(x)[None, None])[0, 0].numpy()
    theirs = 10 * np.log10(np.maximum(slowly(x, *setting), 1e-8))
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() < 0.01  # decibels


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_layer_is_librosas(setting: tuple[int, float, float, int, float, float]) -> None:
    librosa = pytest.importorskip("librosa", reason="needs librosa")
    rate, window, _, bins, low, high = setting
    x, layer = clips(rate), LogMelLayer(*setting, floor=-80.0)
    power = librosa.feature.melspectrogram(
        y=x,
        sr=rate,
        n_fft=layer.points,
        hop_length=layer.hop,
        win_length=round(rate * window / 1000),
        n_mels=bins,
        fmin=low,
        fmax=high,
        center=True,
        pad_mode="constant",
        power=2.0,
    )
    theirs = librosa.power_to_db(power, ref=1.0, amin=1e-8, top_db=None)
    ours = layer(torch.from_numpy(x)[None, None])[0, 0].numpy()
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() < 0.01
    weights = librosa.filters.mel(sr=rate, n_fft=layer.points, n_mels=bins, fmin=low, fmax=high)
    np.testing.assert_allclose(mel_filters(rate, layer.points, bins, low, high), weights, atol=1e-7)


def test_the_mel_scale_comes_back() -> None:
    hertz = np.geomspace(1, 20000, 99)
    np.testing.assert_allclose(to_hertz(to_mel(hertz)), hertz, rtol=1e-12)
    assert to_mel(np.array([1000.0]))[0] == pytest.approx(15)


def test_a_row_knows_nothing_of_its_batch_and_channels_are_apart() -> None:
    layer = LogMelLayer(*SETTINGS[0], floor=-80.0)
    x = torch.from_numpy(np.stack([clips(8000, seed) for seed in range(4)])).reshape(2, 2, -1)
    torch.testing.assert_close(layer(x)[1:, 1:], layer(x[1:, 1:]), rtol=0, atol=1e-4)
    assert not list(layer.state_dict())  # nothing to be saved: a function of its settings


def test_silence_is_the_floor_and_half_precision_is_not_used() -> None:
    layer = LogMelLayer(*SETTINGS[0], floor=-50.0)
    assert torch.equal(layer(torch.zeros(1, 1, 800)), torch.full((1, 1, 40, 11), -50.0))
    x = torch.from_numpy(clips(8000))[None, None]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(layer(x), LogMelLayer(*SETTINGS[0], floor=-50.0)(x))


def test_a_clip_shorter_than_a_window_has_a_frame() -> None:
    assert LogMelLayer(*SETTINGS[0], floor=-50.0)(torch.ones(2, 1, 3)).shape == (2, 1, 40, 1)


def test_filters_that_hear_nothing_are_counted() -> None:
    assert empty_filters(8000, 25.0, 40, 0.0, 4000.0) == 0
    assert empty_filters(8000, 5.0, 64, 0.0, 4000.0) > 0
