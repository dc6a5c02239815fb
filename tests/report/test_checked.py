"""What the check found stands on the page, worst first, with its pictures."""

from __future__ import annotations

from pathlib import Path

from pipeline.report.page import page
from pipeline.report.readers import PNG, Folder, _check
from pipeline.report.result import STAGES, Result, Status
from pipeline.report.results import Finding, Findings
from pipeline.report.telling import alarms

MISSING = Status("missing", reason="it has not run")


def test_findings_that_did_not_pass_are_told_worst_first_with_their_picture_and_chart() -> None:
    rows = (
        Finding(finding="shortcut", verdict="warn", sentence="the colour histogram alone matches <most>"),
        Finding(finding="merged", verdict="inconclusive", sentence="a crossing interval"),
        Finding(finding="erased", verdict="pass", sentence="rotation leaves the cell type"),
        Finding(finding="erased", verdict="fail", sentence="grayscale erases the cell type", picture="001.png"),
        Finding(finding="erased", verdict="noted", sentence="nobody asked for this"),
    )
    result = Result("cells", "cells", "", {"space": {"preserves": ["label"]}}, "", findings=Findings(rows=rows))
    result.stages = dict.fromkeys(STAGES, MISSING)
    result.seen = {"001.png": PNG + b"picture", "kept-label.png": PNG + b"chart"}
    assert [each.verdict for each in alarms(result)] == ["fail", "warn", "inconclusive"]
    text = page([result], {"cells": {"verdict": "unfinished"}})
    part = text[text.index("What the data says of the declaration") :]
    assert part.index("grayscale erases the cell type") < part.index("the colour histogram alone matches &lt;most&gt;")
    assert part.index("95 % intervals") < part.index("grayscale erases") < part.index("a crossing interval")
    assert part.count("data:image/png;base64,") == 2
    assert "nobody asked for this" not in text
    assert "rotation leaves" not in part


def test_a_check_without_alarm_says_how_much_was_looked_at() -> None:
    rows = (Finding(finding="erased", verdict="pass", sentence="rotation leaves the cell type"),)
    result = Result("cells", "cells", "", {"space": {"preserves": ["label"]}}, "", findings=Findings(rows=rows))
    result.stages = dict.fromkeys(STAGES, MISSING)
    text = page([result], {"cells": {"verdict": "unfinished"}})
    assert "nothing of the 1 findings on the data speaks against it" in text
    assert "What the data says" not in text


def test_a_picture_outside_the_folder_is_not_read(tmp_path: Path) -> None:
    finding = '[{"finding": "erased", "verdict": "fail", "sentence": "x", "picture": "../../outside.png"}]'
    (tmp_path / "findings.json").write_text(finding)
    folder, result = Folder(tmp_path), Result("x", "x", "", {}, "")
    _check(folder, result)
    assert result.seen == {}
    assert all("outside" not in problem for problem in folder.problems)
