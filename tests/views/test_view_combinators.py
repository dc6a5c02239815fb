"""Combinators make new invariances in YAML: what they do follows from what their parts do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter
from torch import Tensor

from pipeline.keys import Keys
from pipeline.spec import Refusal, Spec, SpecError, parse
from pipeline.views import (
    Blur,
    Brightness,
    Choose,
    Compose,
    Erase,
    Grayscale,
    HorizontalFlip,
    Hue,
    Invariance,
    Maybe,
    Repeat,
    RightAngle,
    Rotation,
    Shift,
    apply_view,
    draw_view,
)


class Holder(Spec):
    """Stands in for the space: a list of invariances."""

    invariances: tuple[Invariance, ...]


def pictures(count: int) -> Tensor:
    return Keys.of(5, 0, np.arange(count)).uniform("pixels", shape=(3, 12, 12))


def keys(count: int) -> Keys:
    return Keys.of(0, 0, np.arange(count))


def test_composing_is_listing_with_the_keys_of_the_place() -> None:
    parts = (Shift(pixels=2), Hue(amount=0.2), Rotation(degrees=10), HorizontalFlip())
    composed = draw_view(pictures(20), [Compose(of=parts)], keys(20))
    assert torch.equal(composed, draw_view(pictures(20), parts, keys(20).fold(0)))


def test_motions_within_a_composition_are_resampled_once() -> None:
    shift = Shift(pixels=1)
    composed = Compose(of=(shift, shift))
    back_and_forth = {"0.shift": torch.full((20, 2), 0.5), "1.shift": torch.full((20, 2), -0.5)}
    assert torch.equal(apply_view(pictures(20), [composed], [back_and_forth]), pictures(20))


def test_one_is_chosen_as_often_as_its_weight_says() -> None:
    count = 6000
    parts = tuple(Brightness(amount=0.0, probability=1.0) for _ in range(4))
    chosen = Choose(of=parts, weights=(1, 0, 2, 0)).draw(keys(count))["chosen"]
    shares = torch.bincount(chosen, minlength=4) / count
    assert torch.allclose(shares, torch.tensor([1 / 3, 0, 2 / 3, 0]), atol=0.03)
    assert shares[1] == shares[3] == 0


def test_a_choice_applies_the_chosen_one_alone() -> None:
    parts = (Grayscale(probability=1.0), HorizontalFlip(probability=1.0))
    invariance = Choose(of=parts, weights=(1, 1))
    drawn = invariance.draw(keys(30))
    view = invariance.apply(pictures(30), drawn)
    for number, part in enumerate(parts):
        rows = (drawn["chosen"] == number).nonzero().flatten()
        assert 5 < len(rows) < 25
        assert torch.equal(view[rows], draw_view(pictures(30), [part], keys(30))[rows])


def test_maybe_applies_its_part_with_its_probability() -> None:
    invariance = Maybe(of=HorizontalFlip(probability=1.0), probability=0.3)
    drawn = invariance.draw(keys(3000))
    assert abs(float(drawn["acts"].float().mean()) - 0.3) < 0.03
    view = invariance.apply(pictures(3000), drawn)
    expected = torch.where(drawn["acts"][:, None, None, None], pictures(3000).flip(-1), pictures(3000))
    assert torch.equal(view, expected)


def test_repeating_draws_anew_each_time() -> None:
    invariance = Repeat(of=Erase(area=(0.05, 0.05), ratio=(1.0, 1.0), probability=1.0, fill=1.0), times=4)
    drawn = invariance.draw(keys(20))
    assert not torch.equal(drawn["0.top"], drawn["1.top"])
    black = torch.zeros(20, 3, 12, 12)
    four, one = invariance.apply(black, drawn), invariance.of.apply(black, invariance.of.draw(keys(20)))
    assert float(four.mean()) > 2.5 * float(one.mean())


def test_what_a_combinator_removes_is_what_its_parts_remove() -> None:
    parts = (Hue(amount=0.1), Blur())
    for invariance in (Compose(of=parts), Choose(of=parts, weights=(1, 1)), Maybe(of=Compose(of=parts), probability=1)):
        assert invariance.removes == {"hue", "texture", "sharpness"}
        assert not invariance.invertible
    assert Repeat(of=Shift(pixels=1), times=2).invertible


def test_combinators_nest_in_yaml() -> None:
    content: dict[str, Any] = {
        "kind": "choose",
        "weights": [1, 3],
        "of": [
            {"kind": "maybe", "probability": 0.5, "of": {"kind": "repeat", "times": 2, "of": {"kind": "blur"}}},
            {"kind": "compose", "of": [{"kind": "shift", "pixels": 1}, {"kind": "solarize"}]},
        ],
    }
    (read,) = parse({"invariances": [content]}, Holder, "a.yaml", "space").invariances
    assert TypeAdapter(Invariance).validate_json(read.model_dump_json()) == read
    assert draw_view(pictures(9), [read], keys(9)).shape == (9, 3, 12, 12)
    assert "Choose" in TypeAdapter(Invariance).json_schema()["$defs"]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ({"kind": "compose", "of": []}, "space.invariances[0].of = []"),
        ({"kind": "choose", "of": [{"kind": "blur"}, {"kind": "noise"}], "weights": [1]}, "as many as what is chosen"),
        ({"kind": "choose", "of": [{"kind": "blur"}, {"kind": "noise"}], "weights": [0, 0]}, "one of them above 0"),
        ({"kind": "maybe", "of": {"kind": "blur"}, "probability": 2}, "space.invariances[0].probability = 2"),
        ({"kind": "repeat", "of": {"kind": "blur"}, "times": 0}, "space.invariances[0].times = 0"),
        (
            {"kind": "maybe", "of": {"kind": "blurr"}, "probability": 1},
            "space.invariances[0].of.kind = \"blurr\": unknown kind; did you mean 'blur'?",
        ),
        (
            {"kind": "compose", "of": [{"kind": "hue", "amount": 0.1}, {"kind": "hue", "amount": 7}]},
            "space.invariances[0].of[1].amount = 7",
        ),
    ],
    ids=str,
)
def test_faults_inside_combinators_are_told_with_their_path(content: dict[str, Any], line: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse({"invariances": [content]}, Holder, "a.yaml", "space")
    assert line in str(caught.value)


def test_data_that_a_part_cannot_take_is_refused_with_the_part_named() -> None:
    nested = Maybe(of=Compose(of=(Shift(pixels=1), Hue(amount=0.1))), probability=0.5)
    with pytest.raises(Refusal, match="invariance maybe: compose hue needs 3 channels"):
        draw_view(torch.rand(2, 1, 8, 8), [nested], keys(2))
    with pytest.raises(Refusal, match="invariance repeat: right_angle needs square images"):
        draw_view(torch.rand(2, 1, 8, 9), [Repeat(of=RightAngle(), times=2)], keys(2))
