"""Every invariance computes what torchvision.transforms.v2.functional computes of the same parameters.

The tolerances are of float32 pixels in [0, 1]: a few roundings. Only the coordinates of a resampling, which both
sides round differently, cost more.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from sklearn.datasets import load_sample_images
from torch import Tensor
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as reference

from pipeline.keys import Keys
from pipeline.views import (
    Affine,
    Blur,
    CentreCrop,
    ColorJitter,
    Erase,
    Grayscale,
    HorizontalFlip,
    Jpeg,
    Perspective,
    Posterize,
    Resize,
    ResizedCrop,
    RightAngle,
    Rotation,
    Shift,
    Solarize,
    VerticalFlip,
    draw_parameters,
    draw_view,
)
from pipeline.views.image_blur import blur
from pipeline.views.image_colour import brighten, saturate, stretch, turn_hue
from pipeline.views.image_jitter import jitter
from pipeline.views.image_matrix import hue_matrix
from pipeline.views.image_resize import crop
from pipeline.views.image_tone import sharpen

ARITHMETIC = 1e-6
RESAMPLING = 2e-5
BILINEAR = InterpolationMode.BILINEAR
SIZES = [(12, 12), (17, 23), (32, 32), (70, 50)]
EACH_SIZE = pytest.mark.parametrize("size", SIZES, ids=str)


def pictures(count: int, height: int, width: int) -> Tensor:
    images = Keys.of(1, 0, np.arange(count)).uniform("pixels", shape=(3, height, width))
    images[::5] = (images[::5] * 3).round() / 3  # few values: equal channels, equal neighbours
    images[::7] = images[::7, :, :1, :1]
    return images


def worst(ours: Tensor, theirs: Callable[[int], Tensor]) -> float:
    return max(float((theirs(row) - ours[row]).abs().max()) for row in range(len(ours)))


def keys(count: int) -> Keys:
    return Keys.of(3, 0, np.arange(count))


@EACH_SIZE
def test_rotation(size: tuple[int, int]) -> None:
    images, invariance = pictures(30, *size), Rotation(degrees=180)
    drawn = invariance.draw(keys(30))
    angles = drawn["degrees"].tolist()
    ours = invariance.apply(images, drawn)
    assert worst(ours, lambda row: reference.rotate(images[row], angles[row], BILINEAR)) < RESAMPLING


@EACH_SIZE
def test_shift(size: tuple[int, int]) -> None:
    images, invariance = pictures(30, *size), Shift(pixels=6)
    drawn = invariance.draw(keys(30))
    moves = drawn["shift"].tolist()
    ours = invariance.apply(images, drawn)
    assert worst(ours, lambda row: reference.affine(images[row], 0.0, moves[row], 1.0, [0.0, 0.0], BILINEAR)) < 2e-5


def test_a_fill_comes_in_as_in_torchvision_but_for_the_edge_between() -> None:
    """torchvision weighs a mixture at the edge twice (its mask is applied to it again), so none is mixed here."""
    images, invariance = pictures(10, 16, 16), Shift(pixels=6, fill=0.7)
    drawn = {"shift": invariance.draw(keys(10))["shift"].round()}
    moves = drawn["shift"].tolist()
    ours = invariance.apply(images, drawn)
    affine = lambda row: reference.affine(images[row], 0.0, moves[row], 1.0, [0.0, 0.0], BILINEAR, fill=0.7)  # noqa: E731
    assert worst(ours, affine) < RESAMPLING


def test_right_angles_and_mirrors_move_whole_pixels() -> None:
    images = pictures(40, 9, 9)
    for invariance, theirs in (
        (RightAngle(), lambda image, turns: torch.rot90(image, int(turns), (1, 2))),
        (HorizontalFlip(), lambda image, flipped: reference.horizontal_flip(image) if flipped else image),
        (VerticalFlip(), lambda image, flipped: reference.vertical_flip(image) if flipped else image),
    ):
        drawn = invariance.draw(keys(40))
        (values,) = drawn.values()
        ours = invariance.apply(images, drawn)
        assert len(set(values.tolist())) > 1
        for row in range(40):
            assert torch.equal(ours[row], theirs(images[row], values[row]))


def drawn_boxes(invariance: ResizedCrop, count: int, height: int, width: int) -> Tensor:
    sides = torch.full((count,), height), torch.full((count,), width)
    return invariance.boxes(invariance.draw(keys(count)), *sides, (height, width))


@EACH_SIZE
def test_resized_crop(size: tuple[int, int]) -> None:
    images = pictures(60, *size)
    box = drawn_boxes(ResizedCrop(), 60, *size)
    assert len(box.unique(dim=0)) > 20
    for out in (size, (7, 40)):
        ours = crop(images, box, out)
        theirs = [
            reference.resized_crop(images[row], *box[row].tolist(), list(out), antialias=True) for row in range(60)
        ]
        assert float((torch.stack(theirs) - ours).abs().max()) < ARITHMETIC


LEVEL = 1.01 / 255  # of bytes: torchvision rounds each of two passes; products of filters are not rounded


@EACH_SIZE
def test_resized_crop_of_bytes(size: tuple[int, int]) -> None:
    """One by one, as large pictures and lists go, it is torchvision's to the bit; in a batch, to one level of 255."""
    images = (pictures(60, *size) * 255).round().byte()
    box = drawn_boxes(ResizedCrop(), 60, *size)
    for out in (size, (7, 40), (100, 60)):
        theirs = torch.stack(
            [reference.resized_crop(images[row], *box[row].tolist(), list(out), antialias=True) for row in range(60)]
        )
        assert torch.equal(crop(list(images), box, out), theirs)
        ours = crop(images, box, out)
        assert ours.dtype in (torch.float32, torch.uint8)
        ours = ours if ours.is_floating_point() else ours / 255
        assert float((ours - theirs / 255).abs().max()) < LEVEL


@EACH_SIZE
def test_resize(size: tuple[int, int]) -> None:
    images = pictures(8, *size)
    stored = (images * 255).round().byte()
    for out in (size, (7, 40), (64, 64)):
        ours = draw_view(images, [Resize()], keys(8), out)
        assert worst(ours, lambda row: reference.resize(images[row], list(out), antialias=True)) < ARITHMETIC  # noqa: B023
        ours = draw_view(list(stored), [Resize()], keys(8), out)
        assert worst(ours, lambda row: reference.resize(stored[row], list(out), antialias=True) / 255) < 1e-7  # noqa: B023


def test_the_centre_of_a_picture_is_its_crop_resized() -> None:
    stored = [(picture * 255).round().byte() for picture in pictures(6, 61, 90)]
    ours = draw_view(stored, [CentreCrop(share=1.0)], keys(6), (30, 30))

    def theirs(row: int) -> Tensor:
        return reference.resize(reference.center_crop(stored[row], [61, 61]), [30, 30], antialias=True) / 255

    assert worst(ours, theirs) < 1e-7


def test_a_share_of_7_in_8_is_what_networks_are_evaluated_on() -> None:
    """Resize(256) and CenterCrop(224); only the outermost pixels, whose filters reach beyond the box, may differ."""
    (image,) = pictures(2, 320, 400)[1:]
    (ours,) = draw_view(image[None], [CentreCrop(share=0.875)], keys(1), (224, 224))
    theirs = reference.center_crop(reference.resize(image, [256], antialias=True), [224, 224])
    assert float((theirs - ours)[:, 2:-2, 2:-2].abs().max()) < 1e-5
    assert float((theirs - ours).abs().max()) < 0.3


@settings(max_examples=40)
@given(data=st.data())
def test_any_box_of_any_picture(data: st.DataObject) -> None:
    height, width, rows, columns = (data.draw(st.integers(1, 40)) for _ in range(4))
    top, left = data.draw(st.integers(0, height - 1)), data.draw(st.integers(0, width - 1))
    box = [top, left, data.draw(st.integers(1, height - top)), data.draw(st.integers(1, width - left))]
    image = pictures(2, height, width)[1]
    theirs = reference.resized_crop(image, *box, [rows, columns], antialias=True)
    assert torch.allclose(crop(image[None], torch.tensor([box]), (rows, columns))[0], theirs, rtol=0, atol=ARITHMETIC)


@pytest.mark.parametrize(("height", "width"), [(64, 64), (50, 120), (20, 200)])
def test_boxes_are_distributed_as_torchvision_draws_them(height: int, width: int) -> None:
    """Mean area and mean log ratio of 20,000 boxes against as many of RandomResizedCrop.get_params."""
    from torchvision.transforms.v2 import RandomResizedCrop

    invariance = ResizedCrop(area=(0.2, 0.9), ratio=(0.5, 2.0))
    ours = drawn_boxes(invariance, 20_000, height, width).double()
    torch.manual_seed(0)
    theirs_transform = RandomResizedCrop(64, scale=invariance.area, ratio=invariance.ratio)
    drawn = [theirs_transform.make_params([torch.zeros(3, height, width)]) for _ in range(4000)]
    theirs = torch.tensor([[d["top"], d["left"], d["height"], d["width"]] for d in drawn]).double()
    for measure in (
        lambda box: box[:, 2] * box[:, 3] / (height * width),
        lambda box: (box[:, 3] / box[:, 2]).log(),
        lambda box: box[:, 0] / height,
        lambda box: box[:, 1] / width,
    ):
        one, other = measure(ours), measure(theirs)
        spread = float((one.var() / len(one) + other.var() / len(other)).sqrt())
        assert abs(float(one.mean() - other.mean())) <= 4.5 * spread


FACTORS = torch.tensor([0.0, 0.3, 0.9, 1.0, 1.2, 1.9, 3.0, 0.5])


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (brighten, reference.adjust_brightness),
        (stretch, reference.adjust_contrast),
        (saturate, reference.adjust_saturation),
    ],
    ids=["brightness", "contrast", "saturation"],
)
def test_a_factor_of_light(ours: Callable[..., Tensor], theirs: Callable[..., Tensor]) -> None:
    images = pictures(8, 12, 12)
    assert worst(ours(images, FACTORS), lambda row: theirs(images[row], float(FACTORS[row]))) < ARITHMETIC


def test_brightness_and_contrast_of_one_channel() -> None:
    images = pictures(8, 12, 12)[:, :1]
    assert worst(brighten(images, FACTORS), lambda r: reference.adjust_brightness(images[r], float(FACTORS[r]))) < 1e-6
    assert worst(stretch(images, FACTORS), lambda r: reference.adjust_contrast(images[r], float(FACTORS[r]))) < 1e-6


def test_hue() -> None:
    images = pictures(200, 8, 8)
    turn = keys(200).uniform("turn", -0.5, 0.5)
    turn[:4] = torch.tensor([0.0, 0.5, -0.5, 1 / 6])
    assert worst(turn_hue(images, turn), lambda row: reference.adjust_hue(images[row], float(turn[row]))) < 5e-6


@pytest.mark.parametrize("values", [2, 3, 5])
def test_hue_of_every_colour_of_a_coarse_cube(values: int) -> None:
    """Grays, pure colours and ties between channels, where the six cases of HSV meet."""
    steps = torch.linspace(0, 1, values)
    image = torch.cartesian_prod(steps, steps, steps).T[:, None]  # (3,1,values**3)
    for turn in torch.linspace(-0.5, 0.5, 13).tolist():
        ours = turn_hue(image[None], torch.tensor([turn]))[0]
        assert float((ours - reference.adjust_hue(image, turn)).abs().max()) < 5e-6


@pytest.mark.parametrize("size", [(10, 10), (50, 60)], ids=["batch", "one by one"])
def test_color_jitter_in_every_order(size: tuple[int, int]) -> None:
    images = pictures(120, *size)
    invariance = ColorJitter(brightness=0.8, contrast=0.8, saturation=0.8, hue=0.4, probability=0.8)
    drawn = invariance.draw(keys(120))
    assert len(drawn["order"].unique(dim=0)) == 24
    names = ("brightness", "contrast", "saturation", "hue")

    def theirs(row: int) -> Tensor:
        image = images[row]
        for number in drawn["order"][row].tolist():
            image = getattr(reference, f"adjust_{names[number]}")(image, float(drawn[names[number]][row]))
        return image

    assert worst(jitter(images, drawn), theirs) < 2e-5  # a contrast after a hue enlarges its rounding


def test_grayscale() -> None:
    images = pictures(20, 12, 12)
    ours = Grayscale(probability=1.0).apply(images, {"gray": torch.ones(20, dtype=torch.bool)})
    assert worst(ours, lambda row: reference.rgb_to_grayscale(images[row], 3)) < ARITHMETIC


@pytest.mark.parametrize("size", [*SIZES, (64, 96), (3, 800), (49, 130)], ids=str)
@pytest.mark.parametrize("radius", [1, 4, 8, 30])
def test_blur(size: tuple[int, int], radius: int) -> None:
    images = pictures(20, *size)
    sigma = keys(20).uniform("sigma", 0.1, 3.0)
    sigma[0] = 0.0
    width = 2 * min(radius, size[0] - 1, size[1] - 1) + 1

    def theirs(row: int) -> Tensor:
        return reference.gaussian_blur(images[row], [width, width], [float(sigma[row])] * 2) if row else images[row]

    assert worst(blur(images, sigma, radius), theirs) < 2e-6


def test_cutting_the_kernel_at_four_sigma_changes_nothing_that_shows() -> None:
    images, invariance = pictures(10, 32, 32), Blur(sigma=(1.5, 1.5), probability=1.0)
    ours = invariance.apply(images, invariance.draw(keys(10)))
    assert worst(ours, lambda row: reference.gaussian_blur(images[row], [61, 61], [1.5, 1.5])) < 2e-4


@EACH_SIZE
def test_affine(size: tuple[int, int]) -> None:
    images, invariance = pictures(30, *size), Affine(degrees=180, pixels=4, scale=(0.5, 2.0), shear=40)
    drawn = invariance.draw(keys(30))
    ours = invariance.apply(images, drawn)

    def theirs(row: int) -> Tensor:
        degrees, zoom, shear = (float(drawn[name][row]) for name in ("degrees", "scale", "shear"))
        return reference.affine(images[row], -degrees, drawn["shift"][row].tolist(), zoom, [shear, 0.0], BILINEAR)

    assert worst(ours, theirs) < 5e-5


@EACH_SIZE
def test_perspective(size: tuple[int, int]) -> None:
    """torchvision reads its points half a pixel off, from the canvas's edge; so half a pixel is added to them here."""
    images, invariance = pictures(30, *size), Perspective(distortion=0.6, probability=1.0)
    drawn = invariance.draw(keys(30))
    ours = invariance.apply(images, drawn)
    right, low = size[1] - 1, size[0] - 1
    start = torch.tensor([[0, 0], [right, 0], [right, low], [0, low]]).double() + 0.5
    centre = torch.tensor([right / 2, low / 2]).double() + 0.5

    def theirs(row: int) -> Tensor:
        end = centre + (start - centre) * (1 - drawn["corners"][row].double())
        return reference.perspective(images[row], start.tolist(), end.tolist(), BILINEAR)

    assert worst(ours, theirs) < 1e-4
    assert float((ours - images).abs().max()) > 0.1


@EACH_SIZE
def test_erase(size: tuple[int, int]) -> None:
    height, width = size
    images, invariance = pictures(30, *size), Erase(area=(0.02, 0.3), ratio=(0.3, 3.3), fill=0.4, probability=0.7)
    drawn = invariance.draw(keys(30))
    tries = zip(drawn["area"].tolist(), drawn["ratio"].tolist(), strict=True)
    sides = [
        [
            (round((area * height * width / ratio) ** 0.5), round((area * height * width * ratio) ** 0.5))
            for area, ratio in zip(*row, strict=True)
        ]
        for row in tries
    ]

    def theirs(row: int) -> Tensor:
        tall, wide = next(pair for pair in sides[row] if 0 < pair[0] <= height and 0 < pair[1] <= width)
        top = int(drawn["top"][row].double() * (height - tall + 1))
        left = int(drawn["left"][row].double() * (width - wide + 1))
        fill = torch.full((3, 1, 1), 0.4)
        return reference.erase(images[row], top, left, tall, wide, fill) if drawn["erased"][row] else images[row]

    assert 5 < int(drawn["erased"].sum()) < 30
    assert worst(invariance.apply(images, drawn), theirs) == 0


@pytest.mark.parametrize("threshold", [0.0, 1 / 3, 0.5, 1.0])
def test_solarize(threshold: float) -> None:
    images = pictures(20, 12, 12)
    invariance = Solarize(threshold=threshold, probability=1.0)
    ours = invariance.apply(images, invariance.draw(keys(20)))
    assert worst(ours, lambda row: reference.solarize(images[row], threshold)) == 0


@pytest.mark.parametrize("bits", range(1, 9))
def test_posterize(bits: int) -> None:
    images = pictures(20, 12, 12)
    invariance = Posterize(bits=bits, probability=1.0)
    ours = invariance.apply(images, invariance.draw(keys(20)))
    assert worst(ours, lambda row: reference.posterize(images[row], bits)) < ARITHMETIC


@EACH_SIZE
def test_sharpness(size: tuple[int, int]) -> None:
    images = pictures(8, *size)
    assert worst(sharpen(images, FACTORS), lambda r: reference.adjust_sharpness(images[r], float(FACTORS[r]))) < 2e-6


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_jpeg() -> None:
    """Pillow and torchvision may have other versions of the codec: two steps of 256 are allowed."""
    images, invariance = pictures(12, 20, 28), Jpeg(quality=(5, 95))
    drawn = invariance.draw(keys(12))
    stored = (images * 255).round().byte()
    ours = invariance.apply(images, drawn)
    assert worst(ours, lambda row: reference.jpeg(stored[row], int(drawn["quality"][row])) / 255) < 2.5 / 255


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_colour_matrix_is_the_operations_without_their_cuts_in_every_order(dtype: torch.dtype) -> None:
    """Mid tones are cut nowhere: brightness, contrast and saturation are torchvision's; the hue is its own matrix."""
    images = (pictures(240, 8, 8) * 0.1 + 0.45).to(dtype)
    invariance = ColorJitter(brightness=0.1, contrast=0.3, saturation=0.3, hue=0.2, method="matrix")
    drawn = invariance.draw(keys(240))
    assert len(drawn["order"].unique(dim=0)) == 24
    names = ("brightness", "contrast", "saturation")

    def theirs(row: int) -> Tensor:
        image = images[row]
        for number in drawn["order"][row].tolist():
            if number == 3:
                image = (hue_matrix(drawn["hue"][row : row + 1])[0].to(dtype) @ image.flatten(1)).view(image.shape)
            else:
                image = getattr(reference, f"adjust_{names[number]}")(image, float(drawn[names[number]][row]))
        return image

    ours = invariance.apply(images, drawn)
    assert ours.dtype == dtype
    assert worst(ours, theirs) < 2e-6
    grayed = [invariance, Grayscale(probability=0.5), invariance, Grayscale(probability=0.5)]
    parameters = draw_parameters(grayed, keys(240))
    single = images
    for each, numbers in zip(grayed, parameters, strict=True):
        single = each.apply(single, numbers)
    assert float((draw_view(images, grayed, keys(240)) - single).abs().max()) < 2e-6


def photographs() -> Tensor:
    """Pieces of the two photographs that scikit-learn brings along: (120,3,32,32)."""
    pieces = []
    for image in load_sample_images().images:
        small = np.asarray(Image.fromarray(image).resize((320, 192)))
        pieces.append(small.reshape(6, 32, 10, 32, 3).transpose(0, 2, 4, 1, 3).reshape(-1, 3, 32, 32))
    return torch.from_numpy(np.concatenate(pieces)).float() / 255


@pytest.mark.parametrize(
    ("invariance", "mean"),
    [
        (ColorJitter(brightness=0.4, contrast=0.0, saturation=0.0, hue=0.0, method="matrix"), 1e-6),
        (ColorJitter(brightness=0.0, contrast=0.3, saturation=0.0, hue=0.0, method="matrix"), 1e-6),
        (ColorJitter(brightness=0.0, contrast=0.0, saturation=0.3, hue=0.0, method="matrix"), 1e-6),
        (ColorJitter(brightness=0.0, contrast=0.0, saturation=0.0, hue=0.1, method="matrix"), 4.6 / 255),
        (ColorJitter(brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1, method="matrix"), 4.1 / 255),
    ],
    ids=["brightness", "contrast", "saturation", "hue", "SimCLR at 32 pixels"],
)
def test_the_error_of_the_colour_matrix_is_what_is_stated(invariance: ColorJitter, mean: float) -> None:
    images = photographs()
    drawn = invariance.draw(keys(len(images)))
    error = (invariance.apply(images, drawn) - jitter(images, drawn)).abs().mean()
    assert float(error) <= mean


@pytest.mark.parametrize(("strength", "mean"), [(0.5, 3.5 / 255), (1.0, 4.5 / 255)])
def test_the_error_of_simclr_colours_by_matrix_is_small_beside_what_they_change(strength: float, mean: float) -> None:
    """A jitter and grays as one matrix, as a list of invariances is applied."""
    amounts = dict.fromkeys(("brightness", "contrast", "saturation"), 0.8 * strength)
    exact = ColorJitter(**amounts, hue=0.2 * strength, probability=0.8)
    images = photographs()
    views = [
        draw_view(images, [exact.model_copy(update={"method": method}), Grayscale()], keys(len(images)))
        for method in ("exact", "matrix")
    ]
    error = float((views[1] - views[0]).abs().mean())
    assert error <= mean
    assert error < float((views[0] - images).abs().mean()) / 6
