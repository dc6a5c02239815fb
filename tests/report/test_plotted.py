"""Every chart of ``dvc plots`` is what the stages wrote, and ``dvc metrics`` tells what became of a threshold."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from reported import EVIL, audit_more, make, put, write
from ruamel.yaml import YAML

from pipeline.report import charts
from pipeline.report.plotted import KINDS, safe
from stages import report

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one whole spec, ``digits``; charts of the page, which take most of the time, are not drawn."""
    monkeypatch.setattr(charts, "as_svg", lambda draw, words: f'<svg aria-label="{words}"></svg>')
    monkeypatch.chdir(tmp_path)
    Path("specs").mkdir()
    whole("label")
    return tmp_path


def whole(label: str) -> None:
    write(["digits"])
    make("digits", label)
    audit_more("digits", label)
    few = [{**row, "probe": "few_10", "accuracy": 0.25} for row in probed() if row["probe"] == "linear"]
    put("probe", "digits", "figures.json", {"rows": [*probed(), *few]})
    geometry = json.loads(Path("work/audit/digits/geometry.json").read_text())
    near = {"value": 0.75, "low": 0.7, "high": 0.8, "count": 374, "note": "", "neighbours": 5}
    for layer in geometry["layers"].values():
        layer["purity"] = {label: {"chance": 0.5, "at": [near, {**near, "neighbours": 20, "value": None}]}}
    put("audit", "digits", "geometry.json", geometry)


def probed() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(Path("work/probe/digits/figures.json").read_text())["rows"]
    return rows


def rows_of(file: str) -> list[dict[str, float]]:
    with open(f"work/report/plots/{file}", encoding="utf-8", newline="") as stream:
        return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(stream)]


def test_every_kind_of_chart_has_the_numbers_of_the_stages() -> None:
    report.main([])
    assert rows_of("spectrum/digits.csv") == [
        {"direction": 1, "h": 0.6, "z": 0.4},
        {"direction": 2, "h": 0.3, "z": 0.3},
        {"direction": 3, "h": 0.1, "z": 0.3},
    ]
    positives = [row["positive"] for row in rows_of("similarities/digits.h.csv")]
    assert positives == pytest.approx([0, 1 / 15, 5 / 15, 9 / 15])
    assert [row["cosine"] for row in rows_of("similarities/digits.z.csv")] == [-0.75, -0.25, 0.25, 0.75]
    assert rows_of("movement/digits.rotation.csv") == [
        {"strength": 0.25, "h": 0.03125, "z": 0.015625},
        {"strength": 1.0, "h": 0.09375, "z": 0.046875},
    ]
    assert [row["strength"] for row in rows_of("movement/digits.erase.csv")] == [1.0]  # the other changed too few
    assert not Path("work/report/plots/movement/digits.hue.csv").exists()  # it cannot be used at all
    assert rows_of("purity/digits.label.csv") == [{"neighbours": 5, "h": 0.75, "z": 0.75}]  # 20 has no value
    assert [row["h"] for row in rows_of("negatives/digits.csv")] == pytest.approx([17.125, 32.125, 152.125])
    assert [row["z"] for row in rows_of("gradient/digits.label.csv")] == pytest.approx([0.65, 0.6, 0.2])
    assert [(row["percent"], row["h"]) for row in rows_of("labels/digits.label.csv")] == [(10, 0.25), (100, 0.919786)]


def test_dvc_yaml_names_the_axes_of_every_kind_of_chart() -> None:
    content = YAML(typ="safe").load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))
    named = {Path(path).name: (axes["x"], tuple(axes["y"])) for each in content["plots"] for path, axes in each.items()}
    named.pop("curves")
    assert named == KINDS


def test_what_has_not_run_has_no_chart_and_any_label_is_a_file_name() -> None:
    whole(EVIL)
    report.main([])
    assert len(rows_of(f"purity/digits.{safe(EVIL)}.csv")) == 1
    assert safe("a/b") != safe("a_b")
    long = [safe("x" * 300), safe("x" * 299 + "y")]
    assert long[0] != long[1]
    assert len(long[0]) == 100
    shutil.rmtree("work/audit")
    shutil.rmtree("work/probe")
    report.main([])
    assert not [path for path in Path("work/report/plots").rglob("*") if path.is_file()]


def test_metrics_tell_what_became_of_each_threshold_and_why() -> None:
    row = {"measure": "effective_rank.h", "value": 6.6, "low": 6.0, "high": 7.0, "note": "", "accepted": None}
    rows = [
        {**row, "at_least": 5.0, "verdict": "passed"},
        {**row, "at_most": 6.5, "verdict": "inconclusive"},
        {**row, "measure": "matching.h", "at_least": 0.9, "verdict": "failed", "accepted": "few pictures"},
    ]
    reasons = [{"reason": each, "sentence": each, "measures": []} for each in ("lost", "not achieved")]
    put("judge", "digits", "verdict.json", {"verdict": "failed", "thresholds": "a", "rows": rows, "reasons": reasons})
    report.main([])
    metrics = json.loads(Path("work/report/metrics.json").read_text())["digits"]
    assert {key: value for key, value in metrics.items() if key.startswith("judged.")} == {
        "judged.effective_rank.h": "passed",
        "judged.effective_rank.h.at_most": "inconclusive",
        "judged.matching.h": "failed, accepted",
    }
    assert metrics["reasons"] == "lost; not achieved"


@pytest.mark.slow
def test_dvc_shows_and_compares_all_of_it(project: Path) -> None:
    content = YAML(typ="safe").load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))
    stage = {
        "cmd": "true",
        "outs": ["work/report/curves", "work/report/plots"],
        "metrics": ["work/report/metrics.json"],
    }
    assert {key: content["stages"]["report"][key] for key in ("outs", "metrics")} == {
        "outs": ["work/report.html", *stage["outs"]],
        "metrics": stage["metrics"],
    }
    with open("dvc.yaml", "w", encoding="utf-8") as file:
        YAML().dump({"stages": {"report": stage}, "plots": content["plots"]}, file)

    def ran(*command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    dvc = (sys.executable, "-m", "dvc")
    ran("git", "init", "-q")
    ran(*dvc, "init", "-q")
    report.main([])
    ran(*dvc, "commit", "-q", "-f", "report")
    ran("git", "add", "-A")
    ran("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "before")

    audited = json.loads(Path("work/audit/digits/measures.json").read_text())
    audited["measures"]["effective_rank.h"]["value"] = 9.5
    audited["spectra"]["h"] = [0.5, 0.25, 0.25]
    put("audit", "digits", "measures.json", audited)
    judged = json.loads(Path("work/judge/digits/verdict.json").read_text())
    judged["rows"][0]["verdict"] = judged["verdict"] = "failed"
    put("judge", "digits", "verdict.json", judged)
    for each in ("curves", "plots"):  # as DVC does before a stage runs again
        shutil.rmtree(Path("work/report") / each)
    report.main([])
    ran(*dvc, "commit", "-q", "-f", "report")

    shown = json.loads(ran(*dvc, "metrics", "show", "--json"))[""]["data"]["work/report/metrics.json"]["data"]
    assert shown == json.loads(Path("work/report/metrics.json").read_text())
    changed = json.loads(ran(*dvc, "metrics", "diff", "--json"))["work/report/metrics.json"]
    assert changed["digits.effective_rank_h"]["new"] == 9.5
    assert changed["digits.effective_rank_h"]["diff"] == pytest.approx(9.5 - 6.62848)
    assert (changed["digits.verdict"]["old"], changed["digits.verdict"]["new"]) == ("passed", "failed")
    assert changed["digits.judged.probe.label.knn.h.view0"]["new"] == "failed"
    assert set(changed) == {
        "digits.effective_rank_h",
        "digits.verdict",
        "digits.judged.probe.label.knn.h.view0",
    }

    plots = json.loads(ran(*dvc, "plots", "diff", "--json", "HEAD"))
    assert not plots.get("errors"), plots["errors"]
    files = {path for kind in KINDS for path in Path("work/report/plots", kind).glob("*.csv")}
    files |= set(Path("work/report/curves").glob("*.csv"))
    assert {Path(name) for name in plots["data"]} == files
    (spectrum,) = plots["data"]["work/report/plots/spectrum/digits.csv"]
    assert set(spectrum["revisions"]) == {"HEAD", "workspace"}
    assert "0.25" in json.dumps(spectrum)
