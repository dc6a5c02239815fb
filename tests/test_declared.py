"""Whether thresholds were declared before the training: told from an untracked log, whatever happened to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.audit import Threshold
from pipeline.declared import declared_when
from pipeline.declared_log import LOG, digest_of, log_beginning, log_end

RANK = Threshold(measure="effective_rank.h", at_least=5.0)
LOWER = Threshold(measure="effective_rank.h", at_least=2.0)
SPREAD = Threshold(measure="uniformity.z", at_most=-1.0)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A spec, a folder of logs and weights."""
    spec(tmp_path, [RANK])
    (tmp_path / "weights").write_bytes(b"weights")
    return tmp_path


def spec(place: Path, thresholds: list[Threshold]) -> None:
    lines = [json.dumps(each.model_dump(mode="json", exclude_none=True)) for each in thresholds]
    (place / "x.yaml").write_text(f"audit:\n  thresholds: [{', '.join(lines)}]\n")


def train(place: Path, training: str = "aa") -> None:
    log_beginning(place, place / "x.yaml", training)
    log_end(place, place / "weights", training)


def asked(place: Path, *thresholds: Threshold):
    return declared_when(place, digest_of(place / "weights"), thresholds)


def test_equal_thresholds_were_declared_before_in_whatever_order(place: Path) -> None:
    spec(place, [SPREAD, RANK])
    train(place)
    found = asked(place, RANK, SPREAD)
    assert found.answer == "before"
    assert "declared before the training" in found.told
    assert found.changes == ()


def test_a_loosened_threshold_is_told_line_by_line(place: Path) -> None:
    spec(place, [RANK, SPREAD])
    train(place)
    found = asked(place, LOWER, SPREAD)
    assert found.answer == "after"
    assert found.changes == ("- effective_rank.h at_least 5", "+ effective_rank.h at_least 2")


def test_training_again_to_the_same_weights_is_no_new_declaration(place: Path) -> None:
    train(place)
    spec(place, [LOWER])
    train(place)
    assert asked(place, LOWER).answer == "after"
    assert asked(place, RANK).answer == "before"


def test_a_training_that_was_cut_began_when_it_first_began(place: Path) -> None:
    log_beginning(place, place / "x.yaml", "aa")
    spec(place, [LOWER])
    train(place)
    assert asked(place, LOWER).answer == "after"


def test_another_training_says_nothing_of_these_weights(place: Path) -> None:
    assert "no training" in asked(place, RANK).told
    train(place)
    (place / "weights").write_bytes(b"of another seed")
    found = asked(place, RANK)
    assert found.answer == "unknown"
    assert "cache or a clone" in found.told
    spec(place, [LOWER])
    train(place, "bb")
    assert asked(place, LOWER).answer == "before"


def test_damaged_lines_and_thresholds_of_other_versions_end_nothing(place: Path) -> None:
    (place / LOG).write_bytes(b'{"event": "began", "trai\n[]\n\xff\xfe\n')
    train(place)
    assert asked(place, RANK).answer == "before"
    (place / "x.yaml").write_text("audit: {thresholds: [{measure: no_such, at_least: 1}]}\n")
    (place / LOG).unlink()
    train(place)
    assert asked(place, RANK).answer == "unknown"
    (place / "x.yaml").write_text("audit: [\n")
    train(place, "bb")


def test_no_thresholds_are_an_answer_as_well(place: Path) -> None:
    spec(place, [])
    train(place)
    assert asked(place).answer == "before"
    assert asked(place, RANK).changes == ("+ effective_rank.h at_least 5",)
