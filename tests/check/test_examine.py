"""The whole check of a declaration: what is told, what is accepted, and what nobody asked for."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from small import CHECK, space

sys.path.insert(0, str(Path(__file__).parent))

from known import Pictures, blobs, check

from pipeline.check import Check, Finding, gate, gate_file
from pipeline.check.chart import draw_kept
from pipeline.check.examine import Shown, examine, pictures_of
from pipeline.check.findings import accepted, ruled
from pipeline.check.pictures import draw
from pipeline.check.suggest import suggest
from pipeline.shards import Shards
from pipeline.spec import SpecError, parse, read_yaml

pytestmark = pytest.mark.usefixtures("one_thread")
GREY = {"kind": "grayscale", "probability": 1.0}
MIRROR = {"kind": "horizontal_flip", "probability": 0.5}


def examined(
    pictures: Pictures, invariances: list[dict[str, Any]], preserves: list[str], **changes: Any
) -> list[Shown]:
    declared = space(invariances=invariances, preserves=preserves)
    return examine(declared, check(**changes), cast(Shards, pictures))


def findings(shown: list[Shown], *verdicts: str) -> list[Finding]:
    return [each.finding for each in shown if not verdicts or each.finding.verdict in verdicts]


def test_a_lossy_declaration_fails_with_a_sentence_in_the_domains_words() -> None:
    shown = examined(Pictures(*blobs()), [GREY], ["paint"], words={"paint": "the stain"}, tolerance=0.1)
    failed = findings(shown, "fail")
    assert {each.finding for each in failed} == {"erased", "merged"}
    reason = gate_file(findings(shown))["reason"]
    assert reason.startswith("grayscale erases the stain: a cheap probe reads it ")
    assert "10 % is tolerated" in reason
    assert gate(failed) == "fail"


def test_a_space_that_preserves_nothing_gets_a_report_and_no_alarm() -> None:
    shown = findings(examined(Pictures(*blobs()), [GREY, MIRROR], []))
    assert {each.verdict for each in shown} <= {"noted", "pass", "inconclusive"}
    assert {each.finding for each in shown} >= {"erased", "merged", "transported", "shortcut", "false_positive"}
    assert gate(shown) == "pass"


def test_data_without_labels_says_what_can_be_known() -> None:
    shown = findings(examined(Pictures(blobs()[0]), [MIRROR], ["hue"]))
    sentences = [each.sentence for each in shown if each.finding == "labels"]
    assert sentences[0] == "no label column tells hue, so only contradictions with it can be seen"
    assert sentences[1].startswith("the data has no labels: contradictions, shortcuts")
    assert not {each.finding for each in shown} & {"erased", "merged", "transported"}
    assert gate(shown) == "pass"


def test_a_preserved_label_that_cannot_be_read_is_inconclusive_with_the_reason() -> None:
    images, labels = blobs()
    shown = findings(examined(Pictures(images, {**labels, "one": 0 * labels["side"]}), [MIRROR], ["one"]))
    (told,) = [each for each in shown if each.finding == "labels"]
    assert told.verdict == "inconclusive"
    assert told.sentence.startswith("one: all training pictures have one class, so there is nothing to read")


def test_every_finding_has_a_picture_that_is_the_same_bytes_twice(tmp_path: Path) -> None:
    shown = [examined(Pictures(*blobs()), [GREY, MIRROR], ["paint", "side", "hue"]) for _ in range(2)]
    assert findings(shown[0]) == findings(shown[1])
    pictured = 0
    for one, other in zip(*shown, strict=True):
        if one.finding.verdict in ("fail", "warn"):
            assert one.picture is not None
            assert other.picture is not None
            draw(one.picture, tmp_path / "one.png")
            draw(other.picture, tmp_path / "other.png")
            assert (tmp_path / "one.png").read_bytes() == (tmp_path / "other.png").read_bytes()
            pictured += 1
    assert pictured
    draw_kept(findings(shown[0]), "paint", "the stain", tmp_path / "kept.png")
    assert (tmp_path / "kept.png").read_bytes().startswith(b"\x89PNG")
    json.dumps([each.__dict__ for each in findings(shown[0])], allow_nan=False)


def test_progress_adds_up_to_what_was_announced() -> None:
    heard: list[int] = []
    pictures, declared = Pictures(*blobs()), space(invariances=[GREY, MIRROR], preserves=["side"])
    examine(declared, check(), cast(Shards, pictures), heard.append)
    assert sum(heard) == pytest.approx(pictures_of(declared, check(), cast(Shards, pictures)), rel=0.1)


def accepting(finding: str, invariance: str) -> Check:
    entry = {"finding": finding, "invariance": invariance, "preserved": "stain", "reason": "known"}
    return parse({**CHECK, "accept": [entry]}, Check, "x.yaml")


@pytest.mark.parametrize(
    ("accept", "finding", "invariance", "verdict"),
    [
        (("erased", "grayscale"), "erased", "grayscale", "accepted"),
        (("erased", "grayscale"), "merged", "grayscale", "fail"),
        (("erased", "grayscale"), "erased", "hue", "fail"),
        (("erased", "grayscale"), "erased", "together", "accepted"),
        (("contradiction", "grayscale"), "merged", "grayscale", "accepted"),
        (("merged", "together"), "merged", "grayscale", "fail"),
    ],
)
def test_what_is_accepted_is_accepted_and_nothing_else(
    accept: tuple[str, str], finding: str, invariance: str, verdict: str
) -> None:
    failed = Finding(finding, invariance, "stain", "fail", "it fails")
    (found,) = accepted([failed], accepting(*accept).accept)
    assert found.verdict == verdict
    assert found.sentence == ("it fails; accepted: known" if verdict == "accepted" else "it fails")


@pytest.mark.parametrize(
    ("figure", "verdict"),
    [
        ((0.9, 0.85, 0.95), "pass"),
        ((0.7, 0.65, 0.79), "fail"),
        ((0.8, 0.7, 0.9), "inconclusive"),
        (None, "inconclusive"),
    ],
)
def test_a_verdict_is_given_where_the_interval_lies_on_one_side(figure: Any, verdict: str) -> None:
    assert ruled(figure, 0.8, "fail") == verdict


def test_bands_that_no_recipe_could_pass_are_refused() -> None:
    with pytest.raises(SpecError, match=r"matched = 0.6: must be below shortcut \(0.5\)"):
        parse({**CHECK, "matched": 0.6}, Check, "x.yaml")


def test_a_draft_offers_what_keeps_the_label_and_comments_out_what_does_not(tmp_path: Path) -> None:
    lines = list(suggest(cast(Shards, Pictures(*blobs())), check(tolerance=0.2), ["height"]))
    file = tmp_path / "draft.yaml"
    file.write_text("\n".join(lines), encoding="utf-8")
    offered = [each["kind"] for each in read_yaml(file)["invariances"]]
    assert "horizontal_flip" in offered
    assert "vertical_flip" not in offered
    (refused,) = [line for line in lines if "vertical_flip" in line]
    assert refused.startswith("  # - {kind: vertical_flip, probability: 0.5}  # no: ")
    assert "height" in refused
    assert not any("hue" in line and "offered" in line for line in lines)


def test_a_number_that_is_not_there_is_left_out() -> None:
    images, labels = blobs()
    bright = images.mean((1, 2, 3)).astype(np.float64)
    bright[::7] = np.nan
    shown = findings(examined(Pictures(images, {**labels, "light": bright}), [MIRROR], ["light"]))
    (erased,) = [
        each
        for each in shown
        if (each.finding, each.invariance) == ("erased", "horizontal_flip") and each.preserved == "light"
    ]
    assert erased.details["measure"] == "R2"
    assert erased.details["count"] < len(images) / 3
