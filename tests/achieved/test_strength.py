"""Names, strengths and controls: what is looked at, and how strongly."""

import pytest
import torch
from small import ROOT

from pipeline.achieved.controls import controls
from pipeline.achieved.names import named
from pipeline.achieved.strength import STRENGTHS, always, balanced, scales, weakened
from pipeline.images import Input
from pipeline.keys import Keys
from pipeline.modalities.image_controls import family, mover
from pipeline.views import (
    OF_PICTURES,
    Blur,
    Choose,
    Code,
    ColorJitter,
    Compose,
    Grayscale,
    HorizontalFlip,
    Jpeg,
    Maybe,
    Repeat,
    Resize,
    ResizedCrop,
    RightAngle,
    Rotation,
    Shift,
    draw_view,
    removed,
)

SCALED = [Shift(pixels=2), Rotation(degrees=15), ResizedCrop(), Blur(), Jpeg(quality=(10, 60))]
EITHER = [HorizontalFlip(), RightAngle(), Grayscale(), Resize()]
VIGNETTE = str(ROOT / "specs" / "examples" / "code" / "vignette.py")


def test_two_of_a_kind_are_told_apart_by_their_number():
    first, second, shift = Blur(sigma=(0.1, 1.0)), Blur(sigma=(1.0, 2.0)), Shift(pixels=1)
    assert named([first, shift, second]) == {"blur_1": first, "shift": shift, "blur_2": second}
    assert list(named([shift])) == ["shift"]


@pytest.mark.parametrize("invariance", SCALED, ids=lambda each: each.kind)
def test_what_has_a_strength_is_looked_at_four_times_and_always_acts(invariance):
    found = weakened(invariance)
    assert [strength for strength, _ in found] == list(STRENGTHS)
    assert found[-1][1] == always(invariance)
    assert all(getattr(weaker, "probability", 1.0) == 1.0 for _, weaker in found)


@pytest.mark.parametrize("invariance", EITHER, ids=lambda each: each.kind)
def test_what_only_acts_or_does_not_is_looked_at_once(invariance):
    assert not scales(invariance)
    ((strength, weaker),) = weakened(invariance)
    assert (strength, weaker) == (1.0, always(invariance))


def test_a_combinator_has_a_strength_if_a_part_has_one():
    flip, shift = HorizontalFlip(), Shift(pixels=1)
    assert scales(Compose(of=(flip, shift)))
    assert scales(Choose(of=(flip, shift), weights=(1.0, 1.0)))
    assert not scales(Maybe(of=flip, probability=0.2))
    assert scales(Repeat(of=shift, times=2))
    assert always(Maybe(of=Blur(), probability=0.2)) == Maybe(of=always(Blur()), probability=1.0)
    assert always(Choose(of=(flip, shift), weights=(1.0, 1.0))).of[0].probability == 1.0


def test_user_code_without_at_only_acts_or_does_not(tmp_path):
    plain = tmp_path / "plain.py"
    plain.write_text(
        "class Dim:\n    def draw(self, keys):\n        return {}\n"
        "    def apply(self, images, parameters):\n        return images * 0.5\n"
    )
    assert not scales(Code(file=str(plain), name="Dim", removes=frozenset({"brightness"})))
    code = Code(file=VIGNETTE, name="Vignette", arguments={"amount": 0.2}, removes=frozenset({"brightness"}))
    assert scales(code) == hasattr(code.built, "at")


def test_what_only_acts_or_does_not_acts_on_half_of_the_pictures_when_it_is_asked_about():
    assert balanced(Grayscale(probability=0.2)).probability == 0.5
    assert balanced(RightAngle(probability=0.3)).probability == 1.0
    assert balanced(Blur(probability=0.3)).probability == 1.0
    assert balanced(Maybe(of=Blur(probability=0.3), probability=0.9)) == Maybe(
        of=Blur(probability=1.0), probability=0.5
    )


@pytest.mark.parametrize("channels", [1, 3, 5])
def test_a_control_removes_no_declared_factor_and_fits_the_canvas(channels):
    declared = [Shift(pixels=1), ColorJitter(brightness=0.2, contrast=0, saturation=0, hue=0)]
    used, left_out = controls(declared, Input(channels=channels, height=16, width=16, fit="pad"))
    assert set(used) | set(left_out) == {each.kind for each in family((channels, 16, 16))}
    assert not removed(used.values()) & removed(declared)
    assert "position" in left_out["shift"]
    assert ("hue" in used) == (channels == 3)
    keys = Keys.of(0, 0, range(2))
    images = torch.rand(2, channels, 16, 16)
    for control in used.values():
        assert draw_view(images, [control], keys).shape == images.shape


def test_every_factor_that_a_transformation_moves_is_removed_by_it():
    for factor in set(OF_PICTURES) - {"border"}:
        transformation, _ = mover(factor, (3, 16, 16))
        assert factor in transformation.removes
    assert mover("border", (3, 16, 16)) is None
