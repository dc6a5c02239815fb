"""`dvc repro`, killed several times and run again, leaves the bits of a quiet run (benchmarks/kills.py, in short)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from benchmarks.kills import PHASES, Project, campaign, histogram, plans
from small import ROOT


@pytest.mark.slow
def test_three_kills_at_drawn_instants_change_no_bit(tmp_path: Path) -> None:
    kills = campaign(tmp_path, kills=3, a_run=3, seed=5)
    assert len(kills) == 3
    assert len({kill.phase for kill in kills}) > 1
    assert "#" in histogram(kills)


def test_plans_go_through_every_phase_and_signal(tmp_path: Path) -> None:
    drawn = plans(tmp_path, 0)
    some = [next(drawn)[0] for _ in range(2 * len(PHASES))]
    assert [sorted({plan["phase"] for plan in some[: len(PHASES)]})] == [sorted(PHASES)]
    assert len({plan["signal"] for plan in some}) == 3


ORPHAN = """
import os, subprocess, sys
os.environ["DVC_STAGE"] = "pretrain@x"
child = subprocess.Popen(["sh", "-c", sys.argv[1] + "; true"])
print(child.pid, flush=True)
child.wait()
"""
WAITS = "import stages, time, os; open('pid', 'w').write(str(os.getpid())); stages.run(lambda _: time.sleep(60))"


def test_what_a_killed_dvc_started_ends_with_it_though_a_shell_stands_between(tmp_path: Path) -> None:
    """The parent has the place of dvc: its children have DVC_STAGE in their environment, it has not."""
    command = f'{sys.executable} -c "{WAITS}"'
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("DVC_STAGE", None)
    parent = subprocess.Popen([sys.executable, "-c", ORPHAN, command], cwd=tmp_path, env=environment)
    file = tmp_path / "pid"
    for _ in range(200):
        if file.is_file() and file.read_text():
            break
        time.sleep(0.05)
    pid = int(file.read_text())
    time.sleep(0.3)
    assert Path(f"/proc/{pid}").exists()
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    for _ in range(100):
        status = Path(f"/proc/{pid}/stat")
        if not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    raise AssertionError("the stage went on without dvc")


@pytest.mark.thorough
def test_an_edit_between_a_kill_and_the_next_run_starts_anew_and_going_back_goes_on(tmp_path: Path) -> None:
    """Another temperature never resumes an old run; an edited probe never loses one."""
    project = Project(tmp_path / "project")
    spec = project.root / "specs" / "one.yaml"
    (tmp_path / "token").write_text("")
    plan = {"phase": "checkpoint", "at": 9, "signal": int(signal.SIGKILL), "token": str(tmp_path / "token")}
    code, _ = project.repro({**plan, "told": str(tmp_path / "told")}, targets=("pretrain",))
    assert code == -signal.SIGKILL
    (unfinished,) = (project.root / "work" / "checkpoints").iterdir()
    text = spec.read_text()
    assert "k: 20" in text
    assert "temperature: 0.1" in text
    spec.write_text(text.replace("temperature: 0.1", "temperature: 0.3"))
    code, output = project.repro(targets=("pretrain",))
    assert code == 0, output
    assert "from its checkpoint" not in output
    assert unfinished.is_dir()
    spec.write_text(text.replace("k: 20", "k: 7"))
    code, output = project.repro(targets=("pretrain",))
    assert code == 0, output
    assert "from its checkpoint" in output
    (kept,) = (project.root / "work" / "checkpoints").iterdir()
    assert kept == unfinished
    assert len(list(kept.glob("step-*"))) == 1

    # what DVC had removed before the killed run comes back
    folder = project.root / "work" / "pretrain" / "one"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    spec.write_text(text.replace("temperature: 0.1", "temperature: 0.5"))
    (tmp_path / "token").write_text("")
    assert project.repro({**plan, "told": str(tmp_path / "told")}, targets=("pretrain",))[0] == -signal.SIGKILL
    assert not folder.exists()
    command = [sys.executable, "-m", "dvc", "checkout", "--quiet", "pretrain@one"]
    subprocess.run(command, cwd=project.root, env=project.environment(), check=True)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before

    # a kill between the end of the training and DVC's record of it costs no step
    spec.write_text(text.replace("temperature: 0.1", "temperature: 0.7"))
    (tmp_path / "token").write_text("")
    plan |= {"phase": "finish", "at": 1, "told": str(tmp_path / "told")}
    assert project.repro(plan, targets=("pretrain",))[0] == -signal.SIGKILL
    log = project.root / "work" / "logs" / "one" / "pretrain-0.jsonl"
    steps = log.read_text()
    code, output = project.repro(targets=("pretrain",))
    assert code == 0, output
    assert log.read_text() == steps
    assert len(steps.splitlines()) == len((folder / "curve.csv").read_text().splitlines()) - 1
