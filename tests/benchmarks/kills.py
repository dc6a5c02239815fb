"""Kill `dvc repro` at chosen instants, run it again, and compare every tracked output bit for bit with a quiet run.

    python tests/benchmarks/kills.py                 # 30 kills, 5 a run
    python tests/benchmarks/kills.py --kills 6 --a-run 3 --processes 2
    python tests/benchmarks/kills.py --save tests/benchmarks/results    # also kills.json and kills.png

The spec has a queue of keys and a momentum target, so that all that a method carries along is at stake. A kill goes to
the whole process group: SIGKILL, SIGTERM or SIGINT in turn. Where it falls is drawn: a phase of the code and which of
its occurrences (``HOOK`` is read by every process as ``sitecustomize``), or any moment by the clock.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
PHASES = {
    "write": (1, 30),
    "fsync": (1, 40),
    "before rename": (1, 12),
    "after rename": (1, 12),
    "optimizer step": (1, 14),
    "momentum update": (1, 30),
    "enqueue": (1, 30),
    "checkpoint": (1, 14),
    "shard close": (1, 1),
    "removal": (1, 12),
    "finish": (1, 1),
    "clock": (1, 1),
}
"""Phase: the occurrences, in one process, among which the instant is drawn."""

HOOK = """
import builtins, importlib.abc, importlib.util, json, os, shutil, signal, sys, threading, time
plan = json.loads(os.environ.get("KILL_PLAN", "null"))
argv = sys.orig_argv
stage = next((word for word in argv if word.startswith("stages.")), "dvc" if "dvc" in argv else None)
if plan and stage:
    seen = 0
    def strike(after=0.0):
        try:
            os.unlink(plan["token"])           # one kill a plan, whichever process comes first
        except FileNotFoundError:
            return
        with open(plan["told"], "a") as file:
            file.write(json.dumps({"stage": stage, "phase": plan["phase"], "signal": plan["signal"]}) + "\\n")
        time.sleep(after)
        os.killpg(os.getpgrp(), plan["signal"])
        time.sleep(30 if plan["signal"] == signal.SIGKILL else 0.01)
    def due():
        global seen
        seen += 1
        return seen == plan["at"]
    def before(function):
        def wrapped(*given, **named):
            if due():
                strike()
            return function(*given, **named)
        return wrapped
    def after(function):
        def wrapped(*given, **named):
            result = function(*given, **named)
            if due():
                strike()
            return result
        return wrapped
    def during(function):                      # a moment later, in the middle of what follows
        def wrapped(*given, **named):
            if due():
                threading.Thread(target=strike, args=(0.001 * plan["at"],), daemon=True).start()
            return function(*given, **named)
        return wrapped
    phase = plan["phase"]
    if phase == "fsync":
        os.fsync = before(os.fsync)
    elif phase == "before rename":
        os.rename, os.replace = before(os.rename), before(os.replace)
    elif phase == "after rename":
        os.rename, os.replace = after(os.rename), after(os.replace)
    elif phase == "removal":
        shutil.rmtree = during(shutil.rmtree)
    elif phase == "write":
        def heard(event, given):
            if event == "open" and isinstance(given[1], str) and "w" in given[1] and "work" in str(given[0]):
                if due():
                    threading.Thread(target=strike, args=(0.0005 * plan["at"],), daemon=True).start()
        sys.addaudithook(heard)
    hooked = {"optimizer step": ("pipeline.divergence", "check_gradient", during),
              "momentum update": ("pipeline.momentum", "follow", during),
              "enqueue": ("pipeline.queue", "enqueued", during),
              "finish": ("pipeline.checkpoint", "Checkpoints.finish", after),
              "checkpoint": ("pipeline.checkpoint", "write_checkpoint", during),
              "shard close": ("pipeline.tars", "_Digested.digest", before)}.get(phase)
    if hooked:
        class Finder(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path, target=None):
                if name != hooked[0]:
                    return None
                sys.meta_path.remove(self)
                spec = importlib.util.find_spec(name)
                execute = spec.loader.exec_module
                def executed(module):
                    execute(module)
                    *outer, last = hooked[1].split(".")
                    owner = module
                    for step in outer:
                        owner = getattr(owner, step)
                    setattr(owner, last, hooked[2](getattr(owner, last)))
                spec.loader.exec_module = executed
                return spec
        sys.meta_path.insert(0, Finder())
"""


@dataclass(frozen=True)
class Kill:
    """One kill that fell."""

    phase: str
    stage: str
    signal: str
    run: int
    """of the reproduction from nothing in which it fell"""


QUEUED: dict[str, Any] = {
    "target": {"kind": "momentum", "m": 0.9, "schedule": "constant"},
    "sampler": {"kind": "queue", "length": 300, "in_batch": False},
}
"""Of ``space``: what is carried from step to step beside weights and moments; 300 is no multiple of the batch."""


class Project:
    """A working folder with one small spec, which is reproduced from nothing.

    Args:
        root: the folder, made here.
        processes: training ranks.
        source: of the code and the specs.
        space: fields of the spec's ``space`` that are other than in specs/digits.yaml.
    """

    def __init__(self, root: Path, processes: int = 1, source: Path = ROOT, space: dict[str, Any] | None = None):
        self.root, self.processes = root, processes
        ignored = shutil.ignore_patterns("__pycache__")
        for name in ("pipeline", "stages"):
            shutil.copytree(source / name, root / name, ignore=ignored)
        for name in ("dvc.yaml", ".dvcignore"):
            shutil.copy(source / name, root / name)
        (root / "specs" / "data").mkdir(parents=True)
        for name in ("none", "digits.yaml", "data/digits.yaml"):
            shutil.copy(source / "specs" / name, root / "specs" / name)
        yaml = YAML(typ="safe")
        spec = yaml.load((root / "specs" / "digits.yaml").read_text(encoding="utf-8"))
        spec["training"] |= {"epochs": 3, "schedule": {"kind": "cosine", "warmup_epochs": 1}}
        spec["training"]["encoder"] = {"kind": "small", "widths": [8, 16], "strides": [2, 2], "groups": 4}
        spec["space"] |= space or {}
        spec["audit"] |= {"samples": 100, "thresholds": []}
        index = {"data": {"digits": {"raw": "specs/none"}}, "specs": {"one": {"data": "digits", "files": "specs/none"}}}
        for name, content in (("one", spec), ("index", index)):
            with (root / "specs" / f"{name}.yaml").open("w", encoding="utf-8") as stream:
                yaml.dump(content, stream)
        (root / "hook").mkdir()
        (root / "hook" / "sitecustomize.py").write_text(HOOK)
        for words in (("init", "--no-scm", "--quiet"), ("config", "core.analytics", "false")):
            subprocess.run([sys.executable, "-m", "dvc", *words], cwd=root, check=True, env=self.environment())

    def environment(self, plan: dict[str, Any] | None = None) -> dict[str, str]:
        """Of a run; hardware is fixed, and every step is kept."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("LATENT_", "GIT_", "KILL_"))}
        return {
            **inherited,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(self.root / "hook"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
            "LATENT_DEVICE": "cpu",
            "LATENT_THREADS": "1",
            "LATENT_PROCESSES": str(self.processes),
            "LATENT_CHECKPOINT_SECONDS": "0",
            "LATENT_COLLECTIVE_TIMEOUT": "30",
            "DVC_NO_ANALYTICS": "1",
            "DVC_SITE_CACHE_DIR": str(self.root.with_name(self.root.name + "-site")),
            "KILL_PLAN": json.dumps(plan),
        }

    def repro(
        self, plan: dict[str, Any] | None = None, seconds: float | None = None, targets: tuple[str, ...] = ()
    ) -> tuple[int, str]:
        """`dvc repro` in a process group of its own: (exit code, output). ``seconds``: until the clock strikes."""
        command = [sys.executable, "-m", "dvc", "repro", *targets]
        process = subprocess.Popen(
            command,
            cwd=self.root,
            env=self.environment(plan),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background ignores it
        )
        output = ""
        if seconds is not None and plan is not None:
            try:
                output = process.communicate(timeout=seconds)[0]
            except subprocess.TimeoutExpired:
                if Path(plan["token"]).exists():
                    Path(plan["token"]).unlink()
                    told = {"stage": "any", "phase": "clock", "signal": plan["signal"]}
                    with Path(plan["told"]).open("a") as file:
                        file.write(json.dumps(told) + "\n")
                    os.killpg(process.pid, plan["signal"])
        output = output or process.communicate()[0]
        for _ in range(100):  # nothing of the group goes on
            try:
                os.killpg(process.pid, 0)
            except ProcessLookupError:
                break
            time.sleep(0.05)
        else:
            os.killpg(process.pid, signal.SIGKILL)
            raise AssertionError("a process of the killed group went on for five seconds")
        return process.returncode, output

    def mended(self, output: str) -> bool:
        """Whether DVC said that the kill had cut a file of its own (it writes two in place); it is removed."""
        for file, words in ((".dvc/tmp/rwlock", "Unable to read RWLock-file"), ("dvc.lock", "dvc.lock' is invalid")):
            if words in output and (self.root / file).exists():
                print(f"DVC's own {file} was cut; removed", flush=True)
                (self.root / file).unlink()
                return True
        return False

    def outputs(self) -> dict[str, str]:
        """SHA-256 of every tracked output, and dvc.lock's own account of them."""
        untracked = {"logs", "locks", "checkpoints"}
        files = [path for path in (self.root / "work").rglob("*") if path.is_file()]
        named = {str(path.relative_to(self.root)): path for path in files}
        tracked = {name: path for name, path in named.items() if name.split("/")[1] not in untracked}
        return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in sorted(tracked.items())}

    def lock(self) -> Any:
        """What DVC recorded."""
        return YAML(typ="safe").load((self.root / "dvc.lock").read_text(encoding="utf-8"))


def plans(folder: Path, seed: int) -> Iterator[tuple[dict[str, Any], float | None]]:
    """Yield plans without end: every phase in turn, in random order, each with a signal, an instant, and the seconds
    after which the clock strikes where the instant has not come."""
    draw = random.Random(seed)
    number = 0
    while True:
        for phase in draw.sample(sorted(PHASES), len(PHASES)):
            token = folder / f"token-{number}"
            token.write_text("")
            at = draw.randint(*PHASES[phase])
            plan = {"phase": phase, "at": at, "signal": int(SIGNALS[number % 3]), "token": str(token)}
            plan["told"] = str(folder / "told.jsonl")
            yield plan, draw.uniform(2.0, 30.0) if phase == "clock" else draw.uniform(45.0, 70.0)
            number += 1


def campaign(folder: Path, kills: int, a_run: int, seed: int = 0, processes: int = 1, loud: bool = False) -> list[Kill]:
    """Kill ``kills`` times, ``a_run`` of them a reproduction from nothing. Raises AssertionError at a difference."""
    folder.mkdir(parents=True, exist_ok=True)
    quiet = Project(folder / "quiet", processes, space=QUEUED)
    code, output = quiet.repro()
    assert code == 0, output
    expected, recorded = quiet.outputs(), quiet.lock()
    told = folder / "told.jsonl"
    told.write_text("")
    drawn, fallen, run = plans(folder, seed), 0, 0
    runs: list[int] = []
    while fallen < kills:
        project = Project(folder / f"run-{run}", processes, quiet.root, QUEUED)
        goal = min(kills, fallen + a_run)
        while True:
            plan, seconds = next(drawn) if fallen < goal else (None, None)
            code, output = project.repro(plan, seconds)
            now = len(told.read_text().splitlines())
            if loud:
                print(f"run {run}: {'killed' if now > fallen else 'not killed'}, exit {code}: {plan}", flush=True)
            runs += [run] * (now - fallen)
            if now == fallen and project.mended(output):
                continue
            if now == fallen:  # the instant never came: the run went through
                assert code == 0, output
                break
            fallen = now
        assert project.outputs() == expected, f"run {run}: other bytes than a quiet run's"
        assert project.lock() == recorded, f"run {run}: dvc.lock differs"
        assert not list((project.root / "work").rglob(".*")), "something half written is left"
        (kept,) = (project.root / "work" / "checkpoints").iterdir()
        assert len(list(kept.iterdir())) == 2, "of a finished run more is left than its last state and its mark"
        shutil.rmtree(project.root)
        run += 1
    lines = [json.loads(line) for line in told.read_text().splitlines()]
    return [
        Kill(each["phase"], each["stage"], signal.Signals(each["signal"]).name, number)
        for each, number in zip(lines, runs, strict=True)
    ]


def histogram(kills: list[Kill]) -> str:
    """Where the kills fell."""
    parts = []
    for title, name in (("phase", "phase"), ("process", "stage"), ("signal", "signal")):
        counted = Counter(getattr(kill, name) for kill in kills).most_common()
        parts.append(f"{title}\n" + "\n".join(f"  {word:<18}{count:>3}  {'#' * count}" for word, count in counted))
    return "\n".join(parts)


def save(kills: list[Kill], told: str, folder: Path) -> None:
    """Write the kills, one by one, and their histogram as a picture."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    content = {"result": told, "kills": [asdict(kill) for kill in kills]}
    (folder / "kills.json").write_text(json.dumps(content, indent=1) + "\n")
    figure, axes = pyplot.subplots(1, 3, figsize=(11, 3.6), layout="tight", width_ratios=(3, 2, 1))
    for axis, (title, name) in zip(axes, (("phase", "phase"), ("process", "stage"), ("signal", "signal")), strict=True):
        counted = Counter(getattr(kill, name) for kill in kills).most_common()[::-1]
        axis.barh([word for word, _ in counted], [count for _, count in counted], color="#c40")
        axis.set_title(title)
        axis.xaxis.get_major_locator().set_params(integer=True)
    figure.suptitle(told, fontsize=9)
    figure.savefig(folder / "kills.png", dpi=110)


def main() -> None:
    """Print the histogram."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--a-run", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1, help="training ranks")
    parser.add_argument("--save", type=Path, help="folder for kills.json and kills.png")
    given = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        kills = campaign(Path(folder), given.kills, given.a_run, given.seed, given.processes, loud=True)
    told = f"{len(kills)} kills in {len({kill.run for kill in kills})} runs, {given.processes} rank(s): every output"
    told += f" and dvc.lock bitwise as without; {time.monotonic() - started:.0f} s"
    print(histogram(kills), told, sep="\n")
    if given.save is not None:
        save(kills, told, given.save)


if __name__ == "__main__":
    main()
