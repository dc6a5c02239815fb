"""Checkpoints: a run that was cut anywhere ends with the bits of one that was not, and nothing damaged is believed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from ruamel.yaml import YAML
from small import CPU, ROOT, sharded, space, training, whole
from torch import Tensor

from pipeline.checkpoint import Checkpoints, read_checkpoint, write_checkpoint
from pipeline.fingerprint import fingerprint
from pipeline.lock import held
from pipeline.shards import Shards
from pipeline.spec import Refusal
from pipeline.state import COLUMNS, Row
from pipeline.training import Trained, train

OPTIMIZERS: dict[str, dict[str, Any]] = {
    "adamw": {"kind": "adamw", "learning_rate": 3e-3, "weight_decay": 1e-4},
    "sgd": {"kind": "sgd", "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 1e-4},
    "lars": {"kind": "lars", "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 1e-4, "trust": 0.001},
}
LEARNED = {"kind": "learned", "start": 0.2, "low": 0.002, "high": 20.0}


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Shards:
    return sharded(tmp_path_factory.mktemp("shards") / "small")


class Cut(Exception):
    """Stands for a kill."""


def run(shards: Shards, optimizer: str, kept: Checkpoints | None = None, cut: int | None = None) -> Trained:
    def told(row: Row) -> None:
        if row.step == cut:
            raise Cut

    return train(space(temperature=LEARNED), training(optimizer=OPTIMIZERS[optimizer]), shards, CPU, told, kept)


def same(first: Trained, second: Trained) -> None:
    assert first.curve == second.curve
    one, two = first.network.state_dict(), second.network.state_dict()
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert torch.equal(first.views, second.views)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_run_cut_twice_ends_with_the_bits_of_one_that_was_not(tmp_path: Path, shards: Shards, optimizer: str) -> None:
    uninterrupted = run(shards, optimizer)
    notices: list[str] = []
    for cut in (2, 5):
        with pytest.raises(Cut):
            run(shards, optimizer, Checkpoints(tmp_path / "run", 0, notices.append), cut)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["step-00000004", "step-00000005"]
    same(run(shards, optimizer, Checkpoints(tmp_path / "run", 0, notices.append)), uninterrupted)
    assert notices == []


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied", "gone", "no json", "other json"])
def test_a_damaged_newest_falls_back_to_the_one_before_with_a_notice(
    tmp_path: Path, shards: Shards, damage: str
) -> None:
    with pytest.raises(Cut):
        run(shards, "adamw", Checkpoints(tmp_path / "run", 0, print), 6)
    newest = tmp_path / "run" / "step-00000006"
    state, about = newest / "state.safetensors", newest / "state.json"
    content = bytearray(state.read_bytes())
    if damage == "cut":
        state.write_bytes(content[:-1])
    elif damage == "flipped":
        content[len(content) // 2] ^= 1
        state.write_bytes(content)
    elif damage == "emptied":
        state.write_bytes(b"")
    elif damage == "gone":
        state.unlink()
    else:
        about.write_text("{" if damage == "no json" else "[]")
    notices: list[str] = []
    same(run(shards, "adamw", Checkpoints(tmp_path / "run", 0, notices.append)), run(shards, "adamw"))
    assert len(notices) == 1
    assert notices[0].startswith(f"{newest}: damaged checkpoint")


def test_what_a_kill_left_half_written_is_removed_and_nothing_is_pickled(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path / "run", 0, print)
    assert kept.newest() is None
    for step in (1, 2, 3):
        kept.save(step, {"w": torch.full((2, 3), float(step))})
    shutil.copytree(tmp_path / "run" / "step-00000003", tmp_path / "run" / ".step-00000004.partial")
    assert kept.newest() == read_checkpoint(tmp_path / "run" / "step-00000003")
    files = sorted(str(path.relative_to(tmp_path / "run")) for path in (tmp_path / "run").rglob("*") if path.is_file())
    assert files == [f"step-0000000{step}/{name}" for step in (2, 3) for name in ("state.json", "state.safetensors")]
    for file in files:
        assert b"\x80\x04" not in (tmp_path / "run" / file).read_bytes()[:2]


def test_a_finished_training_is_not_made_again_and_its_last_state_stays_alone(tmp_path: Path, shards: Shards) -> None:
    """Whether the kill fell between the last step and the output, or between the output and DVC's record of it."""
    uninterrupted = run(shards, "adamw")
    kept = Checkpoints(tmp_path / "x-1", None, print)  # the default interval: but for the end, no checkpoint was due
    same(run(shards, "adamw", kept), uninterrupted)
    steps = len(uninterrupted.curve)
    for finished in (False, True):
        assert kept.finished == finished
        assert sorted(path.name for path in (tmp_path / "x-1").glob("step-*")) == [f"step-{steps:08d}"]
        again = Checkpoints(tmp_path / "x-1", 0, print)
        same(run(shards, "adamw", again, cut=0), uninterrupted)  # Cut at the first step: there is none
        again.finish()


def test_a_finished_run_goes_when_a_later_one_of_the_same_spec_is_finished_and_unfinished_ones_stay(
    tmp_path: Path,
) -> None:
    def runs(*names: str) -> dict[str, Checkpoints]:
        return {name: Checkpoints(tmp_path / name, 0, print) for name in names}

    every = runs("one-aa", "one-bb", "one-cc", "one-two-aa", "on-aa")
    for kept in every.values():
        for step in (1, 2, 3):
            kept.save(step, {"w": torch.full((2, 3), float(step))})
    for name in ("one-aa", "one-two-aa", "on-aa"):
        every[name].finish()
    (tmp_path / ".one-dd.old" / "step-00000001").mkdir(parents=True)  # a kill fell while it was removed
    every["one-cc"].finish()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["on-aa", "one-bb", "one-cc", "one-two-aa"]
    assert sorted(path.name for path in (tmp_path / "one-cc").iterdir()) == ["finished", "step-00000003"]
    assert len(list((tmp_path / "one-bb").iterdir())) == 2
    assert every["one-cc"].newest() == read_checkpoint(tmp_path / "one-cc" / "step-00000003")


def test_the_state_is_named_by_what_it_is_of(tmp_path: Path, shards: Shards) -> None:
    from safetensors.torch import load

    with pytest.raises(Cut):
        run(shards, "adamw", Checkpoints(tmp_path / "run", 0, print), 1)
    tensors: dict[str, Tensor] = load(read_checkpoint(tmp_path / "run" / "step-00000001") or b"")
    weight = "encoder.stages.0.0.weight" if "network.encoder.stages.0.0.weight" in tensors else None
    names = {name.split(".")[0] for name in tensors}
    assert names == {"network", "optimizer", "curve"}
    assert tensors["curve"].shape == (1, len(COLUMNS))
    assert tensors["curve"].dtype == torch.float64
    assert {name.rsplit("/", 1)[1] for name in tensors if name.startswith("optimizer.")} == {
        "exp_avg",
        "exp_avg_sq",
        "step",
    }
    assert weight is None or f"optimizer.{weight}/exp_avg" in tensors


def test_a_state_that_is_no_number_is_not_kept(tmp_path: Path, shards: Shards) -> None:
    wild = {"kind": "sgd", "learning_rate": 1e30, "momentum": 0.0, "weight_decay": 0.0}
    spec = training(optimizer=wild, schedule={"kind": "constant"})
    with pytest.raises(Refusal, match="no longer finite"):
        train(space(), spec, shards, CPU, lambda row: None, Checkpoints(tmp_path / "run", 0, print))
    for path in (tmp_path / "run").glob("step-*"):
        assert b"nan" not in path.name.encode()
        assert json.loads((path / "state.json").read_text())["step"] == 1


def test_the_default_interval_follows_what_a_checkpoint_costs(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path / "run", None, print)
    assert not kept.due()
    kept.last -= 31
    assert kept.due()
    kept.cost = 2.0  # seconds: at most a thirtieth of the time
    assert not kept.due()
    kept.last -= 30
    assert kept.due()
    assert Checkpoints(tmp_path / "run", 0, print).due()


# -- the fingerprint ---------------------------------------------------------------------------------------------------


def prints(tmp_path: Path, **changes: Any) -> str:
    (tmp_path / "specs").mkdir(exist_ok=True)
    file = tmp_path / "specs" / "digits.yaml"
    with file.open("w", encoding="utf-8") as stream:
        YAML(typ="safe").dump(whole(**changes), stream)
    return fingerprint(file)


def test_the_fingerprint_is_of_what_training_depends_on_and_of_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    card = tmp_path / "work" / "shard" / "digits" / "index.json"
    card.parent.mkdir(parents=True)
    card.write_text("{}")
    before = prints(tmp_path)
    assert prints(tmp_path) == before
    assert prints(tmp_path, probe__k=7, space__preserves=[], audit__neighbours=3, export__licence="other") == before
    others = [
        prints(tmp_path, space__temperature=0.3),
        prints(tmp_path, training__seed=1),
        prints(tmp_path, space__objective={"kind": "decoupled"}),
    ]
    card.write_text('{"other": 1}')
    others.append(prints(tmp_path))
    assert len({before, *others}) == 5
    gate = tmp_path / "work" / "check" / "digits" / "gate.json"
    gate.parent.mkdir(parents=True)
    gate.write_text("{}")
    assert prints(tmp_path) not in {before, *others}


def test_the_fingerprint_is_of_the_code_and_of_user_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "root"
    for name in ("pipeline", "stages"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "dvc.yaml", root)
    prints(tmp_path)
    spec = tmp_path / "specs" / "digits.yaml"
    (tmp_path / "specs" / "index.yaml").write_text("data: {}\nspecs: {digits: {data: digits, files: mine}}\n")
    (tmp_path / "mine").mkdir()
    seen = [fingerprint(spec, root=root)]
    (root / "pipeline" / "report" / "page.py").write_text("# other\n")  # no dependency of training
    (root / "pipeline" / "__pycache__").mkdir()
    (root / "pipeline" / "__pycache__" / "x.pyc").write_text("compiled")
    assert fingerprint(spec, root=root) == seen[0]
    for file in (tmp_path / "mine" / "code.py", root / "pipeline" / "training.py", root / "pipeline/contrast/walk.py"):
        file.write_text("# other\n")
        seen.append(fingerprint(spec, root=root))
    assert len(set(seen)) == 4


# -- one writer --------------------------------------------------------------------------------------------------------

HOLDER = "from pathlib import Path; from pipeline.lock import held; import sys, time\n"
HOLDER += "with held(Path(sys.argv[1]), 'x'): print('held', flush=True); time.sleep(60)"


def test_a_lock_names_its_holder_and_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.lock.PATIENCE", 0.2)
    file = tmp_path / "locks" / "pretrain-x"
    command = [sys.executable, "-c", HOLDER, str(file)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(Refusal) as caught, held(file, "pretrain x"):
            pass
        line = f"pretrain x: process {holder.pid} is writing it; wait for it or stop it, then run again"
        assert str(caught.value) == line
        holder.kill()
    with held(file, "pretrain x"), held(file, "pretrain x"):
        assert json.loads(file.read_text())["pid"] == os.getpid()
    assert file.read_text() == ""


@pytest.mark.parametrize("told", ["{", '{"pid": 999999999, "started": "1", "host": "HERE"}', ""])
def test_without_kernel_locks_a_dead_holders_word_is_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    import errno
    import fcntl
    import socket

    def none(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", none)
    monkeypatch.setattr("pipeline.lock.PATIENCE", 0.1)
    file = tmp_path / "lock"
    file.write_text(told.replace("HERE", socket.gethostname()))
    with held(file, "x"):
        pass
    file.write_text(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
    with pytest.raises(Refusal, match=f"process {os.getpid()} is writing it"), held(file, "x"):
        pass


def test_a_checkpoint_that_finds_no_room_leaves_the_ones_before(tmp_path: Path) -> None:
    code = "import resource, torch; from pathlib import Path; from pipeline.checkpoint import *\n"
    code += "kept = Checkpoints(Path('run'), 0, print); kept.save(1, {'w': torch.zeros(10)})\n"
    code += "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); import signal\n"
    code += "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); kept.save(2, {'w': torch.zeros(1000)})"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert "File too large" in done.stderr
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["step-00000001"]
    assert read_checkpoint(tmp_path / "run" / "step-00000001") is not None


def test_writing_one_over_a_damaged_one_replaces_it(tmp_path: Path) -> None:
    path = tmp_path / "step-00000001"
    path.mkdir()
    (path / "state.json").write_text("{")
    write_checkpoint(path, 1, {"w": torch.ones(2)})
    assert read_checkpoint(path) is not None
