"""SimCLR on CIFAR-10 for some minutes each: lightly as documented, lightly tuned by hand, and this pipeline.

    python tests/benchmarks/cifar.py --minutes 6 --seeds 0 1 2      (an hour on two cores; what is done is not redone)

One encoder (``small_residual``: 0.307 M parameters, 12.9 M multiply-adds), one head (128, 128), equal first weights,
batch 256, temperature 0.5, SGD 0.12 with momentum 0.9 and decay 5e-4, 100 steps of warm-up, then a cosine. Views:
crop, mirror, jitter of strength 0.5, gray, no blur. Each run is a process of its own, one after the other, in an order
that turns with the seed. Unpacking and sharding are not counted; decoding is, by all. kNN on h with k = 200, T = 0.1,
the whole training split as bank, lightly's ``knn_predict``.

- lightly: its transform, dataset and loss, a DataLoader with 2 workers, float32, its two passes a step;
- tuned: one thread beside the 2 workers, channels-last, bf16, workers that stay, an allocator that keeps memory;
- pipeline: ``pipeline.training.train`` on its own shards, views by colour matrix. It trains whole epochs: as many as a
  short trial says will fit, so it stops before the time is over.

Writes results/cifar.json, .csv (curves) and .png beside this file. Needs lightly and the two archives of CIFAR-10 as
JPEG files (``class/name.jpg``).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SYSTEMS = ("lightly", "tuned", "pipeline")
BATCH, WARMUP, TEMPERATURE, WIDTH = 256, 100, 0.5, 128
ENCODER = {"kind": "small_residual", "widths": [32, 64, 128], "strides": [1, 2, 2], "groups": None}
SGD = {"learning_rate": 0.12, "momentum": 0.9, "weight_decay": 5e-4}
NEIGHBOURS, SHARPNESS = 200, 0.1
SET = {
    "lightly": {},
    "tuned": {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "2147483647", "MALLOC_TOP_PAD_": "268435456"},
    "pipeline": {"OMP_WAIT_POLICY": "PASSIVE", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},  # as stages.pretrain does
}
TRIAL = 60
"""Steps after which the pipeline's speed is known."""
Curve = list[tuple[int, float, float]]  # step, seconds, loss
Encode = Callable[[Any], Any]


class Over(Exception):
    """The time is over, or the trial."""


def lightly_run(work: Path, seconds: float, seed: int, tuned: bool) -> tuple[dict[str, Any], Curve, Encode]:
    """Train as lightly's guide to SimCLR does; ``tuned`` for this processor."""
    import torch
    from lightly.data import LightlyDataset
    from lightly.loss import NTXentLoss
    from lightly.models.modules.heads import SimCLRProjectionHead
    from lightly.transforms import SimCLRTransform
    from lightly.transforms.utils import IMAGENET_NORMALIZE

    from pipeline.encoders import SmallResidual
    from pipeline.optimizers import cosine
    from pipeline.spec import parse

    if tuned:
        torch.set_num_threads(1)
    torch.manual_seed(seed)
    encoder = parse(ENCODER, SmallResidual, "encoder").build(3)
    model = torch.nn.Sequential(encoder, SimCLRProjectionHead(WIDTH, WIDTH, WIDTH)).train()
    if tuned:
        model = model.to(memory_format=torch.channels_last)
    transform = SimCLRTransform(input_size=32, cj_strength=0.5, gaussian_blur=0.0)
    dataset = LightlyDataset(str(work / "jpeg" / "train"), transform=transform)
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=BATCH, shuffle=True, drop_last=True, num_workers=2, persistent_workers=tuned
    )
    criterion = NTXentLoss(temperature=TEMPERATURE)
    peak = SGD["learning_rate"]
    optimizer = torch.optim.SGD(model.parameters(), lr=peak, momentum=SGD["momentum"], weight_decay=SGD["weight_decay"])
    curve: Curve = []
    started = time.monotonic()
    elapsed = last = 0.0
    for first, second in _forever(loader):
        elapsed = time.monotonic() - started
        if curve and elapsed + last > seconds:  # the next step would end too late
            break
        done = min(1.0, elapsed / seconds)
        for group in optimizer.param_groups:  # steps cannot be known beforehand, so the cosine is over time
            group["lr"] = peak * min((len(curve) + 1) / WARMUP, cosine(round(done * 10_000), 10_000, 0))
        if tuned:
            first, second = (x.contiguous(memory_format=torch.channels_last) for x in (first, second))
        with torch.autocast("cpu", torch.bfloat16, enabled=tuned):
            z0, z1 = model(first), model(second)
        loss = criterion(z0.float(), z1.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        now = time.monotonic() - started
        curve.append((len(curve), now, float(loss.detach())))
        last = now - elapsed
    mean, std = (torch.tensor(IMAGENET_NORMALIZE[name]).view(1, 3, 1, 1) for name in ("mean", "std"))
    encoder.eval()
    told = {"parameters": sum(weight.numel() for weight in model.parameters()), "epochs": len(curve) / len(loader)}
    return {**told, "seconds": curve[-1][1]}, curve, lambda pixels: encoder((pixels - mean) / std)


def _forever(loader: Any) -> Iterator[Any]:
    while True:
        for views, _, _ in loader:
            yield views


SPACE = {
    "preset": None,
    "invariances": [
        {"kind": "resized_crop", "area": [0.08, 1.0], "ratio": [0.75, 1.3333]},
        {"kind": "horizontal_flip", "probability": 0.5},
        {"kind": "color_jitter", "brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1}
        | {"probability": 0.8, "method": "matrix"},
        {"kind": "grayscale", "probability": 0.2},
    ],
    "views": {"kind": "pair"},
    "preserves": ["label"],
    "projection": {"kind": "mlp", "hidden": WIDTH, "dim": WIDTH, "boundary": "h"},
    "predictor": None,
    "target": "same",
    "normalization": "l2",
    "metric": "cosine",
    "temperature": TEMPERATURE,
    "sampler": {"kind": "in_batch"},
    "objective": {"kind": "nt_xent"},
}


def pipeline_run(work: Path, seconds: float, seed: int) -> tuple[dict[str, Any], Curve, Encode]:
    """Train with ``pipeline.training.train``: a trial of some steps, then as many epochs as fit."""
    from pipeline.machine import Machine
    from pipeline.shards import Shards
    from pipeline.space import LatentSpace
    from pipeline.spec import parse
    from pipeline.training import Row, Trained, start_network, train
    from pipeline.training_section import Training

    space: LatentSpace = parse(SPACE, LatentSpace, "space")
    card = Shards(work / "shard").card
    per_epoch = card.splits["train"] // BATCH

    def attempt(epochs: int, over: Callable[[int, float], bool]) -> tuple[Trained | None, Curve, float]:
        """One training on shards opened afresh, until it ends or ``over`` (steps, seconds)."""
        section = {
            "encoder": ENCODER,
            "start": {"kind": "untrained"},
            "global_batch": BATCH,
            "norm_group": BATCH,
            "epochs": epochs,
            "optimizer": {"kind": "sgd", **SGD},
            "schedule": {"kind": "cosine", "warmup_epochs": WARMUP / per_epoch},
            "precision": "bf16",
            "seed": seed,
        }
        training: Training = parse(section, Training, "training")
        curve: Curve = []
        started = time.monotonic()

        def told(row: Row) -> None:
            curve.append((row.step, time.monotonic() - started, row.loss))
            if over(len(curve), curve[-1][1]):
                raise Over

        try:
            trained = train(space, training, Shards(work / "shard"), Machine(processes=1, device="cpu"), told)
        except Over:
            return None, curve, time.monotonic() - started
        network = start_network(space, training, card.mean, card.std)
        untrained.append(network.eval().encode)
        return trained, curve, time.monotonic() - started

    untrained: list[Encode] = []
    _, trial, _ = attempt(2, lambda steps, _: steps > TRIAL)
    before, step = trial[0][1], (trial[-1][1] - trial[0][1]) / TRIAL
    epochs = max(1, int((seconds - before) / (step * per_epoch * 1.02)))
    trained = None
    while trained is None:  # the machine became slower than the trial said: one epoch fewer
        limit = seconds if epochs > 1 else float("inf")
        trained, curve, used = attempt(epochs, lambda _, now, limit=limit: now > limit)
        epochs -= trained is None
    network = trained.network.eval()
    told = {
        "parameters": sum(weight.numel() for weight in network.parameters()),
        "epochs": epochs,
        "seconds": used,
        "seconds_to_first_step": curve[0][1],
        "knn_untrained": knn(work, untrained[0])[0],
    }
    return told, curve, network.encode


def knn(work: Path, encode: Encode) -> tuple[float, float]:
    """kNN accuracy of the test split by lightly's function, and how many of its answers the pipeline's probe gives."""
    import numpy as np
    import torch

    from pipeline.neighbours import nearest_rows, unit
    from pipeline.probes.knn import vote
    from pipeline.shards import Shards

    knn_predict = _lightly_knn()
    shards = Shards(work / "shard")
    rows, labels = {}, {}
    for split in ("train", "test"):
        images = torch.from_numpy(shards.images(split))
        with torch.inference_mode():
            rows[split] = torch.cat([encode(part.float() / 255.0).float() for part in images.split(256)])
        labels[split] = torch.from_numpy(shards.labels(split)["label"])
    bank = torch.nn.functional.normalize(rows["train"], dim=1).T.contiguous()
    asked = torch.nn.functional.normalize(rows["test"], dim=1)
    answers = torch.cat(
        [knn_predict(part, bank, labels["train"], 10, NEIGHBOURS, SHARPNESS)[:, 0] for part in asked.split(500)]
    )
    similarity, index = nearest_rows(unit(rows["test"].numpy()), unit(rows["train"].numpy()), NEIGHBOURS)
    ours = vote(similarity, labels["train"].numpy()[index], SHARPNESS, 10)
    return float((answers == labels["test"]).float().mean()), float(np.mean(ours == answers.numpy()))


def _lightly_knn() -> Callable[..., Any]:
    """lightly's function, from its file: the package around it wants pytorch_lightning, which nothing here uses."""
    import lightly

    path = Path(lightly.__file__).parent / "utils" / "benchmarking" / "knn.py"
    spec = importlib.util.spec_from_file_location("lightly_knn", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[..., Any] = module.knn_predict
    return function


def child(system: str, seed: int, seconds: float, work: Path) -> dict[str, Any]:
    """One run in this process."""
    import torch

    if system == "pipeline":
        told, curve, encode = pipeline_run(work, seconds, seed)
    else:
        told, curve, encode = lightly_run(work, seconds, seed, tuned=system == "tuned")
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    accuracy, agreement = knn(work, encode)
    tail = [loss for _, _, loss in curve[-20:]]
    return {
        "system": system,
        "seed": seed,
        "steps": len(curve),
        "images_per_second": len(curve) * BATCH / told["seconds"],
        "loss": sum(tail) / len(tail),
        "knn": accuracy,
        "knn_agreement": agreement,
        **told,
        "curve": thinned(curve),
    }


def thinned(curve: Curve, points: int = 120) -> list[list[float]]:
    """At most ``points`` rows, each the mean of its steps."""
    size = max(1, -(-len(curve) // points))
    parts = [curve[start : start + size] for start in range(0, len(curve), size)]
    return [
        [part[-1][0] + 1, round(part[-1][1], 1), round(sum(loss for *_, loss in part) / len(part), 4)] for part in parts
    ]


def prepare(data: Path, work: Path) -> None:
    """Unpack the JPEG files for lightly, and shard them for the pipeline."""
    from pipeline.data import DataSpec
    from pipeline.sharding import shard
    from pipeline.spec import parse, read_yaml

    for split in ("train", "test"):
        with tarfile.open(data / f"cifar10_{split}.tar.gz") as tar:
            tar.extractall(work / "jpeg" / split, filter="data")
    path = ROOT / "specs" / "examples" / "data" / "cifar10.yaml"
    (work / "shard").mkdir()
    shard(parse(read_yaml(path), DataSpec, str(path)), "cifar10", data, work / "shard")


def environment(system: str) -> dict[str, str]:
    """Of a run: what the system sets itself, and nothing that was set around this benchmark."""
    foreign = ("OMP_", "MKL_", "MALLOC_", "GLIBC_", "LATENT_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return kept | {"PYTHONPATH": str(ROOT)} | SET[system]


def main() -> None:
    """Run what is not done yet, and write table, curves and picture."""
    from cifar_report import machine, publish

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=6.0, help="of training, for each run")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "natural")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of cifar.json, .csv and .png")
    parser.add_argument("--again", action="store_true", help="also what is done already")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        system, seed, work = given.child
        print(json.dumps(child(system, int(seed), given.minutes * 60, Path(work))))
        return
    missing = [name for name in ("cifar10_train.tar.gz", "cifar10_test.tar.gz") if not (given.data / name).is_file()]
    if missing:
        print(f"skipped: {missing[0]} is not in {given.data}; name its folder with --data")
        return
    try:
        import lightly  # noqa: F401
    except ImportError:
        print("skipped: lightly is not installed here (pip install lightly); its kNN and its training are the measure")
        return

    given.out.mkdir(parents=True, exist_ok=True)
    store = given.out / "cifar.json"
    stored = json.loads(store.read_text()) if store.exists() else {}
    runs = stored.get("runs", []) if stored.get("minutes") == given.minutes else []
    wanted = [
        (SYSTEMS[(place + turn) % len(SYSTEMS)], seed)
        for turn, seed in enumerate(given.seeds)
        for place in range(len(SYSTEMS))
    ]
    done = {(run["system"], run["seed"]) for run in runs if not given.again}
    wanted = [(system, seed) for system, seed in wanted if system in given.systems and (system, seed) not in done]
    with tempfile.TemporaryDirectory() as folder:
        if wanted:
            print("unpacking and sharding", flush=True)
            prepare(given.data, Path(folder))
        for system, seed in wanted:
            load = os.getloadavg()[0]
            print(f"{system}, seed {seed}, {given.minutes:g} minutes (load average {load:.1f} before)", flush=True)
            command = [sys.executable, __file__, "--minutes", str(given.minutes), "--child", system, str(seed), folder]
            found = subprocess.run(command, env=environment(system), stdout=subprocess.PIPE, text=True, check=True)
            run = json.loads(found.stdout.splitlines()[-1]) | {"load_before": round(load, 2)}
            runs = [each for each in runs if (each["system"], each["seed"]) != (system, seed)] + [run]
            publish({"minutes": given.minutes, "machine": machine(), "runs": runs}, given.out)
    print(publish({"minutes": given.minutes, "machine": stored.get("machine") or machine(), "runs": runs}, given.out))


if __name__ == "__main__":
    main()
