"""Invariances in YAML: what is out of bounds is told with its path; factor names match label columns."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.spec import Spec, SpecError, parse
from pipeline.views import FACTORS, MEANINGS, OF_MODALITY, SYNONYMS, Invariance, factor
from pipeline.views.factors import OF_MODALITY as FACTORS_OF


class Holder(Spec):
    """Stands in for the space: a list of invariances."""

    invariances: tuple[Invariance, ...]


def read(*invariances: dict[str, Any]) -> Holder:
    return parse({"invariances": list(invariances)}, Holder, "a.yaml", "space")


def test_a_list_of_invariances_is_read_in_order() -> None:
    read_back = read({"kind": "shift", "pixels": 2}, {"kind": "rotation", "degrees": 15}).invariances
    assert [invariance.kind for invariance in read_back] == ["shift", "rotation"]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ({"kind": "shift", "pixels": -1}, "space.invariances[0].pixels = -1: must be greater than or equal to 0"),
        ({"kind": "rotation", "degrees": 181}, "space.invariances[0].degrees = 181: must be less than or equal to 180"),
        ({"kind": "rotation"}, "space.invariances[0].degrees: missing"),
        (
            {"kind": "horizontal_flip", "probability": 1.5},
            "space.invariances[0].probability = 1.5: must be less than or equal to 1",
        ),
        ({"kind": "resized_crop", "area": [0, 1]}, "space.invariances[0].area = [0, 1]: must be two parts of the area"),
        ({"kind": "resized_crop", "area": [0.9, 0.5]}, "space.invariances[0].area = [0.9, 0.5]: must be two parts"),
        ({"kind": "resized_crop", "ratio": [0, 1]}, "space.invariances[0].ratio = [0, 1]: must be two ratios above 0"),
        ({"kind": "blur", "sigma": [2, 1]}, "space.invariances[0].sigma = [2, 1]: must be two widths in pixels"),
        ({"kind": "noise", "std": [-1, 1]}, "space.invariances[0].std = [-1, 1]: must be two standard deviations"),
        ({"kind": "hue", "amount": 0.6}, "space.invariances[0].amount = 0.6: must be less than or equal to 0.5"),
        ({"kind": "rotatoin", "degrees": 1}, "unknown kind; did you mean 'rotation'?"),
        ({"kind": "shift", "pixel": 1, "pixels": 1}, "unknown key; did you mean 'pixels'?"),
    ],
    ids=str,
)
def test_what_is_out_of_bounds_is_told_with_its_path(content: dict[str, Any], line: str) -> None:
    with pytest.raises(SpecError) as caught:
        read(content)
    assert line in str(caught.value)
    assert len(caught.value.faults) == 1


def test_names_of_label_columns_are_found_among_the_factors() -> None:
    assert {name: factor(name) for name in ("hue", "size", "position", "rotation", "texture", "shape", "label")} == {
        "hue": "hue",
        "size": "scale",
        "position": "position",
        "rotation": "orientation",
        "texture": "texture",
        "shape": None,
        "label": None,
    }
    assert factor("background_texture") == "texture"
    assert factor("Background Texture") == "texture"
    assert factor("position_x") == "position"


@pytest.mark.parametrize("modality", ["image", "audio", "series"])
def test_the_factors_of_a_modality_are_those_that_something_declared_of_it_removes(modality: str) -> None:
    removed: set[str] = set()
    for kind in OF_MODALITY[modality]:
        needed = {"Affine": {"degrees": 5, "pixels": 1, "scale": (0.9, 1.1), "shear": 5}}
        needed["ColorJitter"] = dict.fromkeys(("brightness", "contrast", "saturation", "hue"), 0.1)
        of_all = kind.removes  # type: ignore[attr-defined]
        removed |= of_all if isinstance(of_all, frozenset) else kind(**needed.get(kind.__name__, {})).removes
    assert removed == FACTORS_OF[modality]


def test_the_words_for_factors_are_consistent() -> None:
    assert frozenset(MEANINGS) == FACTORS
    assert set(SYNONYMS.values()) <= FACTORS
    assert not set(SYNONYMS) & FACTORS
    assert all(factor(name) == name for name in FACTORS)
