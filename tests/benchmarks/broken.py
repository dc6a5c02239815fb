"""Good and broken encoders, made on purpose, and whether the verdict tells them apart and names the right reason.

    python tests/benchmarks/broken.py --data ../shared/data --train 1600 --test 480 --side 32 --epochs 12

On photographs (CIFAR-10), stained blood cells and satellite tiles, with the invariances of specs/examples (lengths in
pixels scaled to the side) and a ``small`` encoder of widths 32, 64, 128; each data set is a process of its own. What is
done is not done again: ``--work`` keeps what runs share, ``--again`` names what is redone.

- good: trained for some epochs with the invariances that fit the data;
- untrained: the network before its first step;
- collapsed: good, but the last normalisation has weight 0 and bias 1, so h is one point;
- flat: good, but the channels of its last stage are copies of two, so h lies along two directions;
- shortcut: trained like good on pictures that each carry confetti of their own, which no view takes away: dots of up to
  eight pure colours, present or absent (256 marks; the column ``watermark`` tells the first three of the eight);
- gray: trained like good with ``grayscale`` among the invariances, where colour carries the label (the cells).

Every encoder goes through the stages' own functions: check, embedding, probe, audit, judge. Thresholds are the same for
all encoders of a data set and stand in this file. Writes results/broken.json and broken.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import time
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ARCHIVES = {
    "cifar10": ("natural", "cifar10_train.tar.gz", "cifar10_test.tar.gz"),
    "blood_cells": ("medical", "train.tar", "test.tar"),
    "satellite": ("remote_sensing", "train.tar", "test.tar"),
}
CANVAS = {"cifar10": 32, "blood_cells": 64, "satellite": 64}
"""Side of the canvas for which specs/examples declare lengths in pixels."""
ENCODERS = ("good", "untrained", "collapsed", "flat", "shortcut", "gray")
EXPECTED = {
    "good": None,
    "untrained": "untrained-like",
    "collapsed": "fully collapsed",
    "flat": "dimensionally collapsed",
    "shortcut": "shortcut",
    "gray": "wrongly invariant",
}
"""The reason that must be named first; of good: none."""
ONLY = {"gray": ("blood_cells",)}
"""Data sets of an encoder that is not made on all: gray tiles and photographs keep what tells their label."""
GRAY = {"kind": "grayscale", "probability": 0.5}  # if it always acted, gray would never meet colour
THRESHOLDS: dict[str, list[dict[str, Any]]] = {
    "cifar10": [],
    "blood_cells": [{"measure": "preserved.label.h", "at_least": 0.64}],  # cheap probes: 0.73 of colour, 0.55 of gray
    "satellite": [],
}
COMMON = [
    {"measure": "matching.h", "at_least": 0.5},
    {"measure": "effective_rank.h", "at_least": 3},
    {"measure": "gain.label", "at_least": 0.02},
]
TOLD = ("spread", "effective_rank", "matching", "preserved", "detail", "gain", "costs", "movement", "boundary")
"""Families of measures that are kept of a run: all that verdicts and reasons read."""
COLOURS = np.array([[255 * (code >> bit & 1) for bit in (2, 1, 0)] for code in range(8)], dtype=np.uint8)
COPIES, DOT = 5, 16  # dots of one colour, and a dot's side as one part in so many of the canvas's
BATCH = 64
ENCODER = {"kind": "small", "widths": [32, 64, 128], "strides": [2, 2, 2], "groups": 8}
K = 20


def main() -> None:
    """Run what is not done yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="the folder of all three")
    parser.add_argument("--sets", nargs="+", choices=tuple(ARCHIVES), default=list(ARCHIVES))
    parser.add_argument("--encoders", nargs="+", choices=ENCODERS, default=list(ENCODERS))
    parser.add_argument("--train", type=int, default=1600, help="training pictures, at most")
    parser.add_argument("--test", type=int, default=480, help="test pictures, at most")
    parser.add_argument("--side", type=int, default=32, help="of the canvas, pixels")
    parser.add_argument("--epochs", type=int, default=12, help="of each training")
    parser.add_argument("--checked", type=int, default=600, help="pictures that the check looks at, at most")
    parser.add_argument("--seed", type=int, default=0, help="of weights, order and views")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--work", type=Path, default=ROOT / "work" / "broken", help="what runs share")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--again", nargs="*", default=[], help="SET.ENCODER, redone")
    parser.add_argument("--child", choices=tuple(ARCHIVES), help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    store = given.out / "broken.json"
    if given.child:
        for encoder in given.encoders:
            key, runs = f"{given.child}.{encoder}", read_runs(store)
            if given.child in ONLY.get(encoder, ARCHIVES) and (key not in runs or key in given.again):
                runs[key] = judged(measured(given, given.child, encoder))
                store.write_text(json.dumps(runs, indent=1, sort_keys=True) + "\n")
                print(key, {name: runs[key][name] for name in ("knn_h", "verdict", "sentences")}, flush=True)
        return
    for name in given.sets:
        folder, first, _ = ARCHIVES[name]
        if not (given.data / folder / first).is_file():
            print(f"skipped: {first} is not in {given.data / folder}; name the folder of all three with --data")
            continue
        command = [sys.executable, __file__, *sys.argv[1:], "--child", name]
        variables = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": str(given.threads)}
        subprocess.run(command, env=variables, check=True)
    runs = {key: judged(run) for key, run in read_runs(store).items()}
    store.write_text(json.dumps(runs, indent=1, sort_keys=True) + "\n")
    (given.out / "broken.md").write_text(table(runs))
    print(table(runs))


def read_runs(store: Path) -> dict[str, Any]:
    """What is done, by SET.ENCODER."""
    runs: dict[str, Any] = json.loads(store.read_text()) if store.exists() else {}
    return runs


def measured(given: argparse.Namespace, name: str, encoder: str) -> dict[str, Any]:
    """Make one encoder, and put it through the stages' functions up to the measures."""
    import torch

    from pipeline.achieved.achieve import achieve
    from pipeline.achieved.looking import Networks
    from pipeline.audit import Audit
    from pipeline.auditing import measure_layer
    from pipeline.auditing_report import Report
    from pipeline.embeddings import Embeddings
    from pipeline.encoding import embed_splits
    from pipeline.rounding import rounded
    from pipeline.space import LatentSpace
    from pipeline.spec import parse, read_yaml

    torch.set_num_threads(given.threads)
    spec = read_yaml(ROOT / "specs" / "examples" / f"{name}.yaml")
    shards = sharded(given, name, marked=encoder == "shortcut")
    content = {**spec["space"], "preserves": ["label"]}
    content["invariances"] = [scaled(each, given.side / CANVAS[name]) for each in content["invariances"]]
    if encoder == "gray":
        content["invariances"] = [*content["invariances"], GRAY]
    space: LatentSpace = parse(content, LatentSpace, "space")
    findings = checked(given, name, encoder, space, spec["check"], shards)
    weights, described, training = made(given, name, encoder, space, spec["training"], shards)
    folder = given.work / f"{name}-{encoder}"
    if not (folder / "columns.json").is_file():
        for (split, layer), vectors in embed_splits(shards, described, weights):
            np.save(folder / f"{split}.{layer}.npy", vectors)
    of_labels = {f"{split}.{k}": v for split in ("train", "test") for k, v in shards.labels(split).items()}
    np.savez(folder / "labels.npz", **of_labels)  # type: ignore[arg-type]
    columns = {key: {"kind": each.kind, "classes": each.classes} for key, each in shards.card.columns.items()}
    (folder / "columns.json").write_text(json.dumps(columns))
    embeddings = Embeddings(folder)

    section = {**spec["audit"], "samples": 400, "thresholds": [], "accept": []}
    audit: Audit = parse(section, Audit, "audit")
    found = achieve(
        space.declared(),
        space.preserves,
        ["label"],
        shards,
        embeddings,
        Networks(described, weights),
        findings,
        audit.samples,
        audit.neighbours,
    )
    report = Report()
    for layer in ("h", "z"):
        measure_layer(embeddings, layer, audit, report)
    measures = rounded({**report.measures, **found.measures})
    (folder / "measures.json").write_text(json.dumps(measures, indent=1))
    (folder / "achieved.json").write_text(json.dumps(rounded(found.tables), indent=1))
    return {
        "data": name,
        "encoder": encoder,
        "train": shards.card.splits["train"],
        "test": shards.card.splits["test"],
        **training,
        "knn_h": knn(embeddings),
        "measures": {
            key: [each["value"], each["low"], each["high"]]
            for key, each in measures.items()
            if key.split(".")[0] in TOLD
        },
    }


def judged(run: dict[str, Any]) -> dict[str, Any]:
    """A run with its verdict and reasons, from its measures alone: a changed threshold or rule trains nothing."""
    from pipeline.audit import Audit
    from pipeline.audit.judge import Measured, judge
    from pipeline.spec import parse

    thresholds = [*COMMON, *THRESHOLDS[run["data"]]]
    section = {"samples": 400, "neighbours": 10, "purity_at": [1], "thresholds": thresholds, "accept": []}
    audit: Audit = parse(section, Audit, "audit")
    verdict, gate = judge(audit, {key: Measured(*each) for key, each in run["measures"].items()}, "audit")
    return {
        **run,
        "verdict": verdict["verdict"],
        "gate": gate,
        "failed": [row["measure"] for row in verdict["rows"] if row["verdict"] == "failed"],
        "reasons": [each["reason"] for each in verdict["reasons"]],
        "sentences": [each["sentence"] for each in verdict["reasons"]],
        "expected": EXPECTED[run["encoder"]],
    }


def scaled(invariance: dict[str, Any], ratio: float) -> dict[str, Any]:
    """An invariance for pictures of ``ratio`` the side."""
    found = dict(invariance)
    if "pixels" in found:
        found["pixels"] *= ratio
    if "sigma" in found:
        found["sigma"] = [ratio * value for value in found["sigma"]]
    return found


def sharded(given: argparse.Namespace, name: str, marked: bool) -> Any:
    """A subset of a data set as shards; ``marked`` with confetti on every picture and the column ``watermark``."""
    from pipeline.data import DataSpec
    from pipeline.sharding import shard
    from pipeline.shards import Shards
    from pipeline.spec import parse, read_yaml

    folder = given.work / f"shard-{name}{'-marked' if marked else ''}-{given.side}-{given.train}-{given.test}"
    if (folder / "index.json").is_file():
        return Shards(folder)
    canvas = read_yaml(ROOT / "specs" / "examples" / "data" / f"{name}.yaml")["input"]
    canvas = {**canvas, "height": given.side, "width": given.side}
    place, *files = ARCHIVES[name]
    arrays: dict[str, np.ndarray] = {}
    parts: dict[str, Any] = {}
    for split, file, most in zip(("train", "test"), files, (given.train, given.test), strict=True):
        pictures, labels = subset(given.data / place / file, canvas["height"], most)
        if marked:
            codes = np.random.default_rng(0 if split == "train" else 1).integers(0, 256, len(pictures))
            pictures = np.stack([confetti(*pair) for pair in zip(pictures, codes, range(len(codes)), strict=True)])
            arrays[f"{split}_watermark"] = codes >> 5
        arrays[f"{split}_images"], arrays[f"{split}_label"] = pictures, labels
        columns = ("label", "watermark") if marked else ("label",)
        classes = {column: f"{split}_{column}" for column in columns}
        parts[split] = {"file": "data.npz", "images": f"{split}_images", "classes": classes, "numbers": {}}
    folder.mkdir(parents=True, exist_ok=True)
    raw = folder.with_name(f"{folder.name}-raw")
    raw.mkdir(exist_ok=True)
    np.savez(raw / "data.npz", **arrays)  # type: ignore[arg-type]
    content = {
        "source": {"kind": "arrays", "layout": "channels_last", **parts},
        "manifest": None,
        "input": canvas,
        "split": None,
        "labels": list(columns),
    }
    shard(parse(content, DataSpec, "data"), name, raw, folder)
    return Shards(folder)


def subset(archive: Path, side: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """At most ``most`` pictures of an archive of class/name, of all classes alike: (N, side, side, 3), names (N,)."""
    from PIL import Image

    by_class: dict[str, list[bytes]] = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isfile():
                parts = member.name.strip("./").split("/")
                file = tar.extractfile(member)
                assert file is not None
                by_class.setdefault(parts[-2], []).append(file.read())
    total = sum(map(len, by_class.values()))
    pictures, labels = [], []
    for label, contents in sorted(by_class.items()):
        kept = np.random.default_rng(0).permutation(len(contents))[: round(min(1.0, most / total) * len(contents))]
        for number in kept:
            image = Image.open(BytesIO(contents[number])).convert("RGB")
            pictures.append(np.asarray(image.resize((side, side), Image.Resampling.BOX)))
            labels.append(label)
    return np.stack(pictures), np.array(labels)


def confetti(picture: np.ndarray, code: int, number: int) -> np.ndarray:
    """A picture (H, W, 3) with dots of every colour whose bit of ``code`` is set, at places of its own."""
    random, side = np.random.default_rng([7, number]), picture.shape[0]
    dot, marked = max(2, side // DOT), picture.copy()
    for bit in range(8):
        for top, left in random.integers(0, side - dot, (COPIES, 2)):
            if code >> bit & 1:
                marked[top : top + dot, left : left + dot] = COLOURS[bit]
    return marked


def checked(
    given: argparse.Namespace, name: str, encoder: str, space: Any, section: dict[str, Any], shards: Any
) -> list[dict[str, Any]]:
    """The findings of the check for these invariances on this data, made once for all encoders that share both.

    Gray is examined by itself, on all pictures, and joins what was found of the other invariances.
    """
    from pipeline.check import Check
    from pipeline.check.examine import examine
    from pipeline.rounding import rounded
    from pipeline.spec import parse

    def findings(shared: str, of: Any, samples: int) -> list[dict[str, Any]]:
        file = given.work / f"check-{name}-{shared}.json"
        if not file.is_file():
            check: Check = parse({**section, "samples": samples, "words": {}, "accept": []}, Check, "check")
            file.write_text(json.dumps(rounded([asdict(each.finding) for each in examine(of, check, shards)])))
        found: list[dict[str, Any]] = json.loads(file.read_text())
        return found

    if encoder != "gray":
        return findings("marked" if encoder == "shortcut" else "plain", space, given.checked)
    last = len(space.invariances) - 1
    others = findings("plain", space.model_copy(update={"invariances": space.invariances[:last]}), given.checked)
    alone = findings("gray", space.model_copy(update={"invariances": space.invariances[last:]}), 100_000)
    return [*others, *({**each, "position": last} for each in alone if each["position"] == 0)]


def made(
    given: argparse.Namespace, name: str, encoder: str, space: Any, section: dict[str, Any], shards: Any
) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """The weights of an encoder, their description, and what is to be told of the training."""
    import torch
    from safetensors.torch import load_file, save_file

    from pipeline.machine import Machine
    from pipeline.network import OF_TRAINING, described_network
    from pipeline.spec import parse
    from pipeline.training import train
    from pipeline.training_section import Training

    content = {**section, "encoder": ENCODER, "global_batch": BATCH, "norm_group": None, "seed": given.seed}
    content |= {"epochs": given.epochs, "schedule": {"kind": "cosine", "warmup_epochs": min(2.0, given.epochs / 4)}}
    folder = given.work / f"{name}-{encoder}"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "weights.safetensors"
    training: Training = parse(content, Training, "training")
    described = {
        "encoder": training.encoder.model_dump(mode="json"),
        "projection": space.projection.model_dump(mode="json"),
        "views": [[each.model_dump(mode="json") for each in space.through(view)] for view in (0, 1)],
        "mean": shards.card.mean,
        "std": shards.card.std,
        "seed": given.seed,
    }
    if encoder in ("good", "shortcut", "gray"):
        if not file.is_file():
            started = time.monotonic()
            done = train(space, training, shards, Machine(processes=1, device="cpu", threads=given.threads), print_step)
            told = {"epochs": given.epochs, "loss": round(done.curve[-1].loss, 4)}
            print(f"{name} {encoder}: trained in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
            network = done.network.eval()
            state = {k: v.contiguous() for k, v in network.state_dict().items() if not k.startswith(OF_TRAINING)}
            save_file(state, file)
            (folder / "training.json").write_text(json.dumps(told))
        return file, described, json.loads((folder / "training.json").read_text())
    if encoder == "untrained":
        state = described_network(described).state_dict()
    else:
        made(given, name, "good", space, section, shards)
        state = load_file(given.work / f"{name}-good" / "weights.safetensors")
        last = sorted(key.split(".")[1] for key in state if key.startswith("encoder.stage"))[-1]
        conv, norm = f"encoder.{last}.0", f"encoder.{last}.1"
        if encoder == "collapsed":
            state[f"{norm}.weight"], state[f"{norm}.bias"] = (torch.full_like(state[f"{norm}.bias"], x) for x in (0, 1))
        else:
            for key in (f"{conv}.weight", f"{norm}.weight", f"{norm}.bias"):
                state[key] = state[key][torch.arange(len(state[key])) % 2]
    save_file({key: value.contiguous() for key, value in state.items()}, file)
    return file, described, {"epochs": 0, "loss": None}


def print_step(row: Any) -> None:
    """Say now and then how far a training is."""
    if row.step % 50 == 0:
        print(f"step {row.step}: loss {row.loss:.3f}", file=sys.stderr, flush=True)


def knn(embeddings: Any) -> float | None:
    """Accuracy of the K nearest training vectors' vote on h of the test split, temperature 0.1."""
    from pipeline.embeddings import unusable
    from pipeline.neighbours import nearest_rows, unit
    from pipeline.probes.knn import vote

    rows = {split: np.asarray(embeddings.features(split, "h")) for split in ("train", "test")}
    labels = {split: embeddings.labels(split, "label") for split in rows}
    if any(unusable(each) for each in rows.values()):
        return None
    similarity, index = nearest_rows(unit(rows["test"]), unit(rows["train"]), K)
    answers = vote(similarity, labels["train"][index], 0.1, len(embeddings.columns["label"].classes))
    return round(float(np.mean(answers == labels["test"])), 4)


def table(runs: dict[str, Any]) -> str:
    """A line a data set and encoder: what was measured, the verdict, and the reason that was named."""
    head = ("data", "encoder", "kNN h", "effective rank h", "matching h (untrained)", "verdict", "reason", "as made")
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name in ARCHIVES:
        for encoder in ENCODERS:
            run = runs.get(f"{name}.{encoder}")
            if run is None:
                continue
            values = {key: each[0] for key, each in run["measures"].items()}
            reason = run["reasons"][0] if run["reasons"] else None
            cells = [
                name,
                encoder,
                shown(run["knn_h"], 3),
                shown(values.get("effective_rank.h"), 1),
                f"{shown(values.get('matching.h'), 2)} ({shown(values.get('matching.untrained'), 2)})",
                run["verdict"],
                run["sentences"][0] if reason else "none",
                "yes" if reason == run["expected"] and (run["verdict"] == "passed") == (encoder == "good") else "NO",
            ]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def shown(value: float | None, digits: int) -> str:
    """A number, or that there is none."""
    return "none" if value is None else f"{value:.{digits}f}"


if __name__ == "__main__":
    main()
