"""Neighbouring motions are one map and one resampling; everything else is applied in the order of the list."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from pipeline.keys import Keys
from pipeline.spec import Refusal
from pipeline.views import (
    Affine,
    Brightness,
    ColorJitter,
    Grayscale,
    HorizontalFlip,
    Hue,
    Noise,
    Perspective,
    ResizedCrop,
    RightAngle,
    Rotation,
    Saturation,
    Shift,
    VerticalFlip,
    apply_view,
    draw_parameters,
    draw_view,
)


def smooth(count: int, size: int = 32) -> Tensor:
    """A soft, one-sided blob well inside the canvas, on black: resampling blurs it little and edges do not cut it."""
    place = torch.linspace(-1, 1, size)
    blob = torch.exp(-(((place[None] - 0.1) / 0.2) ** 2) - ((place[:, None] + 0.05) / 0.3) ** 2)
    return (blob * (1 + 0.5 * torch.tanh(6 * place)[None]) / 1.5).expand(count, 1, size, size)


def keys(count: int) -> Keys:
    return Keys.of(0, 0, np.arange(count))


def ramps(count: int, size: int = 32) -> Tensor:
    """Two channels that rise evenly to the right and down: bilinear values are exact and tell whence they came."""
    place = torch.linspace(0, 1, size)
    return torch.stack([place.expand(size, size), place[:, None].expand(size, size)]).expand(count, -1, -1, -1)


def inner(images: Tensor, edge: int = 10) -> Tensor:
    """The part that nothing from beyond the canvas has reached."""
    return images[..., edge:-edge, edge:-edge]


def test_fused_motions_are_their_composition() -> None:
    motions = [Shift(pixels=2), Rotation(degrees=20), HorizontalFlip(), RightAngle(), VerticalFlip(), Shift(pixels=1)]
    drawn = draw_parameters(motions, keys(60))
    single = ramps(60)
    for motion, parameters in zip(motions, drawn, strict=True):
        single = motion.apply(single, parameters)
    fused = apply_view(ramps(60), motions, drawn)
    assert torch.allclose(inner(fused), inner(single), atol=1e-5)
    assert not torch.allclose(inner(fused), inner(ramps(60)), atol=0.1)


def test_fusing_keeps_the_sharpness_of_one_resampling() -> None:
    """A shift by half a pixel and back by half a pixel is nothing, where two resamplings would blur."""
    images = torch.rand(4, 1, 12, 12, generator=torch.Generator().manual_seed(0))
    there, back = torch.full((4, 2), 0.5), torch.full((4, 2), -0.5)
    shift = Shift(pixels=1)
    assert torch.equal(apply_view(images, [shift, shift], [{"shift": there}, {"shift": back}]), images)
    twice = shift.apply(shift.apply(images, {"shift": there}), {"shift": back})
    assert float((twice - images).abs().max()) > 0.1


def test_the_order_of_motions_matters() -> None:
    images = smooth(1)
    shift, rotation = {"shift": torch.tensor([[6.0, 0.0]])}, {"degrees": torch.tensor([90.0])}
    first = apply_view(images, [Shift(pixels=6), Rotation(degrees=90)], [shift, rotation])
    second = apply_view(images, [Rotation(degrees=90), Shift(pixels=6)], [rotation, shift])
    # moved right, then turned counter-clockwise: the blob ends at the top; turned first, it ends at the right
    rows, columns = (image[0, 0].sum(axis).argmax() for image, axis in ((first, 1), (second, 0)))
    assert int(rows) < 12
    assert int(columns) > 18


def test_motions_with_other_fills_are_not_fused() -> None:
    images = smooth(3, 12)
    motions = [Shift(pixels=5, fill=1.0), Rotation(degrees=45, fill=0.0)]
    drawn = draw_parameters(motions, keys(3))
    single = motions[1].apply(motions[0].apply(images, drawn[0]), drawn[1])
    assert torch.equal(apply_view(images, motions, drawn), single)


def test_motions_on_both_sides_of_a_colour_operation_stay_in_place() -> None:
    images = torch.rand(5, 3, 12, 12, generator=torch.Generator().manual_seed(0))
    invariances = [Shift(pixels=3), Brightness(amount=0.5), Rotation(degrees=30)]
    drawn = draw_parameters(invariances, keys(5))
    single = images
    for invariance, parameters in zip(invariances, drawn, strict=True):
        single = invariance.apply(single, parameters)
    assert torch.allclose(apply_view(images, invariances, drawn), single, atol=1e-6)


def test_an_empty_list_changes_nothing() -> None:
    images = torch.rand(2, 3, 5, 5)
    assert torch.equal(draw_view(images, [], keys(2)), images)


@pytest.mark.parametrize("fill", [0.0, 0.3, 1.0])
def test_what_comes_in_at_the_edges_is_the_fill(fill: float) -> None:
    images = torch.rand(1, 2, 8, 8)
    moved = Shift(pixels=3, fill=fill).apply(images, {"shift": torch.tensor([[3.0, 0.0]])})
    assert torch.allclose(moved[..., :3], torch.tensor(fill), atol=1e-6)
    assert torch.allclose(moved[..., 3:], images[..., :-3], atol=1e-6)
    turned = Rotation(degrees=45, fill=fill).apply(images, {"degrees": torch.tensor([45.0])})
    assert torch.allclose(turned[..., 0, 0], torch.tensor(fill), atol=1e-6)


def test_what_is_said_to_be_invertible_is_undone_by_its_own_kind() -> None:
    images, colours = smooth(6), torch.rand(6, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    there = {"shift": torch.tensor([[2.5, -1.0]]).repeat(6, 1)}
    back = {"shift": -there["shift"]}
    shift, rotation, hue = Shift(pixels=3), Rotation(degrees=180), Hue(amount=0.5)
    assert torch.allclose(inner(shift.apply(shift.apply(ramps(6), there), back)), inner(ramps(6)), atol=1e-5)
    there = {"degrees": torch.tensor([0.0, 5.0, 30.0, -80.0, 90.0, 179.0])}
    back = {"degrees": -there["degrees"]}
    assert torch.allclose(inner(rotation.apply(rotation.apply(ramps(6), there), back)), inner(ramps(6)), atol=1e-5)
    quarter = {"turns": torch.arange(6) % 4}
    undone = RightAngle().apply(RightAngle().apply(images, quarter), {"turns": (4 - quarter["turns"]) % 4})
    assert torch.equal(undone, images)
    for mirror in (HorizontalFlip(probability=1.0), VerticalFlip(probability=1.0)):
        drawn = mirror.draw(keys(6))
        assert torch.equal(mirror.apply(mirror.apply(images, drawn), drawn), images)
    affine = Affine(degrees=30, pixels=3, scale=(0.5, 2.0), shear=0)
    there = {"degrees": torch.full((6,), 30.0), "scale": torch.full((6,), 1.25), "shear": torch.zeros(6)}
    there["shift"] = torch.zeros(6, 2)
    back = {**there, "degrees": -there["degrees"], "scale": 1 / there["scale"]}
    assert torch.allclose(inner(affine.apply(affine.apply(ramps(6), there), back)), inner(ramps(6)), atol=1e-5)
    there = {"turn": torch.tensor([0.1, -0.2, 0.5, 0.33, 0.0, -0.4])}
    back = {"turn": -there["turn"]}
    assert torch.allclose(hue.apply(hue.apply(colours, there), back), colours, atol=1e-5)


def test_what_turns_and_shears_at_once_is_said_to_be_no_group() -> None:
    """Of R(a) N(t) the inverse N(-t) R(-a) is of the kind only for a = 0, t = 0 or t = 2 / tan a."""
    assert Affine(degrees=30, pixels=3, scale=(0.5, 2.0), shear=0).group
    sheared = Affine(degrees=30, pixels=0, scale=(1.0, 1.0), shear=20)
    assert not sheared.group
    assert not sheared.invertible
    assert not Perspective(distortion=0.3).invertible
    parameters = {"degrees": torch.tensor([30.0]), "shift": torch.zeros(1, 2)}
    parameters |= {"scale": torch.ones(1), "shear": torch.tensor([20.0])}
    inverse = sheared.matrix(parameters, 9, 9)[0, :2, :2].double().inverse()
    closest = min(
        float(
            (sheared.matrix({**parameters, "degrees": a, "shear": t}, 9, 9)[0, :2, :2].double() - inverse).abs().max()
        )
        for a in torch.arange(-180.0, 180.0, 5.0)[:, None]
        for t in torch.arange(-80.0, 81.0, 5.0)[:, None]
    )
    assert closest > 0.05


def test_noise_is_what_it_says() -> None:
    images = torch.full((50, 3, 20, 20), 0.5)
    invariance = Noise(std=(0.05, 0.05))
    change = invariance.apply(images, invariance.draw(keys(50))) - images
    assert abs(float(change.mean())) < 1e-3
    assert abs(float(change.std()) - 0.05) < 1e-3
    assert len(change.flatten(1).unique(dim=0)) == 50


def test_colour_operations_refuse_other_data_than_three_channels() -> None:
    for channels in (1, 2, 4):
        images = torch.rand(2, channels, 6, 6)
        for invariance in (Saturation(amount=0.1), Hue(amount=0.1), Grayscale()):
            reason = invariance.channels_fault(channels)
            assert reason == f"needs 3 channels (red, green, blue), the data has {channels}"
            with pytest.raises(Refusal, match=f"invariance {invariance.kind}: needs 3 channels"):
                draw_view(images, [invariance], keys(2))
        light = ColorJitter(brightness=0.4, contrast=0.4, saturation=0.0, hue=0.0)
        assert light.channels_fault(channels) is None
        assert light.removes == {"brightness", "contrast"}
        assert draw_view(images, [light], keys(2)).shape == images.shape
        assert ColorJitter(brightness=0.4, contrast=0.4, saturation=0.1, hue=0.0).channels_fault(channels)


def test_images_that_a_motion_cannot_take_are_refused() -> None:
    with pytest.raises(Refusal, match=r"right_angle: needs square images, the data is 6 x 8; use horizontal_flip"):
        draw_view(torch.rand(2, 3, 6, 8), [RightAngle()], keys(2))
    with pytest.raises(Refusal, match=r"shift: pixels = 6 moves a picture of 6 x 8 off its canvas; use less"):
        draw_view(torch.rand(2, 3, 6, 8), [Shift(pixels=6)], keys(2))


def test_what_is_no_batch_of_images_is_an_error() -> None:
    with pytest.raises(ValueError, match="floating point or uint8, not"):
        draw_view(torch.zeros(2, 3, 6, 8, dtype=torch.int64), [], keys(2))
    with pytest.raises(ValueError, match="parameters of other than 2 images"):
        draw_view(torch.rand(2, 3, 6, 8), [HorizontalFlip()], keys(3))


def test_large_batches_are_worked_on_in_blocks_without_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    images = torch.rand(20, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    invariances = [ResizedCrop(), Shift(pixels=2), Grayscale()]
    whole = draw_view(images, invariances, keys(20))
    monkeypatch.setattr("pipeline.views.sequence.BLOCK", 3 * 3 * 8 * 8)
    assert torch.allclose(draw_view(images, invariances, keys(20)), whole, atol=1e-6)
