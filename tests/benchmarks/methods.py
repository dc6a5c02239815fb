"""Every method on pictures of CIFAR-10 under one clock, and what a batch of 8,192 costs.

    python tests/benchmarks/methods.py table --seconds 120 --seeds 0 1 2      (each method's kNN on h)
    python tests/benchmarks/methods.py batch --samples 8192 --micro 256       (time and memory of a step)

The pictures are those of CIFAR-10's test archive, 8,000 to train and 2,000 to test: so an epoch is seconds, and whole
epochs come close to the clock. One encoder (``small_residual`` with batch norm: 0.307 M parameters), batch 256 in norm
groups of 128, SGD 0.12 with momentum 0.9 and decay 5e-4, a cosine with 60 steps of warm-up, bf16, SimCLR's views for
pictures of 32 pixels without blur. Every run is a process of its own on one core, and the seconds are processor time of
that process (a trial says how many epochs fit), so that other work on the machine changes a run's share little;
``--streams`` runs that many side by side. What is done is not redone. kNN on h of the test split, k = 200, temperature
0.1, the whole training split as bank; chance is 0.1, ``untrained`` the encoder before its first step. Writes
results/methods.json, methods.md and methods.png beside this file. The ablations are ``ablations.py``'s.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ARCHIVE = "cifar10_test.tar.gz"
BATCH, GROUP, WARMUP = 256, 128, 60
ENCODER = {"kind": "small_residual", "widths": [32, 64, 128], "strides": [1, 2, 2], "groups": None}
SGD = {"kind": "sgd", "learning_rate": 0.12, "momentum": 0.9, "weight_decay": 5e-4}
HEAD: dict[str, Any] = {"kind": "mlp", "hidden": 128, "dim": 128, "boundary": "h"}
NORMED, PREDICTOR = {**HEAD, "norm": "batch"}, {"kind": "mlp", "hidden": 256, "norm": "batch"}
SLOW = {"kind": "momentum", "m": 0.99, "schedule": "cosine"}
NONE: dict[str, Any] = {"temperature": None}
METHODS: dict[str, dict[str, Any]] = {
    "simclr": {},
    "moco_v2": {
        "target": {**SLOW, "schedule": "constant"},
        "sampler": {"kind": "queue", "length": 4096, "in_batch": False},
    },
    "moco_v3": {"target": SLOW, "projection": {**NORMED, "last_norm": "batch"}, "predictor": PREDICTOR},
    "byol": {"target": SLOW, "projection": NORMED, "predictor": PREDICTOR, **NONE}
    | {"objective": {"kind": "regression", "form": "squared_distance"}},
    "simsiam": {"target": "stop_gradient", "predictor": {**PREDICTOR, "hidden": 32}, **NONE}
    | {"projection": {**NORMED, "layers": 3, "last_norm": "batch"}}
    | {"objective": {"kind": "regression", "form": "negative_cosine"}},
    "debiased": {"objective": {"kind": "debiased", "prior": {"column": "label"}}},
    "hard_negative": {"objective": {"kind": "hard_negative", "prior": 0.1, "hardness": 0.5}},
    "supcon": {"objective": {"kind": "supervised"}, "sampler": {"kind": "same_label", "column": "label"}},
}
SPACE: dict[str, Any] = {
    "preset": None,
    "invariances": [
        {"kind": "resized_crop", "area": [0.08, 1.0], "ratio": [0.75, 1.3333]},
        {"kind": "horizontal_flip", "probability": 0.5},
        {"kind": "color_jitter", "brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1, "probability": 0.8},
        {"kind": "grayscale", "probability": 0.2},
    ],
    "views": {"kind": "pair"},
    "preserves": ["label"],
    "projection": HEAD,
    "predictor": None,
    "target": "same",
    "normalization": "l2",
    "metric": "cosine",
    "temperature": 0.2,
    "sampler": {"kind": "in_batch"},
    "objective": {"kind": "nt_xent"},
}


class Over(Exception):
    """The time is over."""


def trained(space: Any, shards: Any, seed: int, epochs: int, seconds: float | None = None) -> Any:
    """Train for some epochs: the result (None where ``seconds`` were over), and processor seconds of a step and all."""
    from pipeline.machine import Machine
    from pipeline.spec import parse
    from pipeline.training import train
    from pipeline.training_section import Training

    section = {"encoder": ENCODER, "start": {"kind": "untrained"}, "global_batch": BATCH, "norm_group": GROUP}
    section |= {"epochs": epochs, "optimizer": SGD, "precision": "bf16", "seed": seed}
    section["schedule"] = {
        "kind": "cosine",
        "warmup_epochs": min(WARMUP / (shards.card.splits["train"] // BATCH), epochs / 4),
    }
    times: list[float] = []

    def told(_: Any) -> None:
        times.append(time.process_time())
        if seconds is not None and times[-1] - started > seconds:
            raise Over

    started = time.process_time()
    machine = Machine(processes=1, device="cpu", threads=1)
    try:
        done = train(space, parse(section, Training, "training"), shards, machine, told)
    except Over:
        done = None
    return done, (times[-1] - times[0]) / max(1, len(times) - 1), time.process_time() - started


def child(work: Path, name: str, seed: int, seconds: float) -> dict[str, Any]:
    """One run in this process."""
    from pipeline.shards import Shards
    from pipeline.space import LatentSpace
    from pipeline.spec import parse

    space: LatentSpace = parse({**SPACE, **METHODS[name]}, LatentSpace, "space")
    shards = Shards(work / "shard")
    _, step, _ = trained(space, shards, seed, 2, seconds / 12)
    epochs = max(1, round(seconds / (step * (shards.card.splits["train"] // BATCH))))
    done, step, used = trained(space, shards, seed, epochs)
    last = done.curve[-1]
    found = {"name": name, "seed": seed, "epochs": epochs, "steps": len(done.curve), "seconds": round(used, 1)}
    found |= {"step_ms": round(1000 * step, 1), "loss": last.loss, "key_drift": last.key_drift}
    accuracies = {layer: round(accuracy, 4) for layer, accuracy in knn(done.network.eval(), shards)}
    before = trained_not(space, shards, seed).eval()
    return (
        found | accuracies | {"effective_rank_z": round(last.effective_rank, 2), "untrained": knn(before, shards)[0][1]}
    )


def trained_not(space: Any, shards: Any, seed: int) -> Any:
    """The network before its first step."""
    from pipeline.encoders import SmallResidual
    from pipeline.network import build_network
    from pipeline.spec import parse

    encoder = parse(ENCODER, SmallResidual, "encoder")
    return build_network(encoder, space.projection, shards.card.mean, shards.card.std, seed, space.predictor)


def knn(network: Any, shards: Any) -> list[tuple[str, float]]:
    """kNN accuracy of the test split on h and on z."""
    import numpy as np
    import torch

    from pipeline.neighbours import nearest_rows, unit
    from pipeline.probes.knn import vote

    rows: dict[str, list[Any]] = {}
    for split in ("train", "test"):
        images = torch.from_numpy(shards.images(split))
        with torch.inference_mode():
            both = [network(part.float() / 255) for part in images.split(512)]
        rows[split] = [torch.cat([each[layer] for each in both]).float().numpy() for layer in (0, 1)]
    labels = {split: shards.labels(split)["label"] for split in rows}
    found = []
    for layer, name in enumerate(("knn_h", "knn_z")):
        similarity, index = nearest_rows(unit(rows["test"][layer]), unit(rows["train"][layer]), 200)
        answers = vote(similarity, labels["train"][index], 0.1, 10)
        found.append((name, float(np.mean(answers == labels["test"]))))
    return found


def batch(samples: int, micro: int) -> dict[str, Any]:
    """Seconds of one step of ``samples`` with micro-batches, of plain steps of ``micro``, and the peak of memory."""
    import numpy as np
    import torch

    sys.path.insert(0, str(ROOT))
    from pipeline.batches import Batch, row_columns
    from pipeline.encoders import SmallResidual
    from pipeline.groups import Division, Statistics
    from pipeline.network import build_network
    from pipeline.projections import MLPProjection
    from pipeline.space import LatentSpace
    from pipeline.spec import parse
    from pipeline.state import State
    from pipeline.step import Stepper

    space: LatentSpace = parse(SPACE, LatentSpace, "space")
    encoder = parse(ENCODER, SmallResidual, "encoder")
    projection = parse(HEAD, MLPProjection, "projection")
    network = build_network(encoder, projection, [0.5] * 3, [0.25] * 3, 0).train()
    state = State(network, torch.optim.SGD(network.parameters(), lr=0.1))

    def step(count: int, part: int | None) -> float:
        rows = np.arange(count)
        views = torch.rand(2 * count, 3, 32, 32)
        made = Batch(0, 0, 0.0, rows, (views,), (row_columns(rows, (0, 1), {}, "cpu"),))
        started = time.monotonic()
        network.zero_grad()
        statistics = Statistics(network)
        Stepper(space, 0, Division.of(count, 0, GROUP, part), network, None).differentiate(state, made, statistics)
        state.optimizer.step()
        statistics.apply()
        return time.monotonic() - started

    step(micro, None)
    plain = min(step(micro, None) for _ in range(3))
    whole = step(samples, micro)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    ratio = whole / (plain * samples / micro)
    return {"samples": samples, "micro_batch": micro, "step_s": round(whole, 2), "plain_step_s": round(plain, 3)} | {
        "against_plain_steps_of_all": round(ratio, 2),
        "peak_gib": round(peak, 2),
    }


def main() -> None:
    """Run what is not done yet, and write the table and the chart."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("table", "batch"))
    parser.add_argument("--seconds", type=float, default=120.0, help="of training, processor time, for each run")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--streams", type=int, default=len(os.sched_getaffinity(0)), help="runs side by side")
    parser.add_argument("--samples", type=int, default=8192)
    parser.add_argument("--micro", type=int, default=256)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "natural")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        work, name, seed = given.child
        print(json.dumps(child(Path(work), name, int(seed), given.seconds)))
        return
    if given.what == "batch":
        print(json.dumps(batch(given.samples, given.micro), indent=1))
        return
    if not (given.data / ARCHIVE).is_file():
        print(f"skipped: {ARCHIVE} is not in {given.data}; name its folder with --data")
        return
    given.out.mkdir(parents=True, exist_ok=True)
    store = given.out / "methods.json"
    runs: dict[str, Any] = json.loads(store.read_text()) if store.exists() else {}
    wanted = [(name, seed) for seed in given.seeds for name in METHODS if f"{name}, seed {seed}" not in runs]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.streams) as pool:
        if wanted:
            sharded(given.data, Path(folder))
        variables = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        variables |= {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}  # as stages.pretrain does

        def one(name: str, seed: int) -> dict[str, Any]:
            arguments = [given.what, "--seconds", str(given.seconds), "--child", folder, name, str(seed)]
            command = [sys.executable, __file__, *arguments]
            done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, text=True, check=True)
            found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
            return found

        waiting = {f"{name}, seed {seed}": pool.submit(one, name, seed) for name, seed in wanted}
        for key, future in waiting.items():
            runs[key] = future.result()
            store.write_text(json.dumps(runs, indent=1) + "\n")
            print(key, runs[key], flush=True)
    (given.out / "methods.md").write_text(table(list(runs.values())))
    chart(list(runs.values()), given.out / "methods.png")
    print(table(list(runs.values())))


def sharded(data: Path, work: Path) -> None:
    """Shard the pictures."""
    sys.path.insert(0, str(ROOT))
    from pipeline.data import DataSpec
    from pipeline.sharding import shard
    from pipeline.spec import parse, read_yaml

    path = ROOT / "specs" / "examples" / "data" / "cifar10.yaml"
    content = read_yaml(path)
    content["source"] |= {"train": ARCHIVE, "test": None}
    content["split"] = {"test": 0.2, "seed": 0, "group": None}
    raw = work / "raw"  # the archive alone
    raw.mkdir()
    (raw / ARCHIVE).symlink_to(data.resolve() / ARCHIVE)
    (work / "shard").mkdir()
    shard(parse(content, DataSpec, str(path)), "cifar10_small", raw, work / "shard")


def table(runs: list[dict[str, Any]]) -> str:
    """A line a method: the mean over seeds, and the least and the largest kNN."""
    columns = ("epochs", "step_ms", "knn_h", "knn_z", "effective_rank_z", "key_drift")
    lines = ["| method | seeds | " + " | ".join(columns) + " | knn_h from, to |", "|---" * (len(columns) + 3) + "|"]
    for name in dict.fromkeys(run["name"] for run in runs):
        mine = [run for run in runs if run["name"] == name]
        means = [f"{sum(run[column] for run in mine) / len(mine):.4g}" for column in columns]
        ends = f"{min(run['knn_h'] for run in mine):.3f}, {max(run['knn_h'] for run in mine):.3f}"
        shown = [mean if float(mean) else "–" for mean in means]  # no queue: no drift
        lines.append(f"| {name} | {len(mine)} | " + " | ".join(shown) + f" | {ends} |")
    untrained = [run["untrained"] for run in runs]
    lines.append(f"| untrained encoder | {len(set(untrained))} | | | {sum(untrained) / len(untrained):.4g} | | | | |")
    return "\n".join(lines) + "\n"


def chart(runs: list[dict[str, Any]], file: Path) -> None:
    """kNN on h and on z, and the effective rank of z: a line a method, a point a seed."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(run["name"] for run in runs))[::-1]
    figure = Figure(figsize=(9.5, 3.6), layout="constrained")
    accuracy, rank = figure.subplots(1, 2, width_ratios=[2, 1], sharey=True)
    for axes, column, colour, marker, label in (
        (accuracy, "knn_h", "#0b62a4", "o", "on h"),
        (accuracy, "knn_z", "#c77700", "s", "on z"),
        (rank, "effective_rank_z", "#444444", "o", None),
    ):
        scale = 100 if column.startswith("knn") else 1
        values = [scale * run[column] for run in runs]
        places = [names.index(run["name"]) for run in runs]
        axes.plot(values, places, marker, color=colour, alpha=0.7, label=label, markersize=6)
    untrained = 100 * sum(run["untrained"] for run in runs) / len(runs)
    for place, word in ((10.0, "chance"), (untrained, "untrained")):
        accuracy.axvline(place, color="#888888", linewidth=0.8, linestyle=":")
        accuracy.annotate(
            word, (place, len(names) - 0.65), textcoords="offset points", xytext=(-3, 0), ha="right", fontsize=8
        )
    accuracy.set(xlabel="kNN, % of the test pictures", xlim=(0, None), yticks=range(len(names)), yticklabels=names)
    accuracy.legend(frameon=False, fontsize=9, loc="lower left")
    rank.set(xlabel="effective rank of z (of 128)", xlim=(0, None))
    for axes in (accuracy, rank):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", linewidth=0.4, alpha=0.5)
    figure.savefig(file, dpi=130, metadata={"Software": None})


if __name__ == "__main__":
    main()
