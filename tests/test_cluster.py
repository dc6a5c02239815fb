"""The files for several machines, run on this one: two nodes on one host, under a Slurm that is made of two scripts."""

from __future__ import annotations

import csv
import os
import shutil
import signal
import socket
import stat
import subprocess
import time
from pathlib import Path

import pytest
from benchmarks.kills import Project
from small import ROOT

CLUSTER = ROOT / "specs" / "examples" / "cluster"
SCONTROL = """#!/usr/bin/env bash
if [ "$1" = show ]; then echo 127.0.0.1; else echo "$@" >> "$SLURM_SUBMIT_DIR/scontrol.log"; fi
"""
SRUN = """#!/usr/bin/env bash
# Two tasks of one host; when the first ends, so does the other.
while [[ "$1" == --* ]]; do shift; done
SLURM_NODEID=1 setsid "$@" &
SLURM_NODEID=0 "$@"
code=$?
kill -- -$!
exit $code
"""
ASLEEP = "#!/usr/bin/env bash\nexec sleep 60\n"


def scripts(folder: Path, srun: str) -> Path:
    """A folder with commands named as Slurm's."""
    folder.mkdir()
    for name, text in (("srun", srun), ("scontrol", SCONTROL)):
        (folder / name).write_text(text)
        (folder / name).chmod(stat.S_IRWXU)
    return folder


@pytest.mark.parametrize("file", sorted(CLUSTER.glob("*.sh")), ids=lambda file: file.name)
def test_a_shipped_script_can_be_read_by_bash(file: Path) -> None:
    subprocess.run(["bash", "-n", str(file)], check=True)
    assert "set -euo pipefail" in file.read_text()


def slurm(root: Path, bin_: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    job = {"SLURM_SUBMIT_DIR": str(root), "SLURM_JOB_ID": "42", "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_NODELIST": "a"}
    environment = {**environment, **job, "PATH": f"{bin_}{os.pathsep}{environment['PATH']}"}
    return subprocess.Popen(
        ["bash", str(CLUSTER / "slurm.sh"), "one"],
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def test_a_job_whose_time_is_up_is_queued_again(tmp_path: Path) -> None:
    job = slurm(tmp_path, scripts(tmp_path / "bin", ASLEEP), dict(os.environ))
    time.sleep(1.0)
    job.send_signal(signal.SIGUSR1)
    assert job.wait(20) == 0
    os.killpg(job.pid, signal.SIGKILL)  # Slurm would
    output = job.communicate()[0]
    assert "job 42 is queued again" in output
    assert (tmp_path / "scontrol.log").read_text() == "requeue 42\n"


@pytest.mark.thorough
def test_two_nodes_train_as_one_machine_does(tmp_path: Path) -> None:
    one = Project(tmp_path / "one")
    code, output = one.repro(targets=("pretrain",))
    assert code == 0, output
    two = Project(tmp_path / "two", source=one.root)
    shutil.copytree(CLUSTER, two.root / "specs" / "examples" / "cluster")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = two.environment() | {"PORT": str(port), "PROCESSES": "1", "TARGETS": "pretrain"}
    del environment["LATENT_PROCESSES"]
    environment |= {"GLOO_SOCKET_IFNAME": "lo", "ACCELERATE_USE_CPU": "true"}
    job = slurm(two.root, scripts(tmp_path / "bin", SRUN), environment)
    try:
        output = job.communicate(timeout=400)[0]
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
    assert job.returncode == 0, output
    curves = []
    for project in (one, two):
        with (project.root / "work" / "pretrain" / "one" / "curve.csv").open() as file:
            curves.append([float(row["loss"]) for row in csv.DictReader(file)])
    assert len(curves[0]) > 10
    assert curves[1] == pytest.approx(curves[0], rel=1e-3)
    assert curves[1] != curves[0]  # float32 sums in another order: there were two ranks
    assert sorted(path.name for path in (two.root / "work" / "logs" / "one" / "ranks").iterdir()) == [
        "0.json",
        "1.json",
    ]
