"""Train a space: ``python -m stages.pretrain NAME``, on as many ranks as machine.yaml or the environment says.

Reads work/shard/DATA and the gate of work/check/NAME; writes work/pretrain/NAME: weights.safetensors, network.json,
curve.csv (a row a step), summary.json, lineage.json, views.png and view-*.png (the same samples role by role). Times
and rates go to the untracked work/logs/NAME, and what a kill would lose, also between the last step and DVC's record of
it, to the untracked work/checkpoints. With ``--replay`` it only shows the batch at which a run diverged.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, astuple
from pathlib import Path

from pipeline.alarm import alarm
from pipeline.batches import usable
from pipeline.checkpoint import Checkpoints
from pipeline.collectives import begun, launched_rank, rank, world
from pipeline.declared_log import log_beginning, log_end
from pipeline.divergence import Diverged
from pipeline.fingerprint import fingerprint
from pipeline.heartbeat import Heartbeat, lost
from pipeline.launching import AGAIN, LOST, launch, launch_on_nodes
from pipeline.machine import Machine, read_machine
from pipeline.network import OF_TRAINING
from pipeline.pictures import role_pictures, views_picture
from pipeline.replay import record, replayed
from pipeline.samplers import Queue
from pipeline.shards import Shards
from pipeline.space import LatentSpace
from pipeline.spec import Refusal, read_section, read_yaml
from pipeline.state import COLUMNS, Row
from pipeline.trackers import Trackers, check_loggers
from pipeline.training import Trained, train
from pipeline.training_section import Training, unfit
from pipeline.versions import versions
from pipeline.views import located
from stages import (
    WORK,
    output_folder,
    output_of,
    read_json,
    refusal_before,
    run,
    spec_path,
    write_json,
    write_refusal,
    writing,
)


def main(arguments: list[str]) -> None:
    """Train one spec, or write why it may not be trained."""
    parser = argparse.ArgumentParser(prog="python -m stages.pretrain", description=__doc__)
    parser.add_argument("name", help="a spec's name or path")
    parser.add_argument("--replay", action="store_true", help="show the batch at which the last run diverged")
    given = parser.parse_args(arguments)
    path = spec_path(given.name)
    name = path.stem
    space: LatentSpace = read_section(path, "space", LatentSpace)
    training: Training = read_section(path, "training", Training)
    checked = output_of("check", name)
    refused = refusal_before(checked)
    gate = {} if refused is not None else read_json(checked / "gate.json")
    if gate.get("gate") == "fail":
        reason = gate.get("reason") or f"the declaration contradicts itself; see work/check/{name}"
        refused = {"stage": "check", "reason": reason}
    if refused is not None:
        if launched_rank() == 0:
            write_refusal("pretrain", name, refused)
        return

    machine = read_machine()
    check_loggers(machine.loggers)
    shards = Shards(output_of("shard", read_yaml(path)["data"]))
    logs = _folder(WORK / "logs" / name)
    if given.replay:
        print(*replayed(space, training, shards, machine, logs), sep="\n")
        return
    launched = "RANK" in os.environ
    if not launched and machine.ranks() * machine.nodes > 1:
        _launch(path, space, training, shards, machine)
        return
    try:
        if launched_rank() == 0:
            with writing("pretrain", name):
                _train(path, space, training, shards, machine)
        else:
            _train(path, space, training, shards, machine)
    except Refusal as refusal:
        if not launched:
            raise
        (logs / "refused.txt").write_text(str(refusal), encoding="utf-8")
        sys.exit(1)


def _launch(path: Path, space: LatentSpace, training: Training, shards: Shards, machine: Machine) -> None:
    """Run this stage once a rank. Raises Refusal: the batch cannot be divided, or what a rank refused."""
    ranks, logs = machine.ranks(), WORK / "logs" / path.stem
    given = ranks * machine.nodes, machine.chosen_device(), machine.micro_batch
    reason = unfit(training, usable(space, shards.card), *given, space)
    if reason is not None:  # told once, not by every rank
        raise Refusal(f"{path}: {reason}")
    environment = {} if machine.chosen_device() == "cuda" else {"ACCELERATE_USE_CPU": "true"}
    environment["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", str(machine.chosen_threads()))
    command, told = ["-m", "stages.pretrain", str(path)], logs / "refused.txt"
    if machine.meeting is not None and machine.nodes > 1:
        launch_on_nodes(command, ranks, machine.nodes, machine.meeting, environment, told)
    else:
        launch([sys.executable, *command], ranks, environment, _folder(logs / "ranks"), told)


def _train(path: Path, space: LatentSpace, training: Training, shards: Shards, machine: Machine) -> None:
    """Train on this rank; rank 0 writes."""
    name, logs, mark = path.stem, WORK / "logs" / path.stem, fingerprint(path)
    checkpoints = Checkpoints(WORK / "checkpoints" / f"{name}-{mark}", machine.checkpoint_seconds, _say)
    if checkpoints.finished and launched_rank() == 0:
        _say(f"it was finished before: its output is written again; to train anew, delete {checkpoints.folder}")
    if launched_rank() == 0:
        log_beginning(logs, path, mark)
    log = Log(name, training.epochs * (usable(space, shards.card) // training.global_batch), logs)
    settings = {"space": space.model_dump(mode="json"), "training": training.model_dump(mode="json")}
    trackers = Trackers(machine.loggers if launched_rank() == 0 else (), name, logs, settings)
    signs = Heartbeat(_folder(logs / "ranks"), launched_rank(), begun) if "RANK" in os.environ else None

    def told(row: Row) -> None:
        log.told(row)
        trackers.told(row)
        if signs is not None:
            signs.step = row.step + 1

    try:
        with _named_if_lost(logs / "ranks", machine):
            trained = train(space, training, shards, machine, told, checkpoints)
    except Diverged as diverged:
        if rank() == 0:
            record(diverged, logs)
        raise Refusal(_mended(path, space, training, diverged)) from None
    except Refusal as refusal:
        raise located(refusal, space, str(path), "space") from None
    finally:
        log.close()
        trackers.close()
    if rank() == 0:
        _write(name, space, training, shards, trained, mark)
        log_end(logs, output_of("pretrain", name) / "weights.safetensors", mark)
        checkpoints.finish()


def _mended(path: Path, space: LatentSpace, training: Training, diverged: Diverged) -> str:
    """A divergence on one line: the file, what stands there, what happened, what to do."""
    rate = training.optimizer.learning_rate
    warmer = ""
    if space.temperature is not None:
        warmer = f" or raise space.temperature ({read_yaml(path)['space']['temperature']})"
    show = f"`python -m stages.pretrain {path.stem} --replay` shows the batch"
    return f"{path}: training.optimizer.learning_rate = {rate:g}: {diverged.what}; lower it{warmer}; {show}"


@contextmanager
def _named_if_lost(signs: Path, machine: Machine) -> Iterator[None]:
    """Tell an operation between ranks that failed by the rank that was waited for.

    Raises:
        Refusal: a rank died or does not answer.
    """
    try:
        yield
    except RuntimeError as error:
        if world() == 1:
            raise
        who = lost(signs, world(), rank())
        if who is None:
            raise
        if "died" in who and "TORCHELASTIC_RUN_ID" not in os.environ:  # the launcher knows how
            os._exit(LOST)
        waited = f"the others waited {machine.collective_timeout:g} s (collective_timeout)"
        first = str(error).splitlines()[0][:120]
        raise Refusal(f"{who}; {waited if 'imed out' in str(error) else first}; {AGAIN}") from None


def _say(line: str) -> None:
    from tqdm import tqdm

    tqdm.write(line, file=sys.stderr)


def _folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


class Log:
    """The progress bar (rate, remaining time, loss beside its start) and the untracked log of times, of one rank."""

    def __init__(self, name: str, steps: int, folder: Path):
        from tqdm import tqdm

        hidden = launched_rank() != 0
        self.bar = tqdm(total=steps, desc=f"pretrain {name}", unit="step", disable=hidden, mininterval=1.0)
        self.path = folder / f"pretrain-{launched_rank()}.jsonl"
        self.file = self.path.open("a", encoding="utf-8")
        self.started = time.monotonic()
        self.rows = 0
        self.alarmed: set[str] = set()

    def told(self, row: Row) -> None:
        """Show and log one step."""
        if self.rows == 0:
            if row.step == 0:
                self.file.truncate(0)
            else:
                self.bar.initial = self.bar.n = row.step  # the rate is of this run alone
                self.bar.write(f"goes on after step {row.step} from its checkpoint", file=sys.stderr)
        self.rows += 1
        beside = "" if math.isnan(row.starts_at) else f" (nothing told apart: {row.starts_at:.3f})"
        self.bar.set_postfix_str(f"loss {row.loss:.3f}{beside}", refresh=False)
        self.bar.update()
        wrong = alarm(row)
        if wrong is not None and wrong.split(":")[0] not in self.alarmed:  # once a kind
            self.alarmed.add(wrong.split(":")[0])
            self.bar.write(f"step {row.step}: {wrong}", file=sys.stderr)
        told = {name: None if value != value else value for name, value in asdict(row).items()}  # JSON has no NaN
        record = {**told, "seconds": round(time.monotonic() - self.started, 3)}
        self.file.write(json.dumps(record, allow_nan=False) + "\n")

    def close(self) -> None:
        """End the bar and the log."""
        self.bar.close()
        self.file.close()


def _write(name: str, space: LatentSpace, training: Training, shards: Shards, trained: Trained, mark: str) -> None:
    from safetensors.torch import save

    names = COLUMNS
    with output_folder("pretrain", name) as folder:
        whole = trained.network.state_dict()  # learned scalars are of the loss, not of the map from x to h and z
        state = {key: value.cpu().contiguous() for key, value in whole.items() if not key.startswith(OF_TRAINING)}
        (folder / "weights.safetensors").write_bytes(save(state))
        card = shards.card
        write_json(
            folder / "network.json",
            {
                "encoder": training.encoder.model_dump(mode="json"),
                "projection": space.projection.model_dump(mode="json"),
                "views": [[each.model_dump(mode="json") for each in seen] for seen in map(space.through, (0, 1))],
                "mean": card.mean,
                "std": card.std,
                "seed": training.seed,
            },
        )
        with (folder / "curve.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(names)
            writer.writerows([_shown(value) for value in astuple(row)] for row in trained.curve)
        last = trained.curve[-max(1, len(trained.curve) // training.epochs) :]
        mean = {name: sum(getattr(row, name) for row in last) / len(last) for name in names[2:]}
        write_json(
            folder / "summary.json",
            {
                "steps": len(trained.curve),
                "epochs": training.epochs,
                "candidates": trained.candidates,
                "starts_at": None if math.isnan(mean["starts_at"]) else round(mean["starts_at"], 6),
                "loss": round(mean["loss"], 6),
                "positive_similarity": round(mean["positive_similarity"], 6),
                "negative_similarity": round(mean["negative_similarity"], 6),
                "temperature": None if math.isnan(trained.curve[-1].temperature) else trained.curve[-1].temperature,
                "key_age": round(mean["key_age"], 3) if isinstance(space.sampler, Queue) else None,
                "key_drift": round(mean["key_drift"], 6) if isinstance(space.sampler, Queue) else None,
                "learned": {key: float(value.detach()) for key, value in trained.network.scalars.items()},
                "averaged_over_steps": len(last),
                "parameters": sum(weight.numel() for weight in trained.network.encoder.parameters()),
            },
        )
        views_picture(card.input.pictures(trained.views), folder / "views.png")
        role_pictures({name: card.input.pictures(batch) for name, batch in trained.seen.items()}, folder)
        write_json(folder / "lineage.json", {"depends_on": mark, "versions": versions()})


def _shown(value: float) -> str:
    if value != value:  # no temperature: an empty cell, which every reader of tables knows
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    run(main)
