"""What the audit wrote beside its measures stands on the page: numbers as in the files, and gaps in words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reported import made, put


def numbers(content: Any) -> Iterator[float]:
    if isinstance(content, dict):
        for key, value in content.items():
            yield from numbers(value)
            yield from (float(key) for _ in range(1) if re.fullmatch(r"[\d.]+", key))
    elif isinstance(content, list):
        for value in content:
            yield from numbers(value)
    elif isinstance(content, (int, float)) and not isinstance(content, bool):
        yield float(content)


def part(text: str, start: str, end: str) -> str:
    return text[text.index(start) : text.index(end, text.index(start))]


def test_every_number_of_the_tables_is_one_of_the_files(project: Path) -> None:
    text, _ = made()
    folder = Path("work/audit/digits")
    for file, start, end in (
        ("achieved.json", "Declared against achieved", "<h3>Verdict"),
        ("geometry.json", "Who feels the gradient <", "To be looked at again"),
    ):
        held = set(numbers(json.loads((folder / file).read_text())))
        shown = part(text, start, end)
        values = [float(value) for value in re.findall(r'<data value="([^"]+)"', shown)]
        assert len(values) > 20
        assert set(values) <= held, f"{file}: {set(values) - held}"


def test_declared_and_controls_stand_apart_each_with_its_picture_or_its_reason(project: Path) -> None:
    text, page = made()
    table = part(text, '<table class="answers">', "</table>")
    declared, controls = table.split("controls: nobody declared them")
    assert "rotation" in declared
    assert "cannot be used on one channel" in declared
    assert "erase" in controls
    assert table.count('class="strip"') == 2
    assert "moves a sample in h by 0.094 of the distance" in page.text
    assert "what nobody declared, by 0.594." in page.text
    assert "No controls: shift (removes position, which the declaration removes)." in page.text


def test_boundary_readability_gradient_mass_and_local_ranks_are_told_in_words(project: Path) -> None:
    _, page = made()
    for words in (
        "what was drawn is readable from h and less so from z",
        "label: skill 0.72 from h, more than from raw (0.34)",
        "all rows are of one class",
        "the 20 nearest rows of a row spread over 2.562 directions in the median",
        "by chance 50.1 % of the negatives are of the anchor's own label",
        "37 entries: far from all",
        "not made: x",
    ):
        assert words in page.text


def test_the_temperature_of_training_is_marked_among_the_others(project: Path) -> None:
    text, _ = made()
    (marked,) = re.findall(r'<tr class="own-row"><td class="n"><data value="([^"]+)"', text)
    assert float(marked) == 0.1


def test_a_reason_stands_beside_the_verdict_and_above_everything_of_its_spec(project: Path) -> None:
    text, _ = made()
    assert re.search(r'class="badge passed">.*?shortcut', part(text, "<table", "</table>"), re.DOTALL)
    of_spec = text[text.index('<section id="spec-1"') :]
    assert of_spec.index("is not what the space reads") < of_spec.index('class="declared"')


@pytest.mark.parametrize("file", ["achieved.json", "geometry.json"])
def test_a_file_that_is_not_there_is_told_and_nothing_else_changes(project: Path, file: str) -> None:
    (Path("work/audit/digits") / file).unlink()
    _, page = made()
    assert f"{file} is not there" in page.text
    assert "damaged" not in page.text
    assert "Audit measures" in page.text


def test_without_curation_lists_there_is_nothing_of_them(project: Path) -> None:
    for file in Path("work/audit/digits/curation").iterdir():
        file.unlink()
    Path("work/audit/digits/curation").rmdir()
    _, page = made()
    assert "To be looked at again" not in page.text
    assert "damaged" not in page.text


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("achieved.json", "{}", "achieved.json: transformations: field required"),
        ("geometry.json", '{"layers": {"h": {"pairs": 3}}}', "geometry.json: layers.h.pairs"),
        ("curation/lists.json", "[", "curation/lists.json"),
    ],
)
def test_a_damaged_file_is_named(project: Path, file: str, content: str, told: str) -> None:
    put("audit", "digits", file, content)
    _, page = made()
    assert "audit: damaged or incomplete." in page.text
    assert told in page.text


def test_an_empty_audit_of_transformations_has_a_page(project: Path) -> None:
    put("audit", "digits", "achieved.json", {"transformations": []})
    put("audit", "digits", "geometry.json", {"layers": {}})
    _, page = made()
    assert "Declared against achieved" in page.text


def test_columns_of_numbers_and_probes_with_few_labels_are_shown_with_their_figures(project: Path) -> None:
    file = Path("work/probe/digits/figures.json")
    content = json.loads(file.read_text())
    few = {**content["rows"][0], "probe": "few_1", "k": None, "temperature": None, "accuracy": 0.40625}
    number = dict.fromkeys(("r2", "r2_low", "r2_high", "mae", "mae_low", "mae_high", "chance_r2", "chance_mae"), 0.0)
    number |= {"label": "size", "layer": "h", "split": "test", "control": None, "count": 374, "note": ""}
    number |= {"r2": 0.71875, "mae": 12.5, "probe": "ridge", "gallery": 1423, "confidence": 0.95, "regularization": 1.0}
    lost = {**number, "split": "view0", "r2": None, "note": "R² is not computable: all test values are equal"}
    put("probe", "digits", "figures.json", {"rows": [*content["rows"], few], "numbers": [number, lost]})
    _, page = made()
    metrics = json.loads(Path("work/report/metrics.json").read_text())["digits"]
    assert (metrics["size.r2_h"], metrics["size.mae_h"], metrics["label.few_1_h"]) == (0.71875, 12.5, 0.40625)
    assert "size.r2_h_view0" not in metrics
    assert {"size.r2_h", "size.mae_h", "size.mae_h_view0"} <= {name for _, name, _, _ in page.figures}
    assert "linear, 1 % of the labels" in page.text
    assert "all test values are equal" in page.text
