"""The answer in a minute follows its rules: whom to trust, what is ignored, what to change."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from reported import made, make, put, write

from pipeline.report.collect import collect
from pipeline.report.minute import changes, doubts, ignored, leaders, trusted
from pipeline.report.result import Result

TOGETHER = "perhaps weaken the invariances as a whole: a probe of the data takes its views for something else"
PASSED = {"verdict": "passed", "thresholds": "a", "rows": []}


@pytest.fixture(autouse=True)
def passed(project: Path) -> None:
    """It passed, and h is the best where samples move."""
    put("judge", "digits", "verdict.json", PASSED)


def result() -> Result:
    return collect(Path("specs"), Path("work"))[0]


def accuracy(layer: str, value: float) -> None:
    """Let one layer read the label on moved samples with this accuracy, give or take 0.02."""
    file = Path("work/probe/digits/figures.json")
    content = json.loads(file.read_text())
    for row in content["rows"]:
        if (row["layer"], row["split"], row["probe"], row["control"]) == (layer, "view0", "knn", None):
            row |= {"accuracy": value, "low": value - 0.02, "high": value + 0.02}
    put("probe", "digits", "figures.json", content)


def reason(name: str, *measures: str) -> dict[str, Any]:
    return {"reason": name, "sentence": f"{name}: so it is", "measures": list(measures)}


def test_a_space_is_trusted_that_passed_has_no_diagnosis_and_beats_both_controls(project: Path) -> None:
    assert trusted(result()) == "yes"


@pytest.mark.parametrize(
    ("layer", "value"), [("raw", 0.9), ("untrained", 0.9), ("raw", 0.84), ("untrained", 0.815), ("h", 0.3)]
)
def test_a_control_that_is_level_or_better_asks_for_care(project: Path, layer: str, value: float) -> None:
    accuracy(layer, value)
    assert trusted(result()) == "care"


def test_a_diagnosis_or_an_open_question_asks_for_care_and_a_failure_for_more(project: Path) -> None:
    put("judge", "digits", "verdict.json", {**PASSED, "reasons": [reason("shortcut", "detail.hue.h")]})
    assert trusted(result()) == "care"
    put("judge", "digits", "verdict.json", {**PASSED, "verdict": "inconclusive"})
    assert trusted(result()) == "care"
    put("judge", "digits", "verdict.json", {**PASSED, "verdict": "failed"})
    assert trusted(result()) == "no"
    put("judge", "digits", "gate.json", {"gate": "accepted"})
    assert trusted(result()) == "care"
    (Path("work/judge/digits/verdict.json")).unlink()
    assert trusted(result()) == "open"


def test_whoever_is_not_trusted_is_told_why(project: Path) -> None:
    assert doubts(result()) == []
    accuracy("raw", 0.9)
    told = [reason("lost", "a"), reason("lost", "b")]
    put("judge", "digits", "verdict.json", {**PASSED, "verdict": "failed", "reasons": told})
    assert doubts(result()) == [
        "it misses what was declared for it",
        "diagnosis lost",
        "h reads label not clearly better than the raw input",
    ]
    _, page = made()
    assert "✕ no: it misses what was declared for it; diagnosis lost; h reads label not clearly better" in page.text
    assert "better than the raw input. Of moved test samples, h reads label right for 84.5 %" in page.text
    Path("work/judge/digits/verdict.json").unlink()
    assert doubts(result()) == []


def test_what_moves_h_less_than_half_as_far_as_another_sample_is_ignored(project: Path) -> None:
    found = ignored(result())
    assert (found.declared, found.half, found.missed, found.besides) == (["rotation"], [], [], [])
    file = Path("work/audit/digits/achieved.json")
    for moved, place in ((0.49, "declared"), (0.5, "half"), (0.99, "half"), (1.0, "missed")):
        content = json.loads(file.read_text())
        content["transformations"][0]["points"][-1]["layers"]["h"]["movement"]["value"] = moved
        content["transformations"][2]["points"][-1]["layers"]["h"]["movement"]["value"] = 0.25
        put("audit", "digits", "achieved.json", content)
        found = ignored(result())
        assert getattr(found, place) == ["rotation"], moved
        assert found.besides == ["erase"]


def test_what_is_less_readable_than_from_the_raw_input_is_told(project: Path) -> None:
    assert ignored(result()).unread == []
    content = json.loads(Path("work/audit/digits/achieved.json").read_text())
    lower = {"h": {"value": 0.1, "low": 0.05, "high": 0.2}, "raw": {"value": 0.7, "low": 0.6, "high": 0.8}}
    content["detail"] = [{"name": "hue", "how": "column", "layers": lower, "reason": None}]
    put("audit", "digits", "achieved.json", content)
    assert [each.name for each in ignored(result()).unread] == ["hue"]
    _, page = made()
    assert "Less readable than from the raw input: hue (0.10 against 0.70)." in page.text


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (reason("wrongly invariant", "costs.color_jitter.label"), "weaken or strike color jitter: it takes label away"),
        (reason("not achieved", "movement.right_angle.h"), "right angle is not ignored: train longer"),
        (reason("shortcut", "detail.background.h"), "an invariance that removes background"),
        (reason("lost", "preserved.cell.type.h"), "weaken what removes cell.type"),
        (reason("fully collapsed", "spread.h"), "all vectors are one point"),
        (reason("of a later version"), "of a later version: so it is"),
    ],
)
def test_every_diagnosis_has_its_remedy(project: Path, told: dict[str, Any], words: str) -> None:
    put("judge", "digits", "verdict.json", {**PASSED, "reasons": [told]})
    assert words in changes(result())[0]


def test_changes_name_each_invariance_once_the_most_pressing_first(project: Path) -> None:
    def finding(kind: str, verdict: str, invariance: str) -> dict[str, Any]:
        about = {"finding": kind, "verdict": verdict, "invariance": invariance, "preserved": "label"}
        return {**about, "sentence": "x", "figure": None, "low": None, "high": None, "picture": None}

    findings = [
        finding("transported", "warn", "together"),
        finding("transported", "warn", "hue"),
        finding("erased", "fail", "grayscale"),
        finding("merged", "fail", "grayscale"),
        finding("merged", "inconclusive", "blur"),
    ]
    put("check", "digits", "findings.json", findings)
    rows = [
        {"measure": "effective_rank.h", "value": 1.0, "low": 0.9, "high": 1.1, "verdict": "failed", "at_least": 2.0}
    ]
    put("judge", "digits", "verdict.json", {"verdict": "failed", "thresholds": "a", "rows": rows})
    assert changes(result()) == [
        "effective_rank.h is 1, at least 2 is declared: train longer, enlarge the batch or weaken an invariance; "
        "or lower the threshold",
        "weaken grayscale: its views no longer show label",
        "perhaps weaken hue: a probe of the data takes its views for something else",
    ]
    put("check", "digits", "findings.json", findings[:1])
    assert changes(result())[1:] == [TOGETHER]
    put("judge", "digits", "verdict.json", PASSED)
    assert changes(result()) == [TOGETHER]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (
            {"measure": "probe.label.knn.h.view0", "value": 0.5, "at_least": 0.75},
            "is 50.0 %, at least 75.0 % is declared: train longer, or weaken the invariance that costs most of it; "
            "or lower the threshold",
        ),
        (
            {"measure": "movement.rotation.h", "value": 0.6, "at_most": 0.5},
            "is 0.6, at most 0.5 is declared: train longer, or declare it with a larger probability; "
            "or raise the threshold",
        ),
        (
            {"measure": "hubness.h", "value": 3.0, "at_most": 2.0},
            "is 3, at most 2 is declared: train longer; or raise the threshold",
        ),
        (
            {"measure": "mig.h", "value": None, "at_least": 0.1, "note": "one column"},
            "has no value (one column): mend that, or strike the threshold",
        ),
    ],
    ids=lambda each: each["measure"] if isinstance(each, dict) else "",
)
def test_a_missed_threshold_is_told_with_what_was_found_and_what_helps(
    project: Path, row: dict[str, Any], words: str
) -> None:
    judged = {"verdict": "failed", "thresholds": "a", "rows": [{"low": None, "high": None, "verdict": "failed", **row}]}
    put("judge", "digits", "verdict.json", judged)
    assert changes(result()) == [f"{row['measure']} {words}"]


def test_where_nothing_asks_for_a_change_or_nothing_ran_it_says_so(project: Path) -> None:
    _, page = made()
    assert "Nothing that was measured asks for it." in page.text
    for stage in ("judge", "audit", "probe"):
        for file in sorted((Path("work") / stage / "digits").rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
        (Path("work") / stage / "digits").rmdir()
    _, page = made()
    assert re.search(r"… not known yet: probe has not run\. What does it ignore\? Not measured", page.text)
    assert "Run what is missing first." in page.text


def test_of_several_spaces_on_one_label_the_best_is_named_and_whether_by_more_than_the_intervals(project: Path) -> None:
    write(["digits", "other"])
    make("other", "label")
    accuracy("h", 0.95)
    (leader,) = leaders(collect(Path("specs"), Path("work")))
    assert (leader.first, leader.second, leader.label, leader.apart) == ("digits", "other", "label", True)
    accuracy("h", 0.86)
    (leader,) = leaders(collect(Path("specs"), Path("work")))
    assert (leader.first, leader.apart) == ("digits", False)
    accuracy("h", 0.5)
    (leader,) = leaders(collect(Path("specs"), Path("work")))
    assert (leader.first, leader.second) == ("other", "digits")
