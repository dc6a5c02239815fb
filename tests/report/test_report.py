"""The page says what the stages wrote: figures equal metrics.json, names are inert, gaps are told, bytes repeat."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reported import EVIL, Page, audit_more, make, put, rows, write

from pipeline.report import charts
from pipeline.report.charts import POINTS, thinned
from pipeline.report.forms import FORMS
from pipeline.report.readers import _columns
from pipeline.report.result import STAGES
from pipeline.report.scripts import FILES
from pipeline.spec import Refusal
from stages import report


@pytest.fixture
def folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same project; charts, which take most of the time, are not drawn."""
    monkeypatch.setattr(charts, "as_svg", lambda draw, words: f'<svg aria-label="{words}"></svg>')
    return project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one whole spec, ``digits``."""
    monkeypatch.chdir(tmp_path)
    Path("specs").mkdir()
    write(["digits"])
    make("digits", "label")
    return tmp_path


REASON = {"reason": EVIL, "sentence": EVIL, "measures": [EVIL]}


def made() -> tuple[Page, dict[str, Any]]:
    report.main([])
    return Page(Path("work/report.html").read_text(encoding="utf-8")), json.loads(
        Path("work/report/metrics.json").read_text(encoding="utf-8")
    )


def test_every_figure_on_the_page_is_the_one_in_metrics_json_and_every_accuracy_is_shown(folder: Path) -> None:
    page, metrics = made()
    assert len(page.figures) > 40
    for spec, name, value, shown in page.figures:
        assert json.loads(value) == metrics[spec][name]
        assert shown in {form(metrics[spec][name]) for form in FORMS.values()}
    named = {name for _, name, _, _ in page.figures}
    accuracies = {name for name in metrics["digits"] if "knn" in name or "linear" in name}
    assert {name for name in accuracies if not name.startswith("judged.")} <= named
    assert {"loss", "loss_at_chance", "effective_rank_h", "label.false_negatives", "kept", "seen"} <= named


def test_the_drift_of_keys_is_drawn_where_there_is_a_queue(folder: Path) -> None:
    page, _ = made()
    assert "Directions in use while training" in page.text
    assert "Drift of the queue" not in page.text
    make("digits", "label", drift=0.25)
    page, _ = made()
    assert "Drift of the queue" in page.text


def test_metrics_are_flat_and_equal_the_stages_files(folder: Path) -> None:
    _, metrics = made()
    figures = metrics["digits"]
    assert figures["label.knn_h"] == 0.919786
    assert figures["label.knn_h_view0"] == figures["label.linear_h_view0"] == 0.84492
    assert figures["label.knn_gain_raw"] == pytest.approx(0.919786 - 0.97861, abs=1e-6)
    assert figures["label.knn_gain_raw_view0"] == pytest.approx(0.84492 - 0.459893, abs=1e-6)
    assert figures["label.neighbour_purity_h"] == 0.5
    assert figures["verdict"] == "passed"
    assert "effective_rank_z" not in figures  # it could not be computed, and no number stands for it
    assert all(isinstance(value, (int, float, str)) for value in figures.values())


def test_the_curve_is_copied_byte_for_byte(folder: Path) -> None:
    made()
    assert Path("work/report/curves/digits.csv").read_bytes() == Path("work/pretrain/digits/curve.csv").read_bytes()


def test_a_space_that_is_worse_than_raw_pixels_where_nothing_moves_says_so(folder: Path) -> None:
    page, _ = made()
    assert "On samples as they are, h is worse than raw input by 5.9 points" in page.text
    assert "worse than the untrained encoder by 2.4 (94.4 %)" in page.text


def test_a_measure_that_could_not_be_computed_says_why(folder: Path) -> None:
    page, _ = made()
    assert "rows of length zero" in page.text
    assert "not computable" in page.text


def test_hostile_names_and_labels_are_inert(project: Path) -> None:
    name = EVIL.replace("/", "").replace("\n", "")
    write([name], data="evil<i>")
    make(name, EVIL, data="evil<i>")
    audit_more(name, EVIL, transformation=EVIL)
    put("judge", name, "verdict.json", {"verdict": "failed", "thresholds": EVIL, "rows": [], "reasons": [REASON]})
    shutil.rmtree(Path("work/export") / name)
    put("export", name, "refused.json", {"stage": EVIL, "reason": EVIL})
    page, metrics = made()
    assert list(metrics) == [name]
    images = [attributes for tag, attributes in page.elements if tag == "img"]
    assert len(images) == 4  # three rows of views, and the map's thumbnails
    assert all(re.match(r"data:image/(png|webp);base64,[\w+/=]+$", str(image["src"])) for image in images)
    tags = [tag for tag, _ in page.elements]
    assert not {"iframe", "object", "embed", "form"} & set(tags)
    assert tags.count("script") == len(FILES)
    assert tags.count("input") == 4
    assert not any(key.startswith("on") for _, attributes in page.elements for key in attributes)
    assert not page.open, "every element is closed by its own end"
    assert " ".join(EVIL.split()) in page.text


def test_a_hostile_label_stays_on_its_line_of_the_printed_table(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(["digits"])
    put("probe", "digits", "figures.json", {"rows": rows("a\nb\x1b[31m")})
    report.main([])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert "a\\nb\\x1b[31m" in lines[2]


def test_the_printed_table_has_a_row_a_label(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report.main([])
    _, head, row, _ = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["spec", "label", "h"]
    shares = ["92.0%", "90.0%", "97.9%", "94.4%", "84.5%", "88.0%", "46.0%", "38.5%"]
    assert row.split() == ["digits", "label", *shares, "passed"]


def test_nothing_is_asked_of_a_network_and_nothing_runs(project: Path) -> None:
    page, _ = made()
    text = Path("work/report.html").read_text(encoding="utf-8")
    assert not re.search(r"(src|href|action|data|xlink:href)=\"(?!data:|#)", re.sub(r"data-\w+=", "", text))
    assert "#0a0b0" not in text, "a placeholder colour was left in a chart"
    assert not re.search(r"url\((?!#|data:image/webp;base64,[\w+/=]+\))|@import", text)
    addresses = set(re.findall(r"https?://[^\s\"<]*", text))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    policy = next(a["content"] for tag, a in page.elements if tag == "meta" and "http-equiv" in a)
    assert str(policy).startswith("default-src 'none'")
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digests = {base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts}
    assert set(re.findall(r"'sha256-([^']+)'", str(policy))) == digests
    assert "unsafe" not in str(policy).split("script-src")[1]
    assert not re.search(r"fetch|XMLHttp|WebSocket|import\(|eval|innerHTML|document\.write", "".join(scripts))


def test_ids_are_unique_and_every_reference_meets_one(project: Path) -> None:
    write(["digits", "twin"])
    make("twin", "label")
    page, _ = made()
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    text = Path("work/report.html").read_text(encoding="utf-8")
    assert set(re.findall(r"(?:url\(|href=\")#([^)\"]+)", text)) <= set(ids)


def test_the_same_inputs_give_the_same_bytes_in_another_process(project: Path) -> None:
    report.main([])
    files = [path for path in Path("work").rglob("*") if path.is_file() and "report" in str(path)]
    first = {path: path.read_bytes() for path in files if "locks" not in path.parts}
    code = f"import sys; sys.path.insert(0, {str(Path(report.__file__).parents[1])!r}); from stages import report; "
    code += "report.main([]); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONHASHSEED": "7", "HOME": str(project)})
    assert len(first) > 3
    assert all(path.read_bytes() == content for path, content in first.items())


def test_no_path_host_or_date_is_on_the_page(project: Path) -> None:
    report.main([])
    text = Path("work/report.html").read_text(encoding="utf-8")
    assert str(project) not in text
    assert not re.search(r"\b20[2-9]\d-\d\d-\d\d", text)


def test_what_a_stage_refused_stands_on_the_page_with_stage_and_reason(folder: Path) -> None:
    for stage in STAGES[2:]:
        shutil.rmtree(Path("work") / stage)
        put(stage, "digits", "refused.json", {"stage": "check", "reason": "rotation removes orientation"})
    page, metrics = made()
    assert metrics["digits"]["verdict"] == "refused"
    assert "Refused by check: rotation removes orientation" in page.text
    assert page.text.count("So there is no result of pretrain, probe, audit, gallery, judge, export") == 1
    assert not Path("work/report/curves/digits.csv").exists()


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_that_has_not_run_is_named_and_everything_else_is_shown(folder: Path, stage: str) -> None:
    shutil.rmtree(Path("work") / stage)
    page, metrics = made()
    assert f"Not there yet: {stage}." in page.text
    assert metrics["digits"]["verdict"] == ("unfinished" if stage == "judge" else "passed")


def test_a_project_in_which_nothing_has_run_has_a_report(folder: Path) -> None:
    shutil.rmtree("work")
    page, metrics = made()
    assert metrics == {"digits": {"verdict": "unfinished"}}
    assert "Not there yet: shard, check, pretrain, probe, audit, gallery, judge, export." in page.text


@pytest.mark.parametrize(
    ("stage", "file", "content", "told"),
    [
        ("probe", "figures.json", '{"rows": [{', "invalid json"),
        ("probe", "figures.json", '{"rows": [{"label": 1}]}', "rows.0.label"),
        ("audit", "measures.json", "[]", "measures.json"),
        ("pretrain", "curve.csv", "step,loss,starts_at\n0,nan,1\n", "not a table of numbers"),
        ("pretrain", "curve.csv", "step,loss,starts_at\n0,1\n", "not a table of numbers"),
        ("pretrain", "views.png", "<svg onload=alert(1)>", "no PNG"),
        ("export", "refused.json", "{}", "refused.json"),
        ("judge", "verdict.json", None, "verdict.json: no such file"),
    ],
)
def test_a_damaged_output_is_named_and_not_guessed_at(
    folder: Path, stage: str, file: str, content: str | None, told: str
) -> None:
    if content is None:
        (Path("work") / stage / "digits" / file).unlink()
    else:
        put(stage, "digits", file, content)
    page, metrics = made()
    assert metrics["digits"]["verdict"] == "damaged"
    assert f"{stage}: damaged or incomplete." in page.text
    assert told in page.text


def test_a_judgement_shows_its_reasons_and_an_accepted_failure_is_not_called_passed(folder: Path) -> None:
    row = {"measure": "effective_rank.h", "at_least": 9.0, "value": 6.6, "low": 6.0, "high": 7.0, "note": ""}
    failed = {**row, "verdict": "failed", "accepted": "small <classes>"}
    put("judge", "digits", "verdict.json", {"verdict": "failed", "thresholds": "a", "rows": [failed]})
    put("judge", "digits", "gate.json", {"gate": "accepted"})
    page, metrics = made()
    assert metrics["digits"]["verdict"] == "accepted"
    assert "failed, accepted" in page.text
    assert "accepted: small <classes>" in page.text


@pytest.mark.parametrize("spec", ["", "- a list", "data: [", "space: [1]\n", "space: {invariances: x, preserves: 7}\n"])
def test_a_spec_of_any_form_is_shown_as_its_text(folder: Path, spec: str) -> None:
    Path("specs/digits.yaml").write_text(spec)
    page, _ = made()
    assert " ".join(spec.split()) in page.text


def test_a_spec_file_that_is_missing_is_told(folder: Path) -> None:
    Path("specs/digits.yaml").unlink()
    page, _ = made()
    assert "no such file" in page.text


@pytest.mark.parametrize("name", ["../outside", "a/b", "..", ""])
def test_a_name_that_is_a_path_is_refused(folder: Path, name: str) -> None:
    Path("specs/index.yaml").write_text(json.dumps({"specs": {name: {"data": "digits"}}}))
    with pytest.raises(Refusal, match="no path"):
        report.main([])


def test_a_folder_in_the_place_of_the_page_is_one_clear_line(folder: Path) -> None:
    Path("work/report.html").mkdir()
    with pytest.raises(Refusal, match=r"report\.html: is a folder where the report should be"):
        report.main([])


def test_a_long_curve_is_thinned_to_means_of_neighbours() -> None:
    assert thinned([1.0, 3.0, 5.0], points=2) == [2.0, 5.0]
    long = thinned([float(step) for step in range(100_000)])
    assert len(long) <= POINTS
    assert long[0] == 124.5


@pytest.mark.parametrize(
    ("form", "value", "shown"),
    [
        ("percent", 0.84492, "84.5 %"),
        ("points", -0.058824, "−5.9"),
        ("points", 0.385027, "+38.5"),
        ("number", 5.0, "5"),
        ("number", -0.517566, "−0.5176"),
        ("count", 1423, "1\u202f423"),
        ("size", 262144, "256 KiB"),
        ("size", 1, "1 bytes"),
    ],
)
def test_numbers_are_written_as_a_reader_expects(form: str, value: float, shown: str) -> None:
    write_as: Callable[[float], str] = FORMS[form]
    assert write_as(value) == shown


def test_a_loss_without_a_temperature_leaves_that_column_of_the_curve_empty_and_is_not_damaged() -> None:
    table = "step,loss,starts_at,temperature\n0,1.5,2.0,\n1,1.25,2.0,\n"
    assert _columns(table) == {"step": [0, 1], "loss": [1.5, 1.25], "starts_at": [2, 2]}
    assert _columns(table.replace("1.25", "")) is None
