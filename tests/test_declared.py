"""Whether thresholds were declared before the training: told from an untracked log, whatever happened to it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from test_stages import Call, call, mine, place, ran, write  # noqa: F401

from pipeline.audit import Audit, Threshold
from pipeline.declared import declared_when
from pipeline.declared_log import LOG, digest_of, log_beginning, log_end
from pipeline.spec import parse

RANK = Threshold(measure="effective_rank.h", at_least=5.0)
LOWER = Threshold(measure="effective_rank.h", at_least=2.0)
SPREAD = Threshold(measure="uniformity.z", at_most=-1.0)


@pytest.fixture
def logged(tmp_path: Path) -> Path:
    """A spec, a folder of logs and weights."""
    spec(tmp_path, [RANK])
    (tmp_path / "weights").write_bytes(b"weights")
    return tmp_path


def spec(logged: Path, thresholds: list[Threshold]) -> None:
    lines = [json.dumps(each.model_dump(mode="json", exclude_none=True)) for each in thresholds]
    (logged / "x.yaml").write_text(f"audit:\n  thresholds: [{', '.join(lines)}]\n")


def train(logged: Path, training: str = "aa") -> None:
    log_beginning(logged, logged / "x.yaml", training)
    log_end(logged, logged / "weights", training)


def asked(logged: Path, *thresholds: Threshold):
    return declared_when(logged, digest_of(logged / "weights"), thresholds)


def test_equal_thresholds_were_declared_before_in_whatever_order(logged: Path) -> None:
    spec(logged, [SPREAD, RANK])
    train(logged)
    found = asked(logged, RANK, SPREAD)
    assert found.answer == "before"
    assert "declared before the training" in found.told
    assert found.changes == ()


def test_a_loosened_threshold_is_told_line_by_line(logged: Path) -> None:
    spec(logged, [RANK, SPREAD])
    train(logged)
    found = asked(logged, LOWER, SPREAD)
    assert found.answer == "after"
    assert found.changes == ("- effective_rank.h at_least 5", "+ effective_rank.h at_least 2")


def test_training_again_to_the_same_weights_is_no_new_declaration(logged: Path) -> None:
    train(logged)
    spec(logged, [LOWER])
    train(logged)
    assert asked(logged, LOWER).answer == "after"
    assert asked(logged, RANK).answer == "before"


def test_a_training_that_was_cut_began_when_it_first_began(logged: Path) -> None:
    log_beginning(logged, logged / "x.yaml", "aa")
    spec(logged, [LOWER])
    train(logged)
    assert asked(logged, LOWER).answer == "after"


def test_another_training_says_nothing_of_these_weights(logged: Path) -> None:
    assert "no training" in asked(logged, RANK).told
    train(logged)
    (logged / "weights").write_bytes(b"of another seed")
    found = asked(logged, RANK)
    assert found.answer == "unknown"
    assert "cache or a clone" in found.told
    spec(logged, [LOWER])
    train(logged, "bb")
    assert asked(logged, LOWER).answer == "before"


def test_damaged_lines_and_thresholds_of_other_versions_end_nothing(logged: Path) -> None:
    (logged / LOG).write_bytes(b'{"event": "began", "trai\n[]\n\xff\xfe\n')
    train(logged)
    assert asked(logged, RANK).answer == "before"
    (logged / "x.yaml").write_text("audit: {thresholds: [{measure: no_such, at_least: 1}]}\n")
    (logged / LOG).unlink()
    train(logged)
    assert asked(logged, RANK).answer == "unknown"
    (logged / "x.yaml").write_text("audit: [\n")
    train(logged, "bb")


def test_no_thresholds_are_an_answer_as_well(logged: Path) -> None:
    spec(logged, [])
    train(logged)
    assert asked(logged).answer == "before"
    assert asked(logged, RANK).changes == ("+ effective_rank.h at_least 5",)


# -- the stages --------------------------------------------------------------------------------------------------------


def test_a_training_is_logged_and_the_verdict_is_dated_by_it(call: Call) -> None:  # noqa: F811
    ran(call, "shard", "check", "pretrain")
    assert call("judge", "mine", "--when") == (
        1,
        ["work/judge/mine/verdict.json: not there; run `dvc repro` or `python -m stages.judge` first"],
    )
    judged(mine())
    code, lines = call("judge", "mine", "--when")
    assert (code, len(lines)) == (0, 1)
    assert "declared before the training: the same thresholds stood when it began, 20" in lines[0]

    loosened = mine(audit__thresholds=[{"measure": "effective_rank.h", "at_least": 1.5}])
    write(Path("specs/mine.yaml"), loosened)
    code, lines = call("judge", "mine", "--when")
    assert (code, len(lines)) == (1, 1)
    assert "the verdict is of other thresholds than the spec's; run `dvc repro judge@mine`" in lines[0]
    judged(loosened)
    code, lines = call("judge", "mine", "--when")
    assert code == 0
    assert "changed after the training began" in lines[0]
    assert lines[1:] == ["  - effective_rank.h at_least 1", "  + effective_rank.h at_least 1.5"]

    shutil.rmtree("work/logs")
    code, lines = call("judge", "mine", "--when")
    assert code == 0
    assert "not known: work/logs/mine/declared.jsonl tells of no training" in lines[0]


def judged(content: dict[str, Any]) -> None:
    """A verdict of these thresholds, as the stage writes it."""
    audit = parse(content["audit"], Audit, "mine")
    folder = Path("work/judge/mine")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "verdict.json").write_text(json.dumps({"thresholds": audit.fingerprint()}))
