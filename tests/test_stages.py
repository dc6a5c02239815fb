"""The stages as a user meets them: every bad input is one clear line and exit code 1, and nothing is left half written.

A stage is called in this process through ``stages.run``; where the process itself is limited, in one of its own.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from small import DATA, ROOT, SPACE, TRAINING, whole

import stages
from pipeline.bundle.graph import PACKAGES
from pipeline.spec import parse, read_yaml
from pipeline.specification import Specification

GRAYSCALE = {"kind": "grayscale", "probability": 0.2}
Call = Callable[..., tuple[int, list[str]]]


def write(file: Path, content: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as stream:
        YAML(typ="safe").dump(content, stream)


def mine(**changes: Any) -> dict[str, Any]:
    sections = {
        "data": "mine",
        "space": SPACE,
        "training": {**TRAINING, "epochs": 1, "schedule": {"kind": "constant"}},
        "check__words": {},
        "probe__labels": ["shape", "hue"],
        "audit__thresholds": [{"measure": "effective_rank.h", "at_least": 1.0}],
    }
    return whole(**{**sections, **changes})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with one spec, ``mine``, on 96 pictures."""
    monkeypatch.chdir(tmp_path)
    write(Path("specs/mine.yaml"), mine())
    write(Path("specs/data/mine.yaml"), DATA)
    Path("specs/none").write_text("")
    shutil.copy(ROOT / "specs/index.yaml", "specs/index.yaml")
    text = Path("specs/index.yaml").read_text()
    lines = [line.replace("digits", "mine") for line in text.splitlines() if "  shapes:" not in line]
    Path("specs/index.yaml").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("LATENT_DEVICE", "cpu")
    monkeypatch.setenv("LATENT_THREADS", "1")
    return tmp_path


@pytest.fixture
def call(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Call a stage as its command line does: (exit code, lines that the user reads)."""

    def called(stage: str, *arguments: str) -> tuple[int, list[str]]:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", [f"stages.{stage}", *arguments])
        with pytest.raises(SystemExit) as ended:
            stages.run(importlib.import_module(f"stages.{stage}").main)
        captured = capsys.readouterr()
        code = ended.value.code
        if isinstance(code, str):  # what sys.exit prints to the standard error
            return 1, code.splitlines()
        return int(code or 0), captured.out.splitlines()

    return called


def left_over(root: Path = Path("work")) -> list[Path]:
    """What only a stage that is running may have: hidden partial and old outputs."""
    return [path for path in root.rglob(".*") if path.name not in (".", "..")]


def ran(call: Call, *names: str) -> None:
    for stage in names:
        code, lines = call(stage, "mine")
        assert code == 0, (stage, lines)


# -- the whole chain ---------------------------------------------------------------------------------------------------

CHAIN = ("shard", "check", "pretrain", "embed", "probe", "audit", "gallery", "judge", "export")


def test_a_spec_goes_through_every_stage(call: Call) -> None:
    assert call("validate") == (0, ["every spec is valid"])
    ran(call, *CHAIN)
    code, lines = call("verdict")
    assert (code, lines) == (0, ["every space went through: mine"])
    assert call("report")[0] == 0
    assert left_over() == []
    left = {"README.md", "card.json", "encoder.safetensors", "projection.safetensors"}
    assert {path.name for path in Path("work/export/mine").iterdir()} == left
    costs = json.loads(Path("work/check/mine/cost.json").read_text())
    assert (costs["samples"], costs["candidates"]) == (16, 31)


CUT = {"kind": "resized_crop", "area": [0.3, 1.0], "ratio": [0.75, 1.3333]}
PLANS = {
    "a preset": {"space__preset": "byol", "space__invariances": None, "space__views": None},
    "multi-crop": {
        "space__views": {
            "kind": "multi_crop",
            "global_crop": CUT,
            "local_crop": CUT,
            "local_views": 2,
            "local_scale": 0.5,
        }
    },
    "partners, as they are": {"space__invariances": [], "space__views": {"kind": "partners", "column": "shape"}},
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_every_plan_of_views_goes_through_every_stage(call: Call, plan: dict[str, Any]) -> None:
    write(Path("specs/mine.yaml"), mine(**plan))
    assert call("validate")[0] == 0
    ran(call, *CHAIN)
    assert call("report")[0] == 0


def test_a_spec_is_shown_as_it_is_understood(call: Call) -> None:
    write(Path("specs/mine.yaml"), mine(**PLANS["a preset"]))
    code, lines = call("validate", "mine", "--resolved")
    assert code == 0
    assert "  preset: null" in lines
    assert "  - {kind: horizontal_flip, probability: 0.5}" in lines
    short = parse(read_yaml(Path("specs/mine.yaml")), Specification, "mine")
    Path("specs/mine.yaml").write_text("\n".join(lines) + "\n")
    assert call("validate", "mine") == (0, ["mine: valid"])
    assert parse(read_yaml(Path("specs/mine.yaml")), Specification, "mine") == short


def test_a_second_run_writes_the_same_bytes(call: Call) -> None:
    def contents() -> dict[str, bytes]:
        files = [path for path in Path("work").rglob("*") if path.is_file() and "logs" not in path.parts]
        return {str(path): path.read_bytes() for path in files}

    ran(call, *CHAIN)
    first = contents()
    for remembered in (True, False):
        if not remembered:
            shutil.rmtree("work/checkpoints")
        ran(call, *CHAIN)
        second = contents()
        assert first.keys() == second.keys()
        assert [name for name in first if first[name] != second[name]] == []


def test_a_training_that_was_not_recorded_only_writes_its_output_again(call: Call) -> None:
    """As after a kill between the end of the training and DVC's record of it: DVC removes the output, and starts."""
    ran(call, "shard", "check", "pretrain")
    output, log = Path("work/pretrain/mine"), Path("work/logs/mine/pretrain-0.jsonl")
    before = {path.name: path.read_bytes() for path in output.iterdir()}
    steps = log.read_text()
    shutil.rmtree(output)
    ran(call, "pretrain")
    assert {path.name: path.read_bytes() for path in output.iterdir()} == before
    assert log.read_text() == steps, "no step was made"
    (kept,) = Path("work/checkpoints").iterdir()
    assert sorted(path.name for path in kept.iterdir()) == ["finished", f"step-{len(steps.splitlines()):08d}"]


def test_learned_scalars_go_through_every_stage(call: Call) -> None:
    learned = {"kind": "learned", "start": 0.2, "low": 0.05, "high": 0.5}
    objective = {"kind": "sigmoid", "bias": -3.0}
    write(Path("specs/mine.yaml"), mine(space__temperature=learned, space__objective=objective))
    ran(call, *CHAIN)
    summary = json.loads(Path("work/pretrain/mine/summary.json").read_text())
    assert sorted(summary["learned"]) == ["bias", "temperature"]
    assert 0.05 < summary["temperature"] < 0.5


def test_a_space_without_a_temperature_goes_through_every_stage(call: Call) -> None:
    triplet = {"kind": "triplet", "margin": 0.5}
    changes = {"space__objective": triplet, "space__metric": "squared_euclidean", "space__temperature": None}
    write(Path("specs/mine.yaml"), mine(**changes))
    ran(call, *CHAIN)
    assert json.loads(Path("work/pretrain/mine/summary.json").read_text())["temperature"] is None
    assert call("report")[0] == 0


# -- refusals travel ---------------------------------------------------------------------------------------------------


def test_a_contradiction_is_a_result_that_every_later_stage_repeats_and_the_verdict_names(call: Call) -> None:
    content = mine(space__invariances=[GRAYSCALE], space__preserves=["shape", "hue"])
    write(Path("specs/mine.yaml"), content)
    ran(call, "shard", "check")
    reason = "grayscale removes hue, which preserves says must stay readable"
    assert json.loads(Path("work/check/mine/gate.json").read_text()) == {"gate": "fail", "reason": reason}
    finding, *_ = json.loads(Path("work/check/mine/findings.json").read_text())
    assert (finding["finding"], finding["invariance"], finding["preserved"]) == ("contradiction", "grayscale", "hue")
    for stage in CHAIN[2:]:
        code, lines = call(stage, "mine")
        assert code == 0
        assert lines == [f"{stage} mine: not run; check refused it: {reason}"]
        assert [path.name for path in Path(f"work/{stage}/mine").iterdir()] == ["refused.json"]
        assert json.loads(Path(f"work/{stage}/mine/refused.json").read_text()) == {
            "stage": "check",
            "reason": reason,
        }
    assert call("report")[0] == 0
    assert "removes hue" in Path("work/report.html").read_text()
    code, lines = call("verdict")
    assert code == 1
    assert lines[0] == f"mine: refused by check: {reason}"
    assert not Path("work/verdict/all").exists()


def test_an_accepted_contradiction_is_trained_and_its_reason_travels(call: Call) -> None:
    accept = [{"finding": "contradiction", "invariance": "grayscale", "preserved": "hue", "reason": "a stain's hue"}]
    graph = all(importlib.util.find_spec(name) for name in PACKAGES)
    space = {"space__invariances": [GRAYSCALE], "space__preserves": ["shape", "hue"]}
    write(Path("specs/mine.yaml"), mine(**space, check__accept=accept, export__onnx=graph))
    ran(call, *CHAIN)
    assert json.loads(Path("work/check/mine/gate.json").read_text()) == {"gate": "accepted"}
    card = json.loads(Path("work/export/mine/card.json").read_text())
    assert [sentence.rpartition("; accepted: ")[2] for sentence in card["accepted"]][:1] == ["a stain's hue"]
    top = Path("work/export/mine/README.md").read_text().partition("## ")[0]
    assert "Accepted in spite of what was found" in top
    assert "a stain's hue" in top
    assert set(card["data"]["columns"]) == {"shape", "hue"}
    assert 0 < card["data"]["columns"]["shape"]["prior"] < 1
    assert card["trained_with"]["global_batch"] == TRAINING["global_batch"]
    assert (Path("work/export/mine/model.onnx").is_file(), list(card["files"])) == (graph, ["model.onnx"] * graph)
    assert call("verdict")[0] == 0


def test_a_missed_threshold_keeps_the_encoder_in_and_nothing_else(call: Call) -> None:
    write(Path("specs/mine.yaml"), mine(audit__thresholds=[{"measure": "effective_rank.h", "at_least": 16.0}]))
    ran(call, *CHAIN)
    assert json.loads(Path("work/judge/mine/gate.json").read_text()) == {"gate": "fail"}
    assert [path.name for path in Path("work/export/mine").iterdir()] == ["refused.json"]
    code, lines = call("verdict")
    assert code == 1
    assert lines[0].startswith("mine: refused by judge: ")


def test_the_verdict_does_not_pass_what_was_never_exported(call: Call) -> None:
    code, lines = call("verdict")
    assert code == 1
    assert lines[0].startswith("mine: refused by verdict: nothing was exported yet")


# -- one line a fault --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", [*CHAIN[1:], "validate"])
def test_a_spec_that_is_not_there_offers_the_nearest(call: Call, stage: str) -> None:
    assert call(stage, "mien") == (1, ["specs/mien.yaml: no such spec; did you mean 'mine'?"])
    assert not Path("work").exists()


def test_a_path_that_is_not_there_offers_the_nearest_beside_it(call: Call) -> None:
    assert call("check", "specs/mines.yaml") == (1, ["specs/mines.yaml: no such spec; did you mean 'mine'?"])
    assert call("shard", "mien") == (1, ["specs/data/mien.yaml: no such spec; did you mean 'mine'?"])


def test_a_spec_may_be_named_by_its_path(call: Call) -> None:
    assert call("validate", "specs/mine.yaml")[0] == 0
    assert call("shard", "specs/data/mine.yaml")[0] == 0
    assert call("check", "specs/mine.yaml")[0] == 0


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"training__epoch": 3}, "specs/mine.yaml: training.epoch = 3: unknown key; did you mean 'epochs'?"),
        ({"training__epochs": "3"}, 'specs/mine.yaml: training.epochs = "3": must be a valid integer'),
        ({"training__encoder__kind": "tiny"}, 'specs/mine.yaml: training.encoder.kind = "tiny": unknown kind; known: '),
        ({"data": "mien"}, "specs/mine.yaml: data = \"mien\": no such data set; did you mean 'mine'?"),
        ({"space__temperature": 0}, "must be greater than 0"),
        (
            {"training__global_batch": 512},
            "specs/mine.yaml: training.global_batch = 512: larger than the data set",
        ),
        (
            {"training__global_batch": 95},
            "specs/mine.yaml: training.global_batch = 95: larger than the training split",
        ),
    ],
)
def test_check_tells_a_wrong_spec_in_one_line(call: Call, changes: dict[str, Any], line: str) -> None:
    ran(call, "shard")
    write(Path("specs/mine.yaml"), mine(**changes))
    code, lines = call("check", "mine")
    assert code == 1
    assert len(lines) == 1
    assert line in lines[0]
    assert not Path("work/check").exists()


def test_validate_tells_the_faults_of_all_specs_and_touches_nothing(call: Call) -> None:
    write(Path("specs/other.yaml"), mine(training__epochs=0))
    write(Path("specs/mine.yaml"), mine(space__temperature=-1, probe__k=0))
    text = Path("specs/index.yaml").read_text()
    Path("specs/index.yaml").write_text(text + "  other: {data: mine, files: specs/none}\n")
    code, lines = call("validate")
    assert code == 1
    assert len(lines) == 3
    for part in ("specs/mine.yaml: space.temperature", "specs/mine.yaml: probe.k", "specs/other.yaml: training.epochs"):
        assert sum(line.startswith(part) for line in lines) == 1
    assert not Path("work").exists()


def test_validate_tells_what_is_wrong_with_the_machines_settings(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("machine.yaml").write_text("threads: 0\n")
    assert call("validate") == (1, ["machine.yaml: threads = 0: must be greater than or equal to 1"])
    Path("machine.yaml").unlink()
    monkeypatch.setenv("LATENT_LOGGERS", "tensorbord")
    code, lines = call("validate")
    assert code == 1
    assert len(lines) == 1
    assert lines[0].startswith('environment: LATENT_LOGGERS[0] = "tensorbord": must be ')
    assert not Path("work").exists()


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"split": {"test": 1e-9, "seed": 0}}, "the test split is empty; raise split.test or add samples"),
        ({"split": {"test": 0.999999, "seed": 0}}, "to train on, at least 2 are needed"),
        ({"source": {"kind": "shapes", "pictures": 96, "seed": 0, "watermark": 1e-9}, "labels": ["watermark"]}, "only"),
        ({"split": None}, "specs/data/mine.yaml: split = null: must be given"),
    ],
)
def test_data_that_cannot_be_used_is_one_line(call: Call, changes: dict[str, Any], line: str) -> None:
    write(Path("specs/data/mine.yaml"), {**DATA, **changes})
    code, lines = call("shard", "mine")
    assert code == 1
    assert len(lines) == 1
    assert line in lines[0]
    assert not Path("work/shard/mine").exists()
    assert left_over() == []


def test_ranks_that_do_not_divide_the_batch_are_told_once_and_before_any_starts(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran(call, "shard", "check")
    monkeypatch.setenv("LATENT_PROCESSES", "3")
    code, lines = call("pretrain", "mine")
    assert code == 1
    assert lines == [
        "specs/mine.yaml: training.global_batch = 16: 3 ranks do not divide it; take 15, or another number of "
        "processes in machine.yaml"
    ]


def test_what_the_ranks_refuse_is_told_once(call: Call) -> None:
    wild = {"kind": "sgd", "learning_rate": 1e30, "momentum": 0.0, "weight_decay": 0.0}
    write(Path("specs/mine.yaml"), mine(training__optimizer=wild))
    ran(call, "shard", "check")
    done = subprocess.run(
        [sys.executable, "-m", "stages.pretrain", "mine"],
        env={**os.environ, "LATENT_PROCESSES": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("pretrain mine:")]
    assert len(lines) == 1
    start = "specs/mine.yaml: training.optimizer.learning_rate = 1e+30: step 1: z is no longer finite (samples "
    end = "; lower it or raise space.temperature (0.2); `python -m stages.pretrain mine --replay` shows the batch"
    assert lines[0].startswith(start)
    assert lines[0].endswith(end)
    code, replayed = call("pretrain", "mine", "--replay")
    assert code == 0
    assert any(line.startswith("  again: step 1: z is no longer finite") for line in replayed)
    assert Path("work/logs/mine/diverged.png").is_file()
    assert not Path("work/pretrain/mine").exists()
    assert left_over() == []


@pytest.mark.parametrize(
    ("stage", "before"),
    [("check", "shard"), ("pretrain", "check"), ("embed", "shard"), ("probe", "embed"), ("export", "judge")],
)
def test_a_stage_before_its_time_names_the_one_to_run(call: Call, stage: str, before: str) -> None:
    code, lines = call(stage, "mine")
    assert code == 1
    assert len(lines) == 1
    assert "dvc repro" in lines[0]
    assert before in lines[0]


# -- what stands in the way --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", CHAIN)
def test_a_file_where_the_output_folder_should_be_is_named_and_left_alone(call: Call, stage: str) -> None:
    ran(call, *CHAIN)
    output = Path(f"work/{stage}/mine")
    shutil.rmtree(output)
    output.write_text("precious")
    code, lines = call(stage, "mine")
    assert (code, lines) == (1, [f"{output}: is a file where an output folder should be; move it away and run again"])
    assert output.read_text() == "precious"
    assert left_over() == []


@pytest.mark.parametrize("blocked", ["work", "work/shard"])
def test_a_file_above_the_output_folder_is_named(call: Call, blocked: str) -> None:
    Path(blocked).parent.mkdir(exist_ok=True)
    Path(blocked).write_text("precious")
    code, lines = call("shard", "mine")
    assert code == 1
    assert len(lines) == 1
    assert "a file stands where a folder should be; move it away and run again" in lines[0]
    assert Path(blocked).read_text() == "precious"


LIMITED = """
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
sys.argv = [f"stages.{sys.argv[2]}", *sys.argv[3:]]
runpy.run_module(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize(
    ("stage", "limit"),
    [
        ("shard", 1_000),
        ("shard", 60_000),
        ("pretrain", 300),
        ("pretrain", 3_000),
        ("pretrain", 9_000),
        ("embed", 9_000),
    ],
)
def test_a_full_disk_is_one_line_and_the_older_output_stays(call: Call, stage: str, limit: int) -> None:
    ran(call, "shard", "check", "pretrain", "embed")
    output = Path(f"work/{stage}/mine")
    before = {path.name: path.read_bytes() for path in output.iterdir()}
    assert max(map(len, before.values())) > limit
    if limit == 3_000:  # else the training is remembered, and only its output is written
        shutil.rmtree("work/checkpoints")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(limit), stage, "mine"], capture_output=True, text=True, check=False
    )
    told = [line for line in done.stderr.replace("\r", "\n").splitlines() if line.strip() and "it/s" not in line]
    passing = (f"{stage} mine:", "it was finished before")  # the progress bar, and what is no fault
    told = [line for line in told if not line.startswith(passing)]
    assert done.returncode == 1, done.stderr
    assert len(told) == 1, done.stderr
    assert "and run again" in told[0]
    assert "Traceback" not in done.stderr
    assert {path.name: path.read_bytes() for path in output.iterdir()} == before
    assert left_over() == []


# -- new ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def shipped(call: Call) -> Call:
    """The shipped specs in place of mine."""
    shutil.rmtree("specs")
    shutil.copytree(ROOT / "specs", "specs")
    return call


def test_new_writes_a_spec_and_its_entry_and_keeps_every_comment(shipped: Call) -> None:
    index = Path("specs/index.yaml").read_text()
    code, lines = shipped("new", "mine", "--like", "digits")
    assert (code, lines[-1]) == (0, "edit it, then run: dvc repro")
    assert Path("specs/mine.yaml").read_text() == Path("specs/digits.yaml").read_text()
    entered = Path("specs/index.yaml").read_text()
    assert entered == index + "  mine: {data: digits, files: specs/none}\n"
    assert shipped("validate") == (0, ["every spec is valid"])


def test_new_from_an_example_brings_its_data_and_its_path(shipped: Call) -> None:
    Path("raw").mkdir()
    for name in ("train.tar", "test.tar"):
        with tarfile.open(Path("raw", name), "w") as tar:
            tar.add(ROOT / "README.md", "basophil/1.jpg")  # what it is, sharding will tell
    code, lines = shipped("new", "cells", "--like", "blood_cells", "--data", "raw")
    assert code == 0, lines
    spec = YAML(typ="safe").load(Path("specs/cells.yaml").read_text())
    assert spec["data"] == "cells"
    assert Path("specs/data/cells.yaml").read_text() == Path("specs/examples/data/blood_cells.yaml").read_text()
    assert "# Stained blood cells" in Path("specs/cells.yaml").read_text()
    index = YAML(typ="safe").load(Path("specs/index.yaml").read_text())
    assert index["data"]["cells"] == {"raw": "raw"}
    assert index["specs"]["cells"] == {"data": "cells", "files": "specs/none"}
    assert shipped("validate")[0] == 0
    assert shipped("new", "more", "--like", "cells")[0] == 0
    assert YAML(typ="safe").load(Path("specs/index.yaml").read_text())["specs"]["more"]["data"] == "cells"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("Mine", "--like", "digits"), "NAME = 'Mine': small letters, digits and underscores, a letter first"),
        (("../up", "--like", "digits"), "NAME = '../up': small letters, digits and underscores, a letter first"),
        (("9lives", "--like", "digits"), "NAME = '9lives': small letters"),
        (("a.b", "--like", "digits"), "NAME = 'a.b': small letters"),
        (("", "--like", "digits"), "NAME = '': small letters"),
        (("shapes", "--like", "digits"), "specs/shapes.yaml: exists already; choose another name"),
        (("index", "--like", "digits"), "specs/index.yaml: exists already; choose another name"),
        (("mine", "--like", "digit"), "--like digit: no such spec; did you mean 'digits'?"),
        (("mine", "--like", "index"), "--like index: no such spec; "),
        (("mine", "--like", "cifar10"), "--like cifar10: its data is not embedded; add --data PATH"),
        (("mine", "--like", "cifar10", "--data", "gone"), "--data gone: no such path"),
        (("mine", "--like", "digits", "--data", "specs"), "--data specs: the data of digits is embedded; leave it out"),
    ],
)
def test_new_refuses_in_one_line_and_writes_nothing(shipped: Call, arguments: tuple[str, ...], line: str) -> None:
    before = {path: path.read_bytes() for path in Path("specs").rglob("*") if path.is_file()}
    code, lines = shipped("new", *arguments)
    assert code == 1
    assert len(lines) == 1
    assert line in lines[0]
    assert {path: path.read_bytes() for path in Path("specs").rglob("*") if path.is_file()} == before
