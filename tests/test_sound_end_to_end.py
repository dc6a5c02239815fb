"""Sounds and series from files to bundles, by every stage, as a user runs them; small and synthetic."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ruamel.yaml import YAML
from small import CHECK, ROOT, SPACE, TRAINING, run_stages, whole

from pipeline.bundle import embedding, load
from pipeline.bundle.comparing import compare_bundles
from pipeline.given import command as given_command
from pipeline.shard_names import Names
from pipeline.shards import Shards
from pipeline.spec import Refusal
from stages import search

pytestmark = pytest.mark.slow
soundfile = pytest.importorskip("soundfile", reason="needs soundfile")
pytest.importorskip("soxr", reason="needs soxr")

STAGES = ("shard", "check", "pretrain", "embed", "probe", "audit", "judge", "export")
LOG_MEL = {
    "kind": "log_mel",
    "rate": 8000,
    "window": 25,
    "hop": 10,
    "bins": 32,
    "low": 50,
    "high": 4000,
    "floor": -50,
    "trunk": {"kind": "small", "widths": [8, 16], "strides": [2, 2], "groups": 4},
}
SMALL_1D = {"kind": "small_1d", "widths": [8, 16], "kernels": [5, 3], "strides": [2, 2], "groups": 4}
SOUNDS = [
    {"kind": "time_shift", "ms": 20},
    {"kind": "gain", "db": 6},
    {"kind": "maybe", "probability": 0.5, "of": {"kind": "noise_at_snr", "snr": [10, 40]}},
    {
        "kind": "code",
        "file": "mine/hum.py",
        "name": "Hum",
        "arguments": {"hertz": 50, "level": 0.05},
        "removes": ["noise"],
    },
]


def tones(folder: Path) -> None:
    """Chords of two kinds in three rates, depths and containers, and a file that is cut."""
    random = np.random.default_rng(0)
    for number in range(120):
        kind, rate = ("low", "high")[number % 2], (8000, 16000, 44100)[number % 3]
        time = np.arange(round(rate * random.uniform(0.2, 0.4))) / rate
        pitch = random.uniform(250, 350) * (1 + number % 2)
        wave = sum(np.sin(2 * np.pi * pitch * tone * time) / tone for tone in (1, 2, 3)) * 0.2
        wave = wave * np.hanning(len(wave)) + 0.002 * random.normal(size=len(wave))
        ending, subtype = (("wav", "PCM_16"), ("flac", "PCM_24"), ("ogg", "VORBIS"), ("wav", "PCM_U8"))[number % 4]
        folder.mkdir(parents=True, exist_ok=True)
        soundfile.write(folder / f"{kind}_{number % 5}_{number:03}.{ending}", wave, rate, subtype)
    whole_file = next(folder.glob("*.wav")).read_bytes()
    (folder / "low_0_cut.wav").write_bytes(whole_file[: len(whole_file) // 2])
    (folder / "notes.txt").write_text("no sound")


def courses(folder: Path) -> None:
    """Two-channel courses of two kinds as .npz and CSV, and a file with a hole."""
    random = np.random.default_rng(0)
    for number in range(120):
        kind = ("slow", "fast")[number % 2]
        time, speed = np.arange(48), 1 + number % 2
        values = np.stack([np.sin(speed * time / 8 + random.uniform(0, 6)), random.normal(size=48)], axis=1)
        (folder / kind).mkdir(parents=True, exist_ok=True)
        if number % 3:
            np.savez(folder / kind / f"{number:03}.npz", values=100 + 5 * values)
        else:
            rows = [f"{a:.6f},{b:.6f}" for a, b in 100 + 5 * values]
            (folder / kind / f"{number:03}.csv").write_text("\n".join(["one,two", *rows]) + "\n")
    (folder / "slow" / "hole.csv").write_text("one,two\n1,2\n3,\n")


def dump(file: Path, content: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as stream:
        YAML().dump(json.loads(json.dumps(content)), stream)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which both were run from end to end."""
    root = tmp_path_factory.mktemp("sound")
    tones(root / "tones")
    courses(root / "courses")
    split, audit = {"test": 0.3, "seed": 0}, {**whole()["audit"], "samples": 100, "thresholds": []}
    data = {
        "tones": {
            "source": {"kind": "folder", "train": None, "test": None, "classes": None, "names": "{pitch}_{take}_{}"},
            "input": {
                "kind": "audio",
                "rate": 8000,
                "seconds": 0.25,
                "channels": 1,
                "mix": "mean",
                "longer": "centre",
                "shorter": "centre",
            },
            "labels": ["pitch", "take"],
        },
        "courses": {
            "source": {"kind": "folder", "train": None, "test": None, "classes": "folder"},
            "input": {
                "kind": "series",
                "channels": 2,
                "steps": 40,
                "rate": 1,
                "names": None,
                "layout": "time_first",
                "longer": "centre",
                "shorter": "hold",
            },
            "labels": ["label"],
        },
    }
    series = [{"kind": "window"}, {"kind": "jitter", "share": [0.0, 0.1]}]
    for name, invariances, encoder, label in (
        ("tones", SOUNDS, LOG_MEL, "pitch"),
        ("courses", series, SMALL_1D, "label"),
    ):
        dump(root / "specs" / "data" / f"{name}.yaml", {**data[name], "manifest": None, "split": split})
        spec = {
            **whole(data=name, audit=audit),
            "space": {**SPACE, "invariances": invariances, "preserves": [label]},
            "check": CHECK,
            "training": {**TRAINING, "encoder": encoder},
            "probe": {**whole()["probe"], "labels": [label]},
        }
        spec["export"]["onnx"] = name == "tones"
        dump(root / "specs" / f"{name}.yaml", spec)
    (root / "specs" / "none").write_text("")
    (root / "mine").mkdir()
    shutil.copy(ROOT / "specs" / "examples" / "code" / "hum.py", root / "mine")
    index = {name: {"data": name, "files": files} for name, files in (("tones", "mine"), ("courses", "specs/none"))}
    dump(root / "specs" / "index.yaml", {"data": {name: {"raw": name} for name in data}, "specs": index})
    of_data = (f"{stage}/{name}" for name in data for stage in STAGES)
    run_stages(root, ["validate/", *of_data, "report/"])
    return root


def test_every_file_is_kept_or_told(root: Path) -> None:
    ledger = json.loads((root / "work/shard/tones/ledger.json").read_text())
    assert (ledger["kept"], ledger["refused"]) == (120, {"name without its labels": 1, "cut sound": 1})
    ledger = json.loads((root / "work/shard/courses/ledger.json").read_text())
    assert (ledger["kept"], ledger["refused"]) == (120, {"missing value": 1})
    card = json.loads((root / "work/shard/tones/index.json").read_text())
    assert card["sizes"]["file_rate"] == [8000, 16000, 44100]
    card = json.loads((root / "work/shard/courses/index.json").read_text())
    assert abs(card["mean"][0] - 100) < 2  # in the unit that it was measured in


@pytest.mark.parametrize("name", ["tones", "courses"])
def test_every_stage_ran_and_its_pictures_are_there(root: Path, name: str) -> None:
    for stage in STAGES:
        assert not (root / "work" / stage / name / "refused.json").exists(), stage
    assert (root / "work/pretrain" / name / "views.png").stat().st_size > 500
    assert (root / "work/shard" / name / "card.png").stat().st_size > 500
    assert name in (root / "work/report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "ending"), [("tones", "wav"), ("courses", "npz")])
def test_a_bundle_embeds_raw_files_as_the_stage_did(root: Path, name: str, ending: str) -> None:
    shards, bundle = Shards(root / "work/shard" / name), load(root / "work/export" / name)
    called, known = Names(shards), np.load(root / "work/embed" / name / "test.h.npy")
    rows = [row for row in range(shards.card.splits["test"]) if called("test", row).endswith(ending)][:6]
    files = [root / name / called("test", row) for row in rows]
    np.testing.assert_allclose(np.asarray(bundle.embed(files)), known[rows], atol=1e-4)


def test_own_code_is_judged_as_any_invariance_and_a_bundle_does_without(root: Path) -> None:
    findings = json.loads((root / "work/check/tones/findings.json").read_text())
    of_code = {
        each["finding"]: each for each in findings if each["invariance"] == "code" and each["preserved"] == "pitch"
    }
    assert of_code.keys() == {"erased", "merged", "transported"}
    assert of_code["merged"]["figure"] is not None
    achieved = json.loads((root / "work/audit/tones/achieved.json").read_text())
    assert "code" in json.dumps(achieved)
    waves = [np.sin(np.arange(2000, dtype=np.float32) / each) for each in (3, 5)]
    known = np.asarray(load(root / "work/export/tones").embed(waves))
    (root / "mine" / "hum.py").rename(root / "hum.py")
    try:
        bundle = load(root / "work/export/tones")
        np.testing.assert_array_equal(np.asarray(bundle.embed(waves)), known)
        assert bundle.card["space"]["invariances"][-1]["file"] == "mine/hum.py"
    finally:
        (root / "hum.py").rename(root / "mine" / "hum.py")


def test_windows_of_longer_series_are_judged(root: Path) -> None:
    """Files of 48 steps, windows of 40."""
    findings = json.loads((root / "work/check/courses/findings.json").read_text())
    windowed = {each["finding"]: each["figure"] for each in findings if each["invariance"] == "window"}
    assert windowed.keys() == {"erased", "merged", "transported", "false_positive"}
    assert windowed["false_positive"] < 1, "two windows of a series are not one"
    achieved = json.loads((root / "work/audit/courses/achieved.json").read_text())
    (row,) = [row for row in achieved["transformations"] if row["name"] == "window"]
    assert [point["strength"] for point in row["points"]] == [0.25, 0.5, 0.75, 1.0]
    assert row["points"][-1]["changed"] > 20
    assert row["points"][-1]["layers"]["h"]["movement"]["value"] > 0
    (row,) = [row for row in achieved["boundary"] if row["name"] == "window"]
    assert [each["parameter"] for each in row["parameters"]] == ["place"]


Audited = Callable[[str, str], str]


@pytest.fixture
def audited(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Audited:
    """Audit a bundle on what lies at a path, in this process: what is printed. It writes out/PATH."""
    monkeypatch.chdir(root)
    for name, value in (("WORKERS", "1"), ("DEVICE", "cpu"), ("THREADS", "1")):
        monkeypatch.setenv(f"LATENT_{name}", value)

    def call(bundle: str, samples: str) -> str:
        given_command.main(["--bundle", f"work/export/{bundle}", "--samples", samples, "--output", f"out/{samples}"])
        return capsys.readouterr().out

    return call


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(("name", "several"), [("tones", "clips"), ("courses", "series")])
def test_a_bundle_is_audited_on_files_of_its_own_modality(
    root: Path, audited: Audited, name: str, several: str
) -> None:
    told, out = audited(name, name), root / "out" / name
    ledger = json.loads((out / "ledger.json").read_text())
    assert (ledger["kept"], ledger["seen"]) == (120, 120 + sum(ledger["refused"].values()))
    count = Shards(root / "work/shard" / name).card.splits["test"]
    assert f"the card's reference of {count} test {several}" in told
    judged = [line for line in told.splitlines() if line.startswith("drift ")]
    assert len(judged) > 4
    assert not [line for line in judged if line.endswith("; drifted")], "of the very files that it was trained on"
    assert "outliers (all 120 rows in order of their distance from others" in told
    rows = list(csv.DictReader((out / "rows.csv").read_text().splitlines()))
    some = np.random.default_rng(0).permutation(len(rows))[:5]
    known = load(root / "work/export" / name).embed([root / name / rows[row]["name"] for row in some])
    np.testing.assert_allclose(np.load(out / "embeddings.npy")[some], np.asarray(known), atol=1e-4)
    drift = {each["measure"]: each for each in json.loads((out / "drift.json").read_text())["rows"]}
    assert drift["mean.h"]["low"] <= drift["mean.h"]["expected_without_drift"]
    assert drift["channel.0.mean"]["low"] <= 0 <= drift["channel.0.mean"]["high"]
    assert (out / "curation" / "outliers.png").stat().st_size > 500
    alignment = json.loads((out / "measures.json").read_text())["measures"]["alignment.h"]["value"]
    if name == "tones":
        assert "no views are drawn: the card declares code (mine/hum.py), which no bundle executes" in told
        assert alignment is None
    else:
        assert alignment > 0, "two windows of each series"
        assert {row["label"] for row in json.loads((out / "figures.json").read_text())["rows"]} == {"label"}


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(("name", "word", "several"), [("tones", "clip", "clips"), ("courses", "series", "series")])
def test_it_is_said_in_the_words_of_the_modality(
    root: Path, audited: Audited, tmp_path: Path, name: str, word: str, several: str
) -> None:
    (root / "none").mkdir(exist_ok=True)
    with pytest.raises(Refusal, match=f"--samples none: an empty folder; give the one that holds the {several}$"):
        audited(name, "none")
    (file,) = [path for path in sorted((root / name).rglob("*.*")) if path.suffix in (".wav", ".npz")][:1]
    place = tmp_path / "one.npy"
    embedding.main(["--bundle", f"work/export/{name}", "--input", str(file), "--output", str(place)])
    known = load(root / "work/export" / name).embed([file])
    np.testing.assert_allclose(np.load(place), np.asarray(known), atol=1e-6)
    with pytest.raises(Refusal, match=f"give the path of a {word}, or a name as it stands in them"):
        search.main(["--bundle", f"work/export/{name}", "--vectors", str(place), "--query", "typo"])
    assert 'alt="Picture' not in (root / "work/report.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("one_thread")
def test_series_in_another_unit_have_drifted(root: Path, audited: Audited) -> None:
    for file in sorted((root / "courses" / "slow").glob("*.npz")):
        (root / "fahrenheit").mkdir(exist_ok=True)
        np.savez(root / "fahrenheit" / file.name, values=1.8 * np.load(file)["values"] + 32)
    audited("courses", "fahrenheit")
    drift = {each["measure"]: each for each in json.loads((root / "out/fahrenheit/drift.json").read_text())["rows"]}
    assert drift["channel.0.mean"]["low"] > 20  # spreads
    assert drift["mean.h"]["low"] > drift["mean.h"]["expected_without_drift"]


@pytest.mark.usefixtures("one_thread")
def test_two_bundles_of_sounds_are_compared_on_sounds(root: Path) -> None:
    place = str(root / "work/export/tones")
    content, _ = compare_bundles((place, place), root / "tones")
    assert [row["neighbours"]["value"] for row in content["rows"]][:2] == [1, 1]
    with pytest.raises(Refusal, match="both can read 0 of its files"):
        compare_bundles((place, str(root / "work/export/courses")), root / "tones")


@pytest.mark.usefixtures("one_thread")
def test_files_of_another_modality_are_told_in_one_line(audited: Audited) -> None:
    with pytest.raises(Refusal, match=r"^--samples courses: no clip among 121 files looked at: ") as told:
        audited("tones", "courses")
    assert "\n" not in str(told.value)


def test_the_graph_of_a_sound_encoder_takes_waves(root: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    waves = Shards(root / "work/shard/tones").images("test")[:3]
    graph = onnxruntime.InferenceSession(root / "work/export/tones/model.onnx", providers=["CPUExecutionProvider"])
    found = graph.run(["h"], {"pixels": waves})[0]
    np.testing.assert_allclose(found, np.load(root / "work/embed/tones/test.h.npy")[:3], atol=1e-3)


def test_an_image_invariance_on_sound_is_refused_with_its_path(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "specs", tmp_path / "specs")
    spec = YAML(typ="safe").load((root / "specs/tones.yaml").read_text())
    spec["space"]["invariances"] = [{"kind": "shift", "pixels": 2}]
    spec["training"]["encoder"] = {"kind": "small", "widths": [8], "strides": [2], "groups": 4}
    dump(tmp_path / "specs/tones.yaml", spec)
    for name in ("tones", "courses", "mine"):
        (tmp_path / name).mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "stages.validate"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 1
    assert "space.invariances[0]" in done.stderr
    assert "is for image, and the data is audio; known for it: background, band_filter" in done.stderr
    assert "training.encoder" in done.stderr
    assert "small reads pictures, the data is audio; use small_1d, log_mel" in done.stderr
