"""The stage: what it writes, what it prints and does not write, and what it refuses in one line."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small import CHECK, DATA, SPACE, TRAINING, sharded, whole

import stages
from pipeline.spec import canonical

Called = Callable[..., tuple[int, list[str]]]
MIRROR = {"kind": "horizontal_flip", "probability": 0.5}


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Called:
    """Write a spec with changes, call the stage, and return its exit code and lines."""
    monkeypatch.chdir(tmp_path)
    for name, value in (("DEVICE", "cpu"), ("THREADS", "1")):
        monkeypatch.setenv(f"LATENT_{name}", value)
    (tmp_path / "specs" / "data").mkdir(parents=True)

    def called(*arguments: str, data: dict[str, Any] | None = None, **changes: Any) -> tuple[int, list[str]]:
        declared = {**DATA, **(data or {})}
        sections = {"data": "mine", "space": SPACE, "training": TRAINING, "check": {**CHECK, "tolerance": 0.5}}
        named = {"probe__labels": [], "audit__thresholds": []}
        content = whole(**sections, **named, **changes)
        (tmp_path / "specs" / "mine.yaml").write_text(canonical(content))
        (tmp_path / "specs" / "data" / "mine.yaml").write_text(canonical(declared))
        if not (tmp_path / "work" / "shard" / "mine").exists():
            sharded(tmp_path / "work" / "shard" / "mine", **(data or {}))
        monkeypatch.setattr(sys, "argv", ["stages.check", "mine", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            stages.run(importlib.import_module("stages.check").main)
        code, output = ended.value.code, capsys.readouterr()
        return (1, code.splitlines()) if isinstance(code, str) else (int(code or 0), output.out.splitlines())

    return called


def test_a_mirror_over_sides_is_refused_with_a_sentence_a_picture_and_a_chart(call: Called) -> None:
    data = {"source": {**DATA["source"], "pictures": 400}, "labels": ["side", "shape"]}
    code, lines = call(data=data, space__invariances=[MIRROR], space__preserves=["side"])
    assert code == 0
    assert lines[-1] == "check mine: fail"
    gate = json.loads(Path("work/check/mine/gate.json").read_text())
    assert gate["gate"] == "fail"
    assert gate["reason"].startswith("horizontal_flip merges side: a cheap probe reads it ")
    findings = json.loads(Path("work/check/mine/findings.json").read_text())
    merged = next(each for each in findings if (each["finding"], each["preserved"]) == ("merged", "side"))
    assert merged["high"] < 0.5
    assert Path("work/check/mine", merged["picture"]).read_bytes().startswith(b"\x89PNG")
    assert Path("work/check/mine/kept-side.png").is_file()
    erased = next(each for each in findings if (each["finding"], each["preserved"]) == ("erased", "side"))
    assert erased["verdict"] in ("pass", "inconclusive")
    assert erased["figure"] > 0.8


def test_a_group_that_is_no_column_is_told(call: Called) -> None:
    code, lines = call(check__group="patient")
    assert (code, len(lines)) == (1, 1)
    assert lines[0].endswith("check.group = patient: no such label column; known: hue, rotation, shape")


def test_words_for_a_label_that_is_no_column_are_told(call: Called) -> None:
    code, lines = call(check__words={"shap": "the figure"})
    assert (code, len(lines)) == (1, 1)
    assert lines[0].endswith("check.words = shap: no such label column; did you mean 'shape'?")


def test_an_acceptance_of_what_is_not_declared_is_told(call: Called) -> None:
    entry = {"finding": "erased", "invariance": "grayscal", "preserved": "shape", "reason": "known"}
    code, lines = call(check__accept=[entry])
    assert (code, len(lines)) == (1, 1)
    assert "check.accept[0].invariance" in lines[0]
    assert "is not declared" in lines[0]


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--plan", "--suggest"])
def test_a_forecast_and_a_draft_are_printed_and_nothing_is_tracked(call: Called, option: str) -> None:
    code, lines = call(option)
    assert code == 0
    assert not Path("work/check").exists()
    assert lines[0].startswith("plan mine: 1 CPU threads" if option == "--plan" else "# a draft from 96 pictures")
