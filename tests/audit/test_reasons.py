"""The rules of diagnosis, each on measures made so that it and nothing else holds."""

import pytest

from pipeline.audit import Audit
from pipeline.audit.evidence import SLACK
from pipeline.audit.judge import Measured, judge
from pipeline.audit.reasons import COSTLY, FLAT, POINT, STILL, diagnose
from pipeline.spec import parse

GOOD = {
    "spread.h": 0.4,
    "spread.z": 0.8,
    "spread.untrained": 0.05,
    "effective_rank.h": 20.0,
    "effective_rank.untrained": 6.0,
    "matching.h": 0.95,
    "matching.untrained": 0.3,
    "preserved.label.h": 0.9,
    "preserved.label.untrained": 0.5,
    "preserved.label.raw": 0.5,
    "preserved.label.cheap": 0.85,
    "detail.mark.h": 0.1,
    "detail.mark.untrained": 0.1,
    "costs.grayscale.label": 0.22,
    "costs.shift.label": 0.02,
    "movement.grayscale.h": 0.2,
    "movement.shift.h": 0.2,
}


def reasons(**changes):
    """Reasons of good measures with some changed; dots of a name written as __."""
    values = {**GOOD, **{name.replace("__", "."): value for name, value in changes.items()}}
    for name in ("label", "hue", "mark"):
        families = [family for family in ("preserved", "detail") if f"{family}.{name}.h" in values]
        for family in families:
            h, control = (values[f"{family}.{name}.{layer}"] for layer in ("h", "untrained"))
            values[f"gain.{name}"] = h - control
    measured = {
        name: Measured(None, note="not computable") if value is None else Measured(value, value - 0.01, value + 0.01)
        for name, value in values.items()
        if value != "gone"
    }
    return diagnose(measured)


def named(found):
    return [each["reason"] for each in found]


def test_a_good_space_has_no_reason():
    assert reasons() == []
    assert diagnose({}) == []


def test_one_point_is_a_full_collapse_and_nothing_else_is_told():
    (found,) = reasons(spread__h=0.0, effective_rank__h=None, matching__h=None, preserved__label__h=0.0)
    assert found["reason"] == "fully collapsed"
    assert "all vectors of h are one point" in found["sentence"]
    (found,) = reasons(spread__z=POINT / 2)
    assert "vectors of z" in found["sentence"]


def test_a_narrow_untrained_space_is_no_collapse():
    assert reasons(spread__h=POINT / 2, spread__untrained=POINT) == []
    assert reasons(effective_rank__h=2.0, effective_rank__untrained=2.1) == []


def test_few_directions_are_a_dimensional_collapse():
    (found,) = reasons(effective_rank__h=FLAT - 1, preserved__label__h=0.5, matching__h=0.2)
    assert found["reason"] == "dimensionally collapsed"
    assert f"{FLAT - 1:.1f} directions" in found["sentence"]
    assert reasons(effective_rank__h=FLAT + 0.1) == []


def test_no_better_than_before_is_untrained_like():
    (found,) = reasons(matching__h=0.3, preserved__label__h=0.5)
    assert found["reason"] == "untrained-like"
    assert "30 %" in found["sentence"]
    assert "label is read with skill 0.50 (untrained 0.50)" in found["sentence"]


def test_what_is_better_at_one_of_both_is_not_untrained():
    assert reasons(matching__h=0.3) == []
    assert named(reasons(matching__h=0.3 + SLACK + 0.05, preserved__label__h=0.5)) == ["wrongly invariant"]


def test_what_is_readable_instead_of_the_label_is_the_shortcut():
    (found,) = reasons(preserved__label__h=0.5, detail__mark__h=0.4)
    assert found["reason"] == "shortcut"
    assert found["sentence"].startswith("shortcut: mark is readable instead of the label")
    assert "detail.mark.h" in found["measures"]


def test_a_label_below_the_pixels_is_lacking_though_it_has_gained_and_a_cost_explains_nothing_then():
    (found,) = reasons(preserved__label__h=0.6, preserved__label__raw=0.75, detail__mark__h=0.17)
    assert found["reason"] == "shortcut"
    assert "mark is readable instead of the label" in found["sentence"]


def test_a_shortcut_that_no_column_tells_is_told_as_unknown():
    (found,) = reasons(preserved__label__h=0.5)
    assert "something that no label column tells" in found["sentence"]
    half = {"preserved__label__h": 0.5, "matching__h": 0.45, "costs__grayscale__label": "gone"}
    assert reasons(**half) == []  # half trained, and no sign of anything else


def test_a_detail_beside_a_label_that_is_read_is_no_shortcut():
    assert reasons(detail__mark__h=0.99) == []


def test_a_detail_that_training_has_added_more_of_than_a_label_that_cheap_probes_read_as_well_is_the_shortcut():
    level = {"preserved__label__h": 0.85, "preserved__label__untrained": 0.7}  # as cheap probes, and more than before
    (found,) = reasons(**level, detail__mark__h=0.4)
    assert found["reason"] == "shortcut"
    assert "training has added more of mark than of the label" in found["sentence"]
    assert reasons(**level, detail__mark__h=0.2) == []  # less was added of it than of the label
    assert reasons(**level, detail__mark__h=0.4, preserved__label__cheap=0.8) == []  # h is ahead of cheap probes


def test_a_label_that_an_invariance_erases_and_h_lacks_is_wrongly_invariant():
    (found,) = reasons(preserved__label__h=0.7)
    assert found["reason"] == "wrongly invariant"
    assert "label label is erased by the declared invariance grayscale" in found["sentence"]
    assert "22 %" in found["sentence"]


@pytest.mark.parametrize(
    "changes",
    [
        {"costs__grayscale__label": COSTLY},
        {"movement__grayscale__h": STILL + 0.05},
        {"preserved__label__cheap": 0.69},
        {"preserved__label__cheap": "gone"},
        {"movement__grayscale__h": None},
    ],
    ids=str,
)
def test_it_takes_a_cost_an_achieved_invariance_and_a_lack(changes):
    assert reasons(**{"preserved__label__h": 0.7, **changes}) == []


def test_a_preserved_name_that_training_took_away_is_lost():
    (found,) = reasons(preserved__hue__h=0.3, preserved__hue__untrained=0.6)
    assert found["reason"] == "lost"
    assert "hue is read with skill 0.30 (untrained 0.60)" in found["sentence"]


def test_a_declared_invariance_that_moves_h_far_is_not_achieved():
    (found,) = reasons(movement__grayscale__h=3.2, boundary__grayscale=0.1)
    assert found["reason"] == "not achieved"
    assert "grayscale moves h 3.2 times as far as another sample lies" in found["sentence"]
    assert reasons(movement__noise__h=3.2) == []  # a control may


def test_an_interval_that_touches_is_no_difference():
    near = {"preserved__label__h": 0.5 + SLACK + 0.005, "matching__h": 0.3}
    assert named(reasons(**near)) == ["untrained-like"]


def test_the_verdict_carries_its_reasons_whatever_was_demanded():
    thresholds = [{"measure": "effective_rank.h", "at_least": 1.0}]
    content = {"samples": 9, "neighbours": 1, "purity_at": [1], "thresholds": thresholds, "accept": []}
    audit = parse(content, Audit, "x.yaml", "audit")
    measured = {name: Measured(value) for name, value in {**GOOD, "spread.h": 0.0}.items()}
    verdict, gate = judge(audit, measured, "x")
    assert (verdict["verdict"], gate) == ("passed", "pass")
    assert named(verdict["reasons"]) == ["fully collapsed"]
