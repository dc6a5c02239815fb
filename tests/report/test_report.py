"""The page says what the stages wrote: figures equal metrics.json, names are inert, gaps are told, bytes repeat."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from pipeline.report import charts
from pipeline.report.charts import POINTS, thinned
from pipeline.report.collect import STAGES, _columns
from pipeline.report.forms import FORMS
from pipeline.spec import Refusal
from stages import report

EVIL = "<img src=x onerror=alert(1)>\"'\u202e$x^{\n</script>"
PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU"
    b"\x00\x00\x00\nIDATx\x9cc`\x00\x00\x00\x02\x00\x01H\xaf\xa4q\x00\x00\x00\x00IEND\xaeB`\x82"
)
SPEC = """# a comment with <b>tags</b>
data: {data}
space:
  invariances:
    - {{kind: rotation, degrees: 15}}
  preserves: [label]
export: {{description: "{description}"}}
"""
ACCURACY = {  # layer, split → accuracy: h is worse than raw pixels where nothing moves
    ("h", "test"): 0.919786,
    ("h", "view0"): 0.84492,
    ("raw", "test"): 0.97861,
    ("raw", "view0"): 0.459893,
    ("z", "test"): 0.9,
    ("z", "view0"): 0.88,
    ("untrained", "test"): 0.94385,
    ("untrained", "view0"): 0.385027,
}


@pytest.fixture
def folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same project; charts, which take most of the time, are not drawn."""
    monkeypatch.setattr(charts, "_svg", lambda draw, words: f'<svg aria-label="{words}"></svg>')
    return project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one whole spec, ``digits``."""
    monkeypatch.chdir(tmp_path)
    Path("specs").mkdir()
    write(["digits"])
    make("digits", "label")
    return tmp_path


def write(names: list[str], data: str = "digits") -> None:
    index = {"data": {data: {"raw": "specs/none"}}, "specs": {name: {"data": data} for name in names}}
    Path("specs/index.yaml").write_text(json.dumps(index))
    for name in names:
        Path(f"specs/{name}.yaml").write_text(SPEC.format(data=json.dumps(data), description="by form"))


def put(stage: str, name: str, file: str, content: Any) -> None:
    path = Path("work") / stage / name / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def make(name: str, label: str, data: str = "digits", drift: float = 0.0) -> None:
    """Everything that the stages write, in small."""
    canvas = {"channels": 1, "height": 12, "width": 12, "fit": "pad", "background": 0}
    column = {"kind": "class", "classes": ["0", label], "counts": {"train": [700, 723], "test": [200, 174]}}
    card = {"name": data, "input": canvas, "splits": {"train": 1423, "test": 374}, "columns": {label: column}}
    card |= {"mean": [0.1], "std": [0.3], "shards": [{"count": 1423, "bytes": 2918400}], "fingerprint": "f" * 64}
    put("shard", data, "index.json", card)
    put("shard", data, "ledger.json", {"seen": 1800, "kept": 1797, "refused": {"cut short": 3}, "notes": []})
    cost: dict[str, Any] = dict.fromkeys(("samples", "views", "matrix_entries", "product_operations"), 65536)
    cost |= {"candidates": 255, "log_k": 5.541263545158426, "negatives_per_anchor": 254, "gathered_elements": 9}
    cost |= {"matrix_bytes": {"float32": 262144}, "gathered_bytes": {"float32": 65536}}
    cost |= {
        "false_negatives_per_anchor": {label: 25.468500870894736},
        "same_class_share": {label: 0.10026968846808951},
    }
    put("check", name, "cost.json", cost)
    put("check", name, "findings.json", [])
    put("check", name, "gate.json", {"gate": "pass"})
    summary = {"steps": 1320, "epochs": 120, "candidates": 255, "starts_at": 5.541264, "loss": 0.228341}
    summary |= {"positive_similarity": 0.954127, "negative_similarity": -0.000715, "parameters": 92896}
    put("pretrain", name, "summary.json", summary)
    steps = [f"{step},{step // 11},{5 / (1 + step)},5.541,0.9,0.1,{1 + step / 300},{drift}" for step in range(1320)]
    head = "step,epoch,loss,starts_at,positive_similarity,negative_similarity,effective_rank,key_drift"
    put("pretrain", name, "curve.csv", "\n".join([head, *steps, ""]))
    (Path("work/pretrain") / name / "views.png").write_bytes(PNG)
    put("probe", name, "figures.json", {"rows": rows(label)})
    pair = {"value": 0.5, "low": 0.4, "high": 0.6, "count": 374, "split": "view0, view1", "note": ""}
    rank = {"value": 6.62848, "low": 6.1, "high": 7.1, "count": 374, "split": "test", "note": ""}
    nothing = {"value": None, "low": None, "high": None, "count": 0, "split": "test", "note": "rows of length zero"}
    measures = {f"{what}_similarity.{layer}": pair for what in ("positive", "negative") for layer in "hz"}
    measures |= {"effective_rank.h": rank, "effective_rank.z": nothing, f"neighbour_purity.{label}.h": pair}
    counts = {"positive_similarity": [0, 1, 5, 9], "negative_similarity": [3, 9, 2, 0]}
    similarities = {"bins": 4, "low": -1.0, "high": 1.0, "counts": {"h": counts, "z": counts}}
    spectra = {"h": [0.6, 0.3, 0.1], "z": [0.4, 0.3, 0.3]}
    put("audit", name, "measures.json", {"measures": measures, "similarities": similarities, "spectra": spectra})
    demand = {"measure": f"probe.{label}.knn.h.view0", "at_least": 0.75, "value": 0.84492, "low": 0.8, "high": 0.88}
    demand |= {"verdict": "passed", "note": "", "accepted": None}
    put("judge", name, "verdict.json", {"verdict": "passed", "thresholds": "a" * 64, "rows": [demand]})
    put("judge", name, "gate.json", {"gate": "pass"})
    bundle = {"identity": "b" * 64, "space_identity": "c" * 64, "weights": "d" * 64, "layer": "h"}
    put("export", name, "card.json", bundle)


def rows(label: str) -> list[dict[str, Any]]:
    """Both probes on every layer and split, and one shuffled control that could not be computed."""
    plain = {"label": label, "control": None, "count": 374, "gallery": 1423, "chance": 0.106114, "confidence": 0.95}
    found = []
    for (layer, split), accuracy in ACCURACY.items():
        for probe, settings in (("knn", {"k": 20, "temperature": 0.1}), ("linear", {"regularization": 0.001})):
            row = {**plain, **settings, "layer": layer, "split": split, "probe": probe, "note": ""}
            found.append({**row, "accuracy": accuracy, "low": accuracy - 0.02, "high": accuracy + 0.02})
    control = {"control": "shuffled labels", "accuracy": None, "low": None, "high": None, "note": "not computable"}
    return [*found, {**found[0], **control}]


class Page(HTMLParser):
    """Every element, the text, and every figure with the spec that it stands in."""

    VOID = frozenset(("meta", "link", "img", "br"))

    def __init__(self, text: str):
        super().__init__()
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.figures: list[tuple[str, str, str, str]] = []  # spec, name, full value, as shown
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        tag, attributes = self.open[-1] if self.open else ("", {})
        if tag == "data" and "data-figure" in attributes:
            spec = next(each["data-spec"] for _, each in reversed(self.open) if "data-spec" in each)
            self.figures.append((str(spec), str(attributes["data-figure"]), str(attributes["value"]), data))

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


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
    assert {name for name in metrics["digits"] if "knn" in name or "linear" in name} <= named
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
    assert "On images as they are, h is worse than raw pixels by 5.9 points" in page.text
    assert "worse than the untrained encoder by 2.4 (94.4 %)" in page.text


def test_a_measure_that_could_not_be_computed_says_why(folder: Path) -> None:
    page, _ = made()
    assert "rows of length zero" in page.text
    assert "not computable" in page.text


def test_hostile_names_and_labels_are_inert(project: Path) -> None:
    name = EVIL.replace("/", "").replace("\n", "")
    write([name], data="evil<i>")
    make(name, EVIL, data="evil<i>")
    put("judge", name, "verdict.json", {"verdict": "failed", "thresholds": EVIL, "rows": []})
    shutil.rmtree(Path("work/export") / name)
    put("export", name, "refused.json", {"stage": EVIL, "reason": EVIL})
    page, metrics = made()
    assert list(metrics) == [name]
    images = [attributes for tag, attributes in page.elements if tag == "img"]
    assert len(images) == 1
    assert str(images[0]["src"]).startswith("data:image/png;base64,")
    assert not {"script", "iframe", "object", "embed", "form", "input"} & {tag for tag, _ in page.elements}
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
    assert not re.search(r"url\((?!#)|@import|<script", text)
    addresses = set(re.findall(r"https?://[^\s\"<]*", text))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    policy = next(a["content"] for tag, a in page.elements if tag == "meta" and "http-equiv" in a)
    assert str(policy).startswith("default-src 'none'")


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
    first = {path: path.read_bytes() for path in Path("work").rglob("*") if path.is_file() and "report" in str(path)}
    first.pop(Path("work/locks/report-curves"))
    code = f"import sys; sys.path.insert(0, {str(Path(report.__file__).parents[1])!r}); from stages import report; "
    code += "report.main([]); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONHASHSEED": "7", "HOME": str(project)})
    assert len(first) == 3
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
    assert page.text.count("So there is no result of pretrain, probe, audit, judge, export") == 1
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
    assert "Not there yet: shard, check, pretrain, probe, audit, judge, export." in page.text


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
