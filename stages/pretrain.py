"""Train a space: ``python -m stages.pretrain NAME``, on as many ranks as machine.yaml or the environment says.

Reads work/shard/DATA and the gate of work/check/NAME; writes work/pretrain/NAME: weights.safetensors, network.json,
curve.csv (a row a step), summary.json and views.png. Times and rates go to the untracked work/logs/NAME.
"""

from __future__ import annotations

import argparse
import csv
import json
import logging
import math
import os
import sys
import time
from dataclasses import asdict, astuple, fields
from pathlib import Path

from pipeline.collectives import launched_rank, rank
from pipeline.machine import Machine, read_machine
from pipeline.pictures import views_picture
from pipeline.shards import Shards
from pipeline.space import LatentSpace
from pipeline.spec import Refusal, read_section, read_yaml
from pipeline.training import Row, Trained, Training, train, unfit, usable
from pipeline.views import located
from stages import WORK, output_folder, output_of, read_json, refusal_before, run, spec_path, write_json, write_refusal


def main(arguments: list[str]) -> None:
    """Train one spec, or write why it may not be trained."""
    parser = argparse.ArgumentParser(prog="python -m stages.pretrain", description=__doc__)
    parser.add_argument("name", help="a spec's name or path")
    path = spec_path(parser.parse_args(arguments).name)
    name = path.stem
    space: LatentSpace = read_section(path, "space", LatentSpace)
    training: Training = read_section(path, "training", Training)
    checked = output_of("check", name)
    refused = refusal_before(checked)
    if refused is None and read_json(checked / "gate.json")["gate"] == "fail":
        refused = {"stage": "check", "reason": "the declaration contradicts itself; see work/check/" + name}
    if refused is not None:
        write_refusal("pretrain", name, refused)
        return

    machine = read_machine()
    shards = Shards(output_of("shard", read_yaml(path)["data"]))
    if machine.ranks() > 1 and "RANK" not in os.environ:
        reason = unfit(training, usable(space, shards.card), machine.ranks(), machine.chosen_device())
        if reason is not None:  # told once, not by every rank
            raise Refusal(f"{path}: {reason}")
        _start_ranks(path, machine)
        return
    log = Log(name, training.epochs * (usable(space, shards.card) // training.global_batch))
    try:
        trained = train(space, training, shards, machine, log.told)
    except Refusal as refusal:
        told = located(refusal, space, str(path), "space")
        if "RANK" not in os.environ:
            raise told from None
        _told_by_ranks(name).write_text(str(told), encoding="utf-8")
        sys.exit(1)
    finally:
        log.close()
    if rank() == 0:
        _write(name, space, training, shards, trained)


class Log:
    """The progress bar (rate, remaining time, loss beside log K) and the untracked log of times, on rank 0."""

    def __init__(self, name: str, steps: int):
        from tqdm import tqdm

        hidden = launched_rank() != 0
        self.bar = tqdm(total=steps, desc=f"pretrain {name}", unit="step", disable=hidden, mininterval=1.0)
        folder = WORK / "logs" / name
        folder.mkdir(parents=True, exist_ok=True)
        self.file = (folder / f"pretrain-{launched_rank()}.jsonl").open("w", encoding="utf-8")
        self.started = time.monotonic()

    def told(self, row: Row) -> None:
        """Show and log one step."""
        self.bar.set_postfix_str(f"loss {row.loss:.3f} of log K {row.log_k:.3f}", refresh=False)
        self.bar.update()
        told = {name: None if value != value else value for name, value in asdict(row).items()}  # JSON has no NaN
        record = {**told, "seconds": round(time.monotonic() - self.started, 3)}
        self.file.write(json.dumps(record, allow_nan=False) + "\n")

    def close(self) -> None:
        """End the bar and the log."""
        self.bar.close()
        self.file.close()


def _write(name: str, space: LatentSpace, training: Training, shards: Shards, trained: Trained) -> None:
    from safetensors.torch import save

    names = [field.name for field in fields(Row)]
    with output_folder("pretrain", name) as folder:
        whole = trained.network.state_dict()  # learned scalars are of the loss, not of the map from x to h and z
        state = {key: value.cpu().contiguous() for key, value in whole.items() if not key.startswith("scalars.")}
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
                "log_k": round(mean["log_k"], 6),
                "loss": round(mean["loss"], 6),
                "positive_similarity": round(mean["positive_similarity"], 6),
                "negative_similarity": round(mean["negative_similarity"], 6),
                "temperature": None if math.isnan(trained.curve[-1].temperature) else trained.curve[-1].temperature,
                "learned": {key: float(value.detach()) for key, value in trained.network.scalars.items()},
                "averaged_over_steps": len(last),
                "parameters": sum(weight.numel() for weight in trained.network.encoder.parameters()),
            },
        )
        views_picture(trained.views, folder / "views.png")


def _shown(value: float) -> str:
    if value != value:  # no temperature: an empty cell, which every reader of tables knows
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _start_ranks(path: Path, machine: Machine) -> None:
    """Start one process a rank as torchrun does, and wait; a rank that fails ends the others and is told once.

    Raises:
        Refusal: what a rank refused, or that it failed.
    """
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    os.environ.setdefault("OMP_NUM_THREADS", str(machine.chosen_threads()))
    if machine.chosen_device() == "cpu":
        os.environ["ACCELERATE_USE_CPU"] = "true"
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    told = _told_by_ranks(path.stem)
    told.unlink(missing_ok=True)
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=machine.ranks(),
        run_id=path.stem,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
    )
    try:
        elastic_launch(config, sys.executable)("-m", "stages.pretrain", str(path))
    except ChildFailedError as failed:
        if told.is_file():
            raise Refusal(told.read_text(encoding="utf-8")) from None
        _, first = failed.get_first_failure()
        raise Refusal(
            f"pretrain {path.stem}: a rank failed (exit code {first.exitcode}); its message is above"
        ) from None


def _told_by_ranks(name: str) -> Path:
    folder = WORK / "logs" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "refused.txt"


if __name__ == "__main__":
    run(main)
