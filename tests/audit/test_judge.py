"""Judgement: a truth table, and the words that a threshold may use."""

import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import probes
from pipeline.audit import Audit, Threshold, column_of, probed, range_of
from pipeline.audit.judge import Measured, judge, ruling
from pipeline.spec import Refusal, SpecError, parse

numbers = st.floats(-10, 10)
RANK, ALIGN = "effective_rank.h", "alignment.z"


def audit(*thresholds, accept=()):
    content = {
        "samples": 2000,
        "neighbours": 10,
        "purity_at": [1, 5],
        "thresholds": list(thresholds),
        "accept": list(accept),
    }
    return parse(content, Audit, "specs/x.yaml", "audit")


def faults(*thresholds, accept=()):
    with pytest.raises(SpecError) as caught:
        audit(*thresholds, accept=accept)
    return [str(fault) for fault in caught.value.faults]


@given(numbers, st.tuples(numbers, numbers, numbers))
def test_at_least_rules_by_where_the_whole_interval_lies(bound, three):
    low, value, high = sorted(three)
    expected = "passed" if low >= bound else "failed" if high < bound else "inconclusive"
    assert ruling(Measured(value, low, high), bound, None) == expected


@given(numbers, st.tuples(numbers, numbers, numbers))
def test_at_most_is_the_mirror_image_of_at_least(bound, three):
    low, value, high = sorted(three)
    mirrored = ruling(Measured(-value, -high, -low), -bound, None)
    assert ruling(Measured(value, low, high), None, bound) == mirrored


@given(numbers, numbers)
def test_a_value_without_an_interval_decides_alone(bound, value):
    assert ruling(Measured(value), bound, None) == ("passed" if value >= bound else "failed")
    assert ruling(Measured(value), None, bound) == ("passed" if value <= bound else "failed")


def test_what_cannot_be_computed_has_not_been_reached():
    assert ruling(Measured(None, note="not computable: all rows are equal"), 0.0, None) == "failed"


@given(st.lists(st.sampled_from(["passed", "failed", "inconclusive"]), max_size=3), st.sets(st.integers(0, 2)))
def test_the_verdict_is_the_worst_row_and_the_gate_shuts_on_open_failures(rulings, accepted):
    names = [RANK, "participation_ratio.h", "participation_ratio.z"]
    intervals = {"passed": (5, 7), "failed": (1, 2), "inconclusive": (3, 5)}
    measured = {name: Measured(4.0, *intervals[word]) for name, word in zip(names, rulings, strict=False)}
    asked = [{"measure": name, "at_least": 4} for name in measured]
    waived = [{"measure": name, "reason": "known"} for at, name in enumerate(measured) if at in accepted]
    verdict, gate = judge(audit(*asked, accept=waived), measured, "x")
    worst = next((word for word in ("failed", "inconclusive") if word in rulings), "passed")
    still_open = any(word == "failed" and at not in accepted for at, word in enumerate(rulings))
    assert verdict["verdict"] == worst
    assert [row["verdict"] for row in verdict["rows"]] == rulings
    assert gate == ("fail" if still_open else "accepted" if "failed" in rulings else "pass")


def test_the_hash_is_of_the_thresholds_and_of_nothing_else():
    a = audit({"measure": RANK, "at_least": 5})
    b = audit({"measure": RANK, "at_least": 5}, accept=[{"measure": RANK, "reason": "why"}])
    c = audit({"measure": RANK, "at_least": 6})
    assert a.fingerprint() == b.fingerprint() != c.fingerprint()
    assert len(a.fingerprint()) == 64


def test_a_measure_that_was_not_measured_is_refused_with_the_nearest():
    asked = audit({"measure": "probe.lable.knn.h", "at_least": 0.5})
    with pytest.raises(Refusal) as caught:
        judge(asked, {"probe.label.knn.h": Measured(0.9), RANK: Measured(3.0)}, "specs/x.yaml: audit")
    assert str(caught.value) == (
        'specs/x.yaml: audit.thresholds[0].measure = "probe.lable.knn.h": not measured; '
        "did you mean 'probe.label.knn.h'?"
    )


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("probe.label.knn.h", "label"),
        ("probe.a.b.linear.untrained.view0", "a.b"),
        ("neighbour_purity.hue.z", "hue"),
        ("cluster_nmi.a.b.z", "a.b"),
        ("false_negatives.hue.h", "hue"),
        ("false_negatives.h", None),
        ("neighbour_purity.hue.raw", None),
        ("neighbour_purity.hue.z.view0", None),
        ("probe.a.few_10.h", "a"),
        ("probe.a.few_0.h", None),
        ("probe.a.few_100.h", None),
        ("probe.a.few_.h", None),
        ("probe.knn.h", None),
        ("probe.label.svm.h", None),
        ("probe.label.knn.h.view1", None),
        ("effective_rank.h", None),
    ],
)
def test_a_column_is_read_from_a_measures_name(name, column):
    assert column_of(name) == column
    assert range_of(name) == ((0.0, 1.0) if column else (1.0, math.inf) if name == RANK else None)


@pytest.mark.parametrize(
    ("name", "offer"),
    [
        ("efective_rank.h", "effective_rank.h"),
        ("effective_rank", "effective_rank.[hz]"),
        ("effective_rank.raw", "effective_rank.[hz]"),
        ("probe.shape.knn.k", "probe.shape.knn.[hz]"),
        ("probe.shape.liner.z", "probe.shape.linear.z"),
        ("neighbor_purity.shape.z", "neighbour_purity.shape.z"),
    ],
)
def test_an_unknown_measure_offers_the_nearest(name, offer):
    (told,) = faults({"measure": name, "at_least": 1})
    start = re.escape(f'specs/x.yaml: audit.thresholds[0].measure = "{name}": unknown measure; ')
    assert re.fullmatch(rf"{start}did you mean '{offer}'\?", told)


def test_the_names_of_probe_figures_are_those_that_the_probes_write():
    assert probed.LAYERS == probes.LAYERS
    every = (*probed.OF_CLASSES, "few_1", "few_99", "r2", "mae")
    names = [f"probe.x.{each}.{layer}" for each in every for layer in probes.LAYERS]
    assert all(column_of(name + end) == "x" for name in names for end in ("", ".view0"))
    assert set(probes.SPLITS) == {"test", "view0"}


def test_what_is_read_of_numbers_has_its_own_range():
    assert range_of("probe.age.r2.h") == (-math.inf, 1.0)
    assert range_of("probe.age.mae.z.view0") == (0.0, math.inf)
    assert column_of("probe.a.b.mae.h") == "a.b"
    assert audit({"measure": "probe.age.mae.h", "at_most": 12}, {"measure": "probe.age.r2.h", "at_least": -0.5})
    assert faults({"measure": "probe.age.r2.h", "at_least": 1.5})[0].endswith("give a value in that range")


def test_a_threshold_has_exactly_one_bound():
    (none,) = faults({"measure": RANK})
    (both,) = faults({"measure": RANK, "at_least": 1, "at_most": 2})
    assert none.endswith("needs exactly one of at_least and at_most")
    assert none.startswith("specs/x.yaml: audit.thresholds[0]")
    assert both.endswith("needs exactly one of at_least and at_most")


def test_a_bound_outside_a_measures_range_can_never_decide_anything():
    (told,) = faults({"measure": "probe.label.knn.h", "at_least": 60})
    assert told == (
        "specs/x.yaml: audit.thresholds[0].at_least = 60: "
        "probe.label.knn.h lies between 0 and 1; give a value in that range"
    )


def test_thresholds_that_repeat_or_exclude_each_other_are_refused():
    (twice,) = faults({"measure": RANK, "at_least": 5}, {"measure": RANK, "at_least": 6})
    assert twice.endswith('thresholds[1].measure = "effective_rank.h": has the same bound in thresholds[0]; delete one')
    (never,) = faults({"measure": ALIGN, "at_least": 1}, {"measure": ALIGN, "at_most": 0.5})
    assert never.endswith("alignment.z cannot be at least 1 and at most 0.5")


def test_the_numbers_of_neighbours_rise():
    with pytest.raises(SpecError) as caught:
        parse(
            {"samples": 20, "neighbours": 1, "purity_at": [5, 1, 5], "thresholds": [], "accept": []},
            Audit,
            "specs/x.yaml",
            "audit",
        )
    assert str(caught.value.faults[0]).startswith("specs/x.yaml: audit.purity_at")
    assert str(caught.value.faults[0]).endswith("must rise; write [1, 5]")


def test_an_acceptance_without_its_threshold_or_without_a_reason_is_refused():
    (unused,) = faults({"measure": RANK, "at_least": 5}, accept=[{"measure": "effective_rank.z", "reason": "x"}])
    assert unused.endswith("no threshold has this measure; did you mean 'effective_rank.h'?")
    (empty,) = faults({"measure": RANK, "at_least": 5}, accept=[{"measure": RANK, "reason": ""}])
    assert "accept[0].reason" in empty


def test_the_columns_that_thresholds_name_are_listed_with_their_place():
    spec = audit({"measure": RANK, "at_least": 5}, {"measure": "probe.hue.knn.h", "at_least": 0.5})
    assert list(spec.columns()) == [("thresholds[1].measure", "hue")]


def test_a_threshold_is_a_frozen_spec():
    with pytest.raises(ValueError, match="frozen"):
        Threshold(measure=RANK, at_least=2.0).measure = ALIGN


def test_the_judge_needs_neither_torch_nor_scikit_learn():
    import subprocess
    import sys

    code = "import sys, stages.judge; sys.exit(any(m in sys.modules for m in ('torch', 'sklearn', 'scipy')))"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False).returncode == 0
