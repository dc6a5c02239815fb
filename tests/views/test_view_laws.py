"""The laws of every invariance: one row a kind in LAWS, and all of them hold for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from pipeline.keys import Keys
from pipeline.views import (
    FACTORS,
    OF_ANY,
    OF_MODALITY,
    OF_PICTURES,
    Affine,
    Blur,
    Brightness,
    ChannelDrop,
    ChannelGain,
    ChannelMix,
    Choose,
    Code,
    ColorJitter,
    ColorMatrix,
    Compose,
    Contrast,
    Erase,
    Grayscale,
    HorizontalFlip,
    Hue,
    Invariance,
    Jpeg,
    Maybe,
    Noise,
    Perspective,
    Posterize,
    Repeat,
    ResizedCrop,
    RightAngle,
    Rotation,
    Saturation,
    Sharpness,
    Shift,
    Solarize,
    VerticalFlip,
    draw_parameters,
    draw_view,
    fault,
    removed,
)
from pipeline.views.distribution import Choice, Constant, LogUniform, Normal, Uniform

VIGNETTE = str(Path(__file__).parents[2] / "specs" / "examples" / "code" / "vignette.py")
JITTER = ColorJitter(brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1, probability=0.8)
LAWS: dict[str, Any] = {
    "shift": Shift(pixels=2.5),
    "rotation": Rotation(degrees=40),
    "right_angle": RightAngle(),
    "horizontal_flip": HorizontalFlip(),
    "vertical_flip": VerticalFlip(),
    "resized_crop": ResizedCrop(),
    "brightness": Brightness(amount=0.5),
    "contrast": Contrast(amount=0.5),
    "saturation": Saturation(amount=0.5),
    "hue": Hue(amount=0.3),
    "color_jitter": JITTER,
    "grayscale": Grayscale(probability=0.5),
    "blur": Blur(),
    "noise": Noise(),
    "affine": Affine(degrees=30, pixels=1, scale=(0.8, 1.2), shear=10),
    "perspective": Perspective(distortion=0.5),
    "solarize": Solarize(),
    "posterize": Posterize(bits=3),
    "sharpness": Sharpness(amount=0.9),
    "channel_gain": ChannelGain(amount=0.3),
    "channel_drop": ChannelDrop(),
    "erase": Erase(area=(0.1, 0.4)),
    "color_matrix": ColorMatrix(spread=0.1),
    "channel_mix": ChannelMix(rows=((0.4, 0.8, 0.2), (0.3, 0.7, 0.2), (0.3, 0.5, 0.1))),
    "jpeg": Jpeg(quality=(10, 60)),
    "code": Code(file=VIGNETTE, name="Vignette", arguments={"amount": 0.8}, removes=frozenset({"brightness"})),
    "compose": Compose(of=(Shift(pixels=1), Hue(amount=0.2), Rotation(degrees=10))),
    "choose": Choose(of=(Solarize(probability=1.0), Blur(probability=1.0), RightAngle()), weights=(1, 2, 1)),
    "maybe": Maybe(of=JITTER, probability=0.5),
    "repeat": Repeat(of=Erase(area=(0.02, 0.1)), times=3),
}
BELL = Normal(mean=0.1, std=0.2, low=-0.3, high=0.5)
EITHER = Choice(values=(-0.4, 0.3), weights=(1, 2))
DRAWN: dict[str, Any] = {  # parameters by distribution, of which none draws what changes nothing
    "shift, choice": Shift(pixels=Choice(values=(-2, 0.5, 1.5), weights=(1, 2, 1))),
    "rotation, normal": Rotation(degrees=Normal(mean=0, std=20, low=-40, high=40)),
    "affine, each otherwise": Affine(
        degrees=Uniform(low=-5, high=30),
        pixels=BELL,
        scale=LogUniform(low=0.7, high=1.1),
        shear=Choice(values=(-20, 10), weights=(1, 2)),
    ),
    "perspective, uniform": Perspective(distortion=Uniform(low=0.2, high=0.5)),
    "resized_crop, normal and log-uniform": ResizedCrop(
        area=Normal(mean=0.3, std=0.2, low=0.1, high=0.8), ratio=LogUniform(low=0.5, high=2)
    ),
    "brightness, uniform": Brightness(amount=Uniform(low=-0.6, high=-0.1)),
    "contrast, choice": Contrast(amount=EITHER),
    "saturation, normal": Saturation(amount=BELL),
    "hue, constant": Compose(of=(Hue(amount=Constant(value=0.2)), Rotation(degrees=BELL))),
    "color_jitter, each otherwise": ColorJitter(
        brightness=Uniform(low=-0.2, high=0.6), contrast=BELL, saturation=EITHER, hue=Uniform(low=0.05, high=0.2)
    ),
    "color_jitter by matrix, normal": ColorJitter(
        brightness=BELL, contrast=BELL, saturation=BELL, hue=BELL, method="matrix"
    ),
    "blur, log-uniform": Blur(sigma=LogUniform(low=0.5, high=3)),
    "noise, log-uniform": Noise(std=LogUniform(low=0.01, high=0.2)),
    "solarize, uniform": Solarize(threshold=Uniform(low=0.2, high=0.6)),
    "posterize, choice": Posterize(bits=Choice(values=(1, 2, 3), weights=(1, 1, 2))),
    "sharpness, normal": Sharpness(amount=BELL),
    "channel_gain, choice": ChannelGain(amount=EITHER),
    "channel_drop, choice": ChannelDrop(count=Choice(values=(1, 2), weights=(1, 1))),
    "erase, log-uniform": Erase(area=LogUniform(low=0.1, high=0.4), ratio=Uniform(low=0.5, high=1.5)),
    "channel_mix, uniform": ChannelMix(
        rows=((0.4, 0.8, 0.2), (0.3, 0.7, 0.2), (0.3, 0.5, 0.1)), amount=Uniform(low=0.3, high=0.9)
    ),
    "jpeg, normal": Jpeg(quality=Normal(mean=30, std=20, low=5, high=60)),
}
UNDRAWN = {"resize", "centre_crop"}  # they draw nothing: their laws are in test_view_sizes
MATRIX = JITTER.model_copy(update={"method": "matrix"})
SIMCLR = (ResizedCrop(), HorizontalFlip(), JITTER, Grayscale(), Blur(), Shift(pixels=1), Rotation(degrees=9), Noise())
MANY = {**{kind: (invariance,) for kind, invariance in {**LAWS, **DRAWN}.items()}, "all of SimCLR and more": SIMCLR}
ROUNDING = 2e-5  # of float32 pixels in [0, 1]: products of batches of other sizes sum in another order
EACH = pytest.mark.parametrize(
    "invariance", [*LAWS.values(), MATRIX, *DRAWN.values()], ids=[*LAWS, "color_jitter by matrix", *DRAWN]
)
LIKELY = {kind: invariance for kind, invariance in {**LAWS, **DRAWN}.items() if hasattr(invariance, "probability")}
EACH_LIKELY = pytest.mark.parametrize("invariance", LIKELY.values(), ids=LIKELY)
LISTS = pytest.mark.parametrize("invariances", MANY.values(), ids=MANY)


def pictures(count: int, height: int = 12, width: int = 12, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Random colours, some pictures one flat colour: (count,3,height,width)."""
    images = Keys.of(5, 0, np.arange(count)).uniform("pixels", shape=(3, height, width))
    images[::7] = images[::7, :, :1, :1]
    return images.to(dtype)


def keys(count: int, view: int = 0, epoch: int = 0) -> Keys:
    return Keys.of(0, epoch, np.arange(count), view)


def close(first: torch.Tensor, second: torch.Tensor, tolerance: float = ROUNDING) -> bool:
    return torch.allclose(first, second, rtol=0, atol=tolerance)


def test_every_kind_has_its_row() -> None:
    members = (*OF_MODALITY["image"], *OF_ANY)
    kinds = [get_args(member.model_fields["kind"].annotation)[0] for member in members]
    assert sorted(kinds) == sorted({*LAWS, *UNDRAWN})
    assert all(invariance.kind == kind for kind, invariance in LAWS.items())


@EACH
def test_an_invariance_is_read_back_from_its_own_json(invariance: Any) -> None:
    assert TypeAdapter(Invariance).validate_json(invariance.model_dump_json()) == invariance
    assert all(field.description for name, field in type(invariance).model_fields.items() if name != "kind")


@LISTS
@settings(max_examples=15)
@given(data=st.data())
def test_a_view_depends_on_its_own_image_and_key_alone(invariances: tuple[Any, ...], data: st.DataObject) -> None:
    count = 24
    whole = draw_view(pictures(count), invariances, keys(count))
    rows = data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=count))  # any order, repeats too
    part = draw_view(pictures(count)[rows], invariances, keys(count).take(np.array(rows)))
    assert close(part, whole[rows])


@LISTS
def test_a_batch_may_be_split_anywhere(invariances: tuple[Any, ...]) -> None:
    images, batch = pictures(33), keys(33)
    whole = draw_view(images, invariances, batch)
    for size in (1, 7, 32):
        starts = range(0, 33, size)
        parts = [draw_view(images[s : s + size], invariances, batch.take(slice(s, s + size))) for s in starts]
        assert close(torch.cat(parts), whole)


@LISTS
def test_the_same_call_gives_the_same_bits_and_leaves_its_input_alone(invariances: tuple[Any, ...]) -> None:
    images = pictures(20)
    before = images.clone()
    assert torch.equal(draw_view(images, invariances, keys(20)), draw_view(images, invariances, keys(20)))
    assert torch.equal(images, before)


@EACH
def test_strength_0_is_the_identity_and_strength_1_is_itself(invariance: Any) -> None:
    images = pictures(30)
    assert torch.equal(draw_view(images, [invariance.at(0.0)], keys(30)), images)
    assert invariance.at(1.0) == invariance
    assert TypeAdapter(Invariance).validate_json(invariance.at(0.5).model_dump_json()).kind == invariance.kind


@EACH
def test_more_strength_moves_images_further(invariance: Any) -> None:
    images = pictures(200)
    moved = [
        float((draw_view(images, [invariance.at(strength)], keys(200)) - images).abs().mean())
        for strength in (0.1, 0.4, 1.0)
    ]
    assert 0 < moved[0] < moved[1] < moved[2]


@EACH_LIKELY
def test_probability_0_is_the_identity(invariance: Any) -> None:
    images = pictures(30)
    assert torch.equal(draw_view(images, [invariance.model_copy(update={"probability": 0.0})], keys(30)), images)


@EACH_LIKELY
@pytest.mark.parametrize("probability", [0.2, 1.0])
def test_an_invariance_acts_as_often_as_it_says(invariance: Any, probability: float) -> None:
    count = 2000
    images = pictures(7)[1].expand(count, -1, -1, -1)  # no flat picture: every action shows
    acted = draw_view(images, [invariance.model_copy(update={"probability": probability})], keys(count)) != images
    share = float(acted.flatten(1).any(1).float().mean())
    within = {"right_angle": 0.75, "maybe": 0.8}  # a turn by nothing, a jitter that is left out
    expected = probability * within.get(invariance.kind, 1.0)
    assert abs(share - expected) < 4 * (0.25 / count) ** 0.5 + (1e-9 if probability < 1 else 0.01)


@LISTS
def test_shape_and_range_are_kept(invariances: tuple[Any, ...]) -> None:
    for images in (pictures(40), torch.zeros(3, 3, 12, 12), torch.ones(3, 3, 12, 12)):
        view = draw_view(images, invariances, keys(len(images)))
        assert view.shape == images.shape
        assert float(view.min()) >= -1e-6
        assert float(view.max()) <= 1 + 1e-6


@LISTS
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-4), (torch.float16, 1e-3), (torch.bfloat16, 8e-3)], ids=str
)
def test_other_types_come_back_as_they_came(invariances: tuple[Any, ...], dtype: torch.dtype, tolerance: float) -> None:
    images = pictures(20).to(dtype)
    view = draw_view(images, invariances, keys(20))
    assert view.dtype == dtype
    assert close(view.float(), draw_view(images.float(), invariances, keys(20)), tolerance)


@LISTS
def test_the_layout_in_memory_does_not_matter(invariances: tuple[Any, ...]) -> None:
    images = pictures(20)
    spread = images.to(memory_format=torch.channels_last)
    assert close(draw_view(spread, invariances, keys(20)), draw_view(images, invariances, keys(20)))
    assert close(draw_view(images[::2], invariances, keys(10)), draw_view(images[::2].clone(), invariances, keys(10)))


@EACH
@pytest.mark.parametrize("size", [(1, 1), (3, 3), (1, 40), (40, 2), (9, 16)], ids=str)
def test_images_of_any_shape_work(invariance: Any, size: tuple[int, int]) -> None:
    if fault(invariance, 3, *size):
        return
    images = pictures(10, *size)
    view = draw_view(images, [invariance], keys(10))
    assert view.shape == images.shape
    assert bool(view.isfinite().all())
    assert torch.equal(draw_view(images, [invariance.at(0.0)], keys(10)), images)


@LISTS
def test_a_batch_may_be_empty(invariances: tuple[Any, ...]) -> None:
    assert draw_view(pictures(0), invariances, keys(0)).shape == (0, 3, 12, 12)


@EACH
def test_the_two_views_of_a_sample_are_independent(invariance: Any) -> None:
    count = 4000
    first, second = (invariance.draw(keys(count, view)) for view in (0, 1))
    for name, values in first.items():
        pairs = zip(values.double().reshape(count, -1).T, second[name].double().reshape(count, -1).T, strict=True)
        for one, other in pairs:
            if one.std() > 0:
                assert abs(float(torch.corrcoef(torch.stack([one, other]))[0, 1])) < 5 / count**0.5, name
    assert any(not torch.equal(values, second[name]) for name, values in first.items())


@EACH
def test_parameters_are_one_a_sample_on_the_cpu(invariance: Any) -> None:
    for values in invariance.draw(keys(11)).values():
        assert len(values) == 11
        assert values.device.type == "cpu"
        assert values.dtype in (torch.float32, torch.int64, torch.bool)


def test_the_same_operation_twice_in_a_list_draws_twice() -> None:
    first, second = draw_parameters([Shift(pixels=3), Shift(pixels=3)], keys(50))
    assert not torch.equal(first["shift"], second["shift"])


@EACH
def test_what_an_invariance_removes_are_factors(invariance: Any) -> None:
    assert invariance.removes
    assert invariance.removes <= FACTORS
    assert isinstance(invariance.invertible, bool)
    assert not invariance.group or invariance.invertible  # a group has inverses


def test_every_factor_is_removed_by_some_invariance() -> None:
    assert removed(LAWS.values()) == frozenset(OF_PICTURES)
    assert removed([]) == frozenset()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@LISTS
def test_a_gpu_agrees_with_the_cpu(invariances: tuple[Any, ...]) -> None:
    images = pictures(20)
    view = draw_view(images.cuda(), invariances, keys(20))
    assert view.device.type == "cuda"
    assert close(view.cpu(), draw_view(images, invariances, keys(20)), 1e-3)
