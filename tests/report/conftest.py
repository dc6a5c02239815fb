"""What the tests of the page share: a project in small, whose charts, which take most of the time, are not drawn."""

from __future__ import annotations

from pathlib import Path

import pytest
from reported import audit_more, make, write

from pipeline.report import charts


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one whole spec, ``digits``, labelled ``label``."""
    monkeypatch.setattr(charts, "as_svg", lambda draw, words: f'<svg aria-label="{words}"></svg>')
    monkeypatch.chdir(tmp_path)
    Path("specs").mkdir()
    write(["digits"])
    make("digits", "label")
    audit_more("digits", "label")
    return tmp_path
