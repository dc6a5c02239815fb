"""Encoders of what has a time axis: shapes, rows for themselves, and settings that cannot be."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from small import training

from pipeline.audio import Audio
from pipeline.encoders import LogMel, Small1d, encoder_sides
from pipeline.encoders.structure import on_meta
from pipeline.spec import SpecError, parse
from pipeline.specification import unreadable

SMALL = {"kind": "small", "widths": [8, 16], "strides": [2, 2], "groups": 4}
MEL = {"kind": "log_mel", "rate": 8000, "window": 25, "hop": 10, "bins": 32, "low": 50, "high": 4000, "floor": -50}
WAVE = {"kind": "small_1d", "widths": [8, 16], "kernels": [9, 3], "strides": [4, 2], "groups": 4}
CLIP = Audio(kind="audio", rate=8000, seconds=0.2, channels=2, mix="mean", longer="centre", shorter="centre")


def mel(**changes: Any) -> LogMel:
    return parse({**MEL, "trunk": SMALL, **changes}, LogMel, "x.yaml", "encoder")


def wave(**changes: Any) -> Small1d:
    return parse({**WAVE, **changes}, Small1d, "x.yaml", "encoder")


@pytest.mark.parametrize("spec", [mel(), wave()], ids=lambda spec: spec.kind)
def test_a_wave_becomes_h_and_knows_nothing_of_its_batch(spec: Any) -> None:
    torch.manual_seed(0)
    module = spec.build(2).eval()
    x = torch.randn(5, 2, 1600)
    assert module(x).shape == (5, module.dim) == (5, 16)
    torch.testing.assert_close(module(x[2:4]), module(x)[2:4], rtol=1e-4, atol=1e-5)
    assert not spec.batch_statistics()
    assert on_meta(spec.build, 2)(torch.zeros(3, 2, 1600, device="meta")).shape == (3, 16)


def test_every_weight_of_a_log_mel_encoder_is_its_trunks_and_learns() -> None:
    module = mel().build(1)
    assert all(name.startswith("trunk.") for name in module.state_dict())
    module(torch.randn(4, 1, 1600)).square().sum().backward()
    assert all(parameter.grad is not None and bool(parameter.grad.any()) for parameter in module.parameters())


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"high": 5000}, "encoder.high = 5000: must be at most half the rate: 4000"),
        ({"low": 4000}, r"encoder.low = 4000: must be below high \(4000\)"),
        ({"window": 0.1}, "encoder.window = 0.1: at 8000 Hz it has fewer than 2 samples"),
        ({"bins": 200}, r"encoder.bins = 200: \d+ of them hear nothing"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(SpecError, match=fault):
        mel(**changes)
    with pytest.raises(SpecError, match=r"encoder.kernels.*must name one a stage: 2 of them"):
        wave(kernels=[9])


def test_an_encoder_is_held_to_the_modality_and_the_rate_of_the_data() -> None:
    assert encoder_sides() == {
        "small": 2,
        "small_residual": 2,
        "timm": 2,
        "torchvision": 2,
        "small_1d": 1,
        "log_mel": 1,
    }
    right = training(encoder={**MEL, "trunk": SMALL})
    assert unreadable(right, CLIP, CLIP.size) is None
    other = training(encoder={**MEL, "rate": 16000, "trunk": SMALL})
    assert unreadable(other, CLIP, CLIP.size) == "its rate is 16000, the data's 8000; make them equal"
    flat = training(encoder=SMALL)
    assert unreadable(flat, CLIP, CLIP.size) == "small reads pictures, the data is audio; use small_1d, log_mel"
