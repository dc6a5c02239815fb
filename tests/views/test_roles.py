"""Roles and presets: which views there are, what they are called in an error, and who is a partner of whom."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from small import SPACE, space

from pipeline.space import LatentSpace
from pipeline.spec import SpecError, parse
from pipeline.views.presets import PRESETS
from pipeline.views.roles import PartnerTable, with_partners

BLUR, GRAY, CUT = {"kind": "blur"}, {"kind": "grayscale"}, {"kind": "resized_crop"}
LOCAL = {"kind": "multi_crop", "global_crop": CUT, "local_crop": CUT, "local_views": 6, "local_scale": 3 / 7}


def told(**changes: Any) -> list[str]:
    with pytest.raises(SpecError) as caught:
        space(**changes)
    return str(caught.value).splitlines()


def written(**changes: Any) -> dict[str, Any]:
    return {**SPACE, "invariances": None, "views": None, **changes}


def test_shared_invariances_come_first_then_each_views_own() -> None:
    declared = space(invariances=[GRAY], views={"kind": "asymmetric", "first": [BLUR], "second": []})
    assert [[each.kind for each in declared.through(view)] for view in (0, 1)] == [["grayscale", "blur"], ["grayscale"]]
    assert [each.kind for each in declared.declared()] == ["grayscale", "blur"]
    assert [path for path, _ in declared.placed()] == ["invariances[0]", "views.first[0]"]


def test_local_views_are_smaller_and_cut_first() -> None:
    declared = space(invariances=[GRAY], views=LOCAL)
    whole, local = declared.roles()
    assert (whole.views, whole.size(224, 224)) == ((0, 1), (224, 224))
    assert (local.views, local.size(224, 224)) == ((2, 3, 4, 5, 6, 7), (96, 96))
    assert [each.kind for each in local.invariances] == ["resized_crop", "grayscale"]
    assert local.size(1, 5) == (1, 2)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_what_it_expands_to(name: str) -> None:
    short = parse(written(preset=name), LatentSpace, "x.yaml", "space")
    long = parse(written(**PRESETS[name]), LatentSpace, "x.yaml", "space")
    assert short == long
    assert short.identity() == long.identity()
    assert short.preset is None
    assert short.model_dump(mode="json")["invariances"][0]["kind"]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"preset": "simclr32"}, "x.yaml: space.preset = \"simclr32\": no such preset; did you mean 'simclr_32'?"),
        ({"preset": 3}, "x.yaml: space.preset = 3: no such preset; known: byol, moco_v2, multi_crop, "),
        (
            {"preset": "byol", "views": {"kind": "pair"}},
            'x.yaml: space.views = {"kind": "pair"}: must be null: preset byol says it; or set preset to null and',
        ),
        ({"invariances": None}, "x.yaml: space.invariances = null: must be a list"),
        (
            {"views": {"kind": "asymetric"}},
            "x.yaml: space.views.kind = \"asymetric\": unknown kind; did you mean 'asymmetric'?",
        ),
        (
            {"views": {"kind": "asymmetric", "first": [BLUR], "second": [BLUR]}},
            'x.yaml: space.views.second = [{"kind": "blur"}]: the same as first, so the views do not differ; use {kin',
        ),
        (
            {"invariances": [], "views": {"kind": "asymmetric", "first": [BLUR], "second": []}},
            "x.yaml: space.invariances = []: must have at least 1 item(s), or a view is the picture itself",
        ),
        ({"views": {**LOCAL, "local_scale": 1.0}}, "x.yaml: space.views.local_scale = 1.0: must be less than 1"),
        (
            {"views": {**LOCAL, "local_views": 0}},
            "x.yaml: space.views.local_views = 0: must be greater than or equal to 1",
        ),
        ({"views": {**LOCAL, "local_crop": BLUR}}, 'x.yaml: space.views.local_crop.kind = "blur": unknown kind; '),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_is_wrong_with_the_views_is_told_at_its_place(changes: dict[str, Any], line: str) -> None:
    lines = told(**({"invariances": None, "views": None, **changes} if "preset" in changes else changes))
    assert lines[0].startswith(line)
    assert len(lines) == 1


codes = st.lists(st.integers(0, 6), min_size=2, max_size=60).map(np.array)


@given(codes=codes, seed=st.integers(0, 9), epoch=st.integers(0, 9))
def test_a_partner_is_another_row_of_the_same_value(codes: np.ndarray, seed: int, epoch: int) -> None:
    rows = with_partners(codes)
    assert rows.tolist() == [row for row, code in enumerate(codes) if (codes == code).sum() > 1]
    chosen = PartnerTable(codes).of(rows, seed, epoch)
    assert (codes[chosen] == codes[rows]).all()
    assert (chosen != rows).all()
    for place, row in enumerate(rows):  # a row's partner does not depend on the rows beside it
        assert PartnerTable(codes).of(np.array([row]), seed, epoch) == chosen[place]


def test_all_partners_are_equally_likely() -> None:
    codes = np.array([0, 1, 0, 1, 0, 1, 0])
    counts = np.zeros((7, 7), int)
    for epoch in range(2000):
        counts[np.arange(7), PartnerTable(codes).of(np.arange(7), 0, epoch)] += 1
    for row in range(7):
        same = [other for other in range(7) if codes[other] == codes[row] and other != row]
        assert counts[row].sum() == counts[row, same].sum() == 2000
        assert stats.chisquare(counts[row, same]).pvalue > 1e-4


def test_a_row_alone_has_no_partner() -> None:
    with pytest.raises(ValueError, match="row 1 has no partner"):
        PartnerTable(np.array([0, 5, 0])).of(np.array([0, 1]), 0, 0)
