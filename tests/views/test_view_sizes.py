"""Laws of the sizing family: a box of a picture of any size, brought to the view's size; and of uint8 pictures."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pipeline.keys import Keys
from pipeline.spec import Refusal
from pipeline.views import (
    FACTORS,
    Blur,
    CentreCrop,
    ColorJitter,
    Compose,
    Grayscale,
    HorizontalFlip,
    Maybe,
    Noise,
    Resize,
    ResizedCrop,
    RightAngle,
    Shift,
    Sizing,
    Solarize,
    VerticalFlip,
    apply_view,
    draw_parameters,
    draw_view,
    fault,
)

FAMILY: dict[str, Any] = {
    "resized_crop": ResizedCrop(),
    "resize": Resize(),
    "centre_crop": CentreCrop(share=0.7),
}
EACH = pytest.mark.parametrize("sizing", FAMILY.values(), ids=FAMILY)
REST = (HorizontalFlip(), ColorJitter(brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1), Grayscale())
MATRIX = (ColorJitter(brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1, method="matrix"), Grayscale())
SHAPES = [(1, 1), (20, 8000), (8000, 20), (3, 500), (37, 52), (1, 9), (64, 64), (12, 12)]
STEP = 1.0 / 255.0


def picture(number: int, height: int, width: int) -> Tensor:
    """Random bytes: (3,height,width) uint8."""
    return Keys.of(7, 0, [number]).integers("pixels", 0, 256, shape=(3, height, width))[0].byte()


def keys(count: int, view: int = 0) -> Keys:
    return Keys.of(0, 0, np.arange(count), view)


def sides(sizing: Any, heights: list[int], widths: list[int], size: tuple[int, int], count: int = 0) -> Tensor:
    """The boxes of pictures of the given sizes: (N,4)."""
    drawn = sizing.draw(keys(count or len(heights)))
    return sizing.boxes(drawn, torch.tensor(heights), torch.tensor(widths), size)


def test_every_sizing_has_its_row() -> None:
    assert sorted(FAMILY) == sorted(each.model_fields["kind"].default for each in get_args(Sizing))
    assert all(sizing.removes <= FACTORS and sizing.removes and not sizing.group for sizing in FAMILY.values())


@EACH
@settings(max_examples=60)
@given(data=st.data())
def test_a_box_lies_in_its_picture_and_has_a_pixel(sizing: Any, data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.tuples(st.integers(1, 9000), st.integers(1, 9000)), min_size=1, max_size=9))
    size = data.draw(st.tuples(st.integers(1, 300), st.integers(1, 300)))
    box = sides(sizing, [height for height, _ in sizes], [width for _, width in sizes], size)
    top, left, height, width = box.T
    whole = torch.tensor(sizes)
    assert bool(((top >= 0) & (left >= 0) & (height >= 1) & (width >= 1)).all())
    assert bool(((top + height <= whole[:, 0]) & (left + width <= whole[:, 1])).all())


@EACH
def test_a_view_of_a_list_depends_on_its_own_picture_and_key_alone(sizing: Any) -> None:
    images = [picture(number, *shape) for number, shape in enumerate(SHAPES)]
    together = draw_view(images, (sizing, *REST), keys(len(images)), (24, 24))
    assert together.shape == (len(images), 3, 24, 24)
    assert together.dtype == torch.float32
    assert bool(together.isfinite().all())
    assert 0 <= float(together.min()) <= float(together.max()) <= 1
    for row in range(len(images)):
        alone = draw_view(images[row : row + 1], (sizing, *REST), keys(len(images)).take([row]), (24, 24))
        assert torch.allclose(alone[0], together[row], rtol=0, atol=2e-6)


@EACH
def test_a_batch_of_one_size_and_a_list_of_it_are_the_same(sizing: Any) -> None:
    for shape, size in (((64, 80), (60, 60)), ((20, 20), (20, 20)), ((20, 25), (12, 12))):
        images = torch.stack([picture(number, *shape) for number in range(9)])
        batch = draw_view(images, (sizing, *REST[:1]), keys(9), size)
        # small batches are not rounded to bytes in between, lists are
        assert torch.allclose(
            draw_view(list(images), (sizing, *REST[:1]), keys(9), size), batch, rtol=0, atol=1.01 * STEP
        )


@EACH
def test_bytes_and_their_floating_point_values_have_the_same_view(sizing: Any) -> None:
    for side in (20, 70):
        images = torch.stack([picture(number, side, side) for number in range(6)])
        floating = draw_view(images / 255.0, (sizing,), keys(6))
        stored = draw_view(images, (sizing,), keys(6))
        assert stored.dtype == torch.float32
        assert float((stored - floating).abs().max()) < 1.01 * STEP
        assert float((stored - floating).abs().mean()) < 0.5 * STEP


@EACH
@pytest.mark.parametrize("shape", [(12, 12), (60, 90)], ids=str)
def test_strength_0_is_the_identity_on_the_canvas(sizing: Any, shape: tuple[int, int]) -> None:
    images = torch.stack([picture(number, *shape) for number in range(8)])
    assert torch.allclose(draw_view(images, [sizing.at(0.0)], keys(8)), images / 255.0, rtol=0, atol=1e-7)
    floating = torch.rand(8, 3, *shape, generator=torch.Generator().manual_seed(0))
    assert torch.equal(draw_view(floating, [sizing.at(0.0)], keys(8)), floating)
    assert sizing.at(1.0) == sizing


def test_bytes_move_by_mirrors_and_right_angles_without_rounding() -> None:
    images = torch.stack([picture(number, 60, 60) for number in range(30)])
    invariances = (HorizontalFlip(), RightAngle())
    assert torch.equal(draw_view(images, invariances, keys(30)), draw_view(images / 255.0, invariances, keys(30)))
    assert torch.equal(draw_view(images, [], keys(30)), images / 255.0)


ONE_BY_ONE: dict[str, tuple[Any, ...]] = {
    "exact": (ResizedCrop(), *REST, Blur(sigma=(0.1, 3.0)), Solarize()),
    "matrix": (ResizedCrop(), VerticalFlip(), *MATRIX, Shift(pixels=2), Blur()),
    "canvas": (*REST, Blur(), ResizedCrop(), HorizontalFlip(), Noise()),
    "nested": (Resize(), Maybe(of=Compose(of=(*REST, Blur())), probability=0.7), RightAngle()),
}


@pytest.mark.parametrize("invariances", ONE_BY_ONE.values(), ids=ONE_BY_ONE)
def test_large_pictures_go_one_by_one_without_a_trace(
    invariances: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    images = torch.rand(12, 3, 40, 40, generator=torch.Generator().manual_seed(0))
    before = images.clone()
    together = draw_view(images, invariances, keys(12))
    monkeypatch.setattr("pipeline.views.image_resize.LARGE", 0)
    single = draw_view(images, invariances, keys(12))
    assert torch.allclose(single, together, rtol=0, atol=2e-5)
    assert torch.equal(images, before)
    for row in (0, 7):
        alone = draw_view(images[row : row + 1], invariances, keys(12).take([row]))
        assert torch.allclose(alone[0], single[row], rtol=0, atol=2e-6)


def test_the_whole_picture_is_resized_each_side_by_itself() -> None:
    assert sides(Resize(), [10, 3], [20, 7], (5, 5)).tolist() == [[0, 0, 10, 20], [0, 0, 3, 7]]
    assert Resize().draw(keys(5)) == {}
    assert Resize().at(0.3) == Resize()


def test_a_central_box_has_the_share_of_the_shorter_side_and_the_shape_of_the_view() -> None:
    crop = CentreCrop(share=0.5)
    assert sides(crop, [100, 60, 1], [60, 100, 1], (8, 8)).tolist() == [
        [35, 15, 30, 30],
        [15, 35, 30, 30],
        [0, 0, 1, 1],
    ]
    assert sides(crop, [100, 100], [100, 40], (10, 20)).tolist() == [[38, 25, 25, 50], [45, 10, 10, 20]]
    assert CentreCrop(share=0.5).draw(keys(5)) == {}
    assert CentreCrop(share=0.5).at(0.5).share == 0.75
    wider = [int(sides(CentreCrop(share=0.6).at(s), [100], [100], (10, 10))[0, 2]) for s in (0.0, 0.5, 1.0)]
    assert wider == [100, 80, 60]


def test_a_ratio_is_of_pixels_whatever_the_shape_of_the_picture() -> None:
    box = sides(ResizedCrop(area=(0.1, 0.2), ratio=(0.5, 2.0)), [400] * 3000, [800] * 3000, (32, 32)).double()
    ratio = (box[:, 3] / box[:, 2]).log2()
    assert abs(float(ratio.mean())) < 0.04
    assert -1.02 < float(ratio.min()) < -0.9
    assert 0.9 < float(ratio.max()) < 1.02


def test_a_crop_that_never_fits_is_central_with_the_ratio_clamped() -> None:
    crop = ResizedCrop(area=(0.9, 1.0))
    box = sides(crop, [20, 8000, 20], [8000, 20, 24], (32, 32)).tolist()
    assert box[0] == [0, (8000 - 27) // 2, 20, 27]
    assert box[1] == [(8000 - 27) // 2, 0, 27, 20]
    assert sides(ResizedCrop(ratio=(5.0, 9.0)), [1], [1], (4, 4)).tolist() == [[0, 0, 1, 1]]
    # within the range, the whole picture
    drawn = crop.draw(keys(1)) | {"area": torch.full((1, 10), 1.0), "ratio": torch.full((1, 10), 4 / 3)}
    assert crop.boxes(drawn, torch.tensor([30]), torch.tensor([31]), (8, 8)).tolist() == [[0, 0, 30, 31]]


def test_without_an_action_the_picture_is_whole() -> None:
    never = ResizedCrop(probability=0.0)
    assert sides(never, [20, 7], [8000, 7], (32, 32)).tolist() == [[0, 0, 20, 8000], [0, 0, 7, 7]]
    often = sides(ResizedCrop(area=(0.2, 0.5), probability=0.3), [50] * 2000, [50] * 2000, (32, 32))
    assert abs(float((often[:, 2] < 50).float().mean()) - 0.3) < 0.05


def test_a_later_crop_acts_on_the_canvas() -> None:
    images = [picture(number, 40, 30) for number in range(5)]
    invariances = (Resize(), HorizontalFlip(), ResizedCrop())
    drawn = draw_parameters(invariances, keys(5))
    canvas = apply_view(images, invariances[:2], drawn[:2], (16, 16))
    later = apply_view(canvas, invariances[2:], drawn[2:])
    assert torch.allclose(apply_view(images, invariances, drawn, (16, 16)), later, atol=1e-6)


def test_pictures_of_other_sizes_without_a_sizing_first_are_refused() -> None:
    images = [picture(0, 5, 5), picture(1, 6, 9)]
    remedy = "comes first, where pictures are brought to 8 x 8; begin with resized_crop, resize or centre_crop"
    with pytest.raises(Refusal, match=f"invariance shift: {remedy}"):
        draw_view(images, [Shift(pixels=1), Resize()], keys(2), (8, 8))
    with pytest.raises(Refusal, match=f"invariance maybe: {remedy}"):
        draw_view(images, [Maybe(of=Resize(), probability=0.5)], keys(2), (8, 8))
    with pytest.raises(Refusal, match=f"invariance nothing: {remedy}"):
        draw_view(torch.rand(2, 3, 5, 5), [], keys(2), (8, 8))
    assert draw_view(torch.rand(2, 3, 5, 5), [Resize()], keys(2), (8, 9)).shape == (2, 3, 8, 9)


def test_what_is_no_list_of_pictures_is_an_error() -> None:
    with pytest.raises(ValueError, match="no image"):
        draw_view([], [Resize()], keys(0), (8, 8))
    for odd in (torch.rand(3, 5, 5), torch.zeros(5, 5, dtype=torch.uint8), torch.zeros(1, 5, 5, dtype=torch.uint8)):
        with pytest.raises(ValueError, match="uint8 of as many channels"):
            draw_view([picture(0, 5, 5), odd], [Resize()], keys(2), (8, 8))
    with pytest.raises(ValueError, match="floating point or uint8"):
        draw_view(torch.zeros(2, 3, 5, 5, dtype=torch.int64), [Resize()], keys(2), (8, 8))
    with pytest.raises(ValueError, match="parameters of other than 2 images"):
        draw_view([picture(0, 5, 5), picture(1, 5, 5)], [ResizedCrop()], keys(3), (8, 8))


def test_a_crop_below_a_pixel_is_refused() -> None:
    assert fault(ResizedCrop(area=(0.0001, 0.0009)), 3, 32, 32) == (
        "area = [0.0001, 0.0009] of 32 x 32 is less than one pixel; use a larger part"
    )
    assert (
        fault(CentreCrop(share=0.02), 3, 32, 40) == "share = 0.02 of 32 x 40 is less than one pixel; use a larger part"
    )
    assert fault(ResizedCrop(area=(0.0001, 0.001)), 3, 32, 32) is None
    with pytest.raises(Refusal, match=r"resized_crop: area = \[0.001, 0.002\] of 8 x 8 is less than one pixel"):
        draw_view(torch.rand(2, 3, 8, 8), [ResizedCrop(area=(0.001, 0.002))], keys(2))


@pytest.mark.parametrize("channels", [1, 2, 4, 12])
def test_any_number_of_bands_is_cropped(channels: int) -> None:
    for side in (16, 60):
        images = torch.randint(0, 256, (3, channels, side, side), generator=torch.Generator().manual_seed(0)).byte()
        expected = draw_view(images / 255.0, [ResizedCrop()], keys(3), (20, 30))
        assert float((draw_view(images, [ResizedCrop()], keys(3), (20, 30)) - expected).abs().max()) < 1.01 * STEP
