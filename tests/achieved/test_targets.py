"""What was drawn, as a question: every family of parameters, and only where they had an effect."""

import pytest
import torch

from pipeline.achieved.targets import targets
from pipeline.keys import Keys
from pipeline.views import (
    Affine,
    Blur,
    CentreCrop,
    ChannelGain,
    Choose,
    ColorJitter,
    ColorMatrix,
    Compose,
    Erase,
    Grayscale,
    HorizontalFlip,
    Hue,
    Maybe,
    Noise,
    Perspective,
    Repeat,
    ResizedCrop,
    RightAngle,
    Rotation,
    Shift,
    apply_view,
)

N = 200
IMAGES = torch.rand(N, 3, 16, 16, generator=torch.Generator().manual_seed(0))


def asked(invariance):
    drawn = invariance.draw(Keys.of(0, 0, range(N)))
    return {each.name: each for each in targets(invariance, drawn, IMAGES, apply_view(IMAGES, [invariance], [drawn]))}


@pytest.mark.parametrize(
    ("invariance", "kinds"),
    [
        (Shift(pixels=2), {"shift": "number"}),
        (RightAngle(), {"turns": "class"}),
        (HorizontalFlip(), {"flipped": "class"}),
        (Grayscale(probability=0.5), {"gray": "class"}),
        (Hue(amount=0.5), {"turn": "number"}),
        (Blur(), {"sigma": "number"}),
        (Noise(), {"std": "number"}),
        (Perspective(distortion=0.3), {"corners": "number"}),
        (ResizedCrop(), {"centre": "number", "area": "number", "aspect": "number"}),
        (Erase(probability=1.0, area=(0.1, 0.2), ratio=(1.0, 1.0)), {"centre": "number"}),
        (
            ColorJitter(brightness=0.4, contrast=0.4, saturation=0, hue=0),
            {"brightness": "number", "contrast": "number"},
        ),
        (Affine(degrees=0, pixels=0, scale=(0.7, 1.4), shear=0), {"scale": "number"}),
        (ChannelGain(amount=0.3), {"channel_means": "number"}),
        (ColorMatrix(spread=0.2), {"channel_means": "number"}),
        (CentreCrop(share=1.0), {}),
    ],
    ids=lambda each: getattr(each, "kind", ""),
)
def test_every_invariance_says_what_can_be_asked_of_it(invariance, kinds):
    assert {name: each.kind for name, each in asked(invariance).items()} == kinds


def test_an_angle_is_a_point_of_the_circle():
    values = asked(Rotation(degrees=180))["degrees"].values
    torch.testing.assert_close(values.square().sum(1), torch.ones(N, dtype=torch.float64))


def test_a_part_that_was_not_chosen_does_not_count():
    invariance = Choose(of=(Shift(pixels=2), Blur(sigma=(0.5, 1.0), probability=1.0)), weights=(1.0, 3.0))
    found = asked(invariance)
    assert set(found) == {"chosen", "shift.shift", "blur.sigma"}
    torch.testing.assert_close(found["shift.shift"].counts, found["chosen"].values == 0)
    torch.testing.assert_close(found["blur.sigma"].counts, found["chosen"].values == 1)


def test_parts_of_parts_are_named_by_their_way():
    found = asked(Compose(of=(Maybe(of=Rotation(degrees=90), probability=0.5), RightAngle())))
    assert set(found) == {"maybe.acts", "maybe.rotation.degrees", "right_angle.turns"}
    torch.testing.assert_close(found["maybe.rotation.degrees"].counts, found["maybe.acts"].values == 1)


def test_of_what_is_repeated_only_the_change_is_asked():
    assert set(asked(Repeat(of=Shift(pixels=2), times=2))) == {"channel_means"}
