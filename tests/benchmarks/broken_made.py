"""Data and encoders of ``broken.py``: subsets as shards, marked or not, what the check says of them, and the weights.

Everything is kept under ``--work``, so that a run that was ended goes on where it was left.
"""

from __future__ import annotations

import argparse
import json
import sys
import tarfile
import time
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
TRAINED = ("good", "shortcut", "wrong")
"""Encoders that are trained; the others are the untrained network, or the good one with a stage broken by hand."""
COLOURS = np.array([[255 * (code >> bit & 1) for bit in (2, 1, 0)] for code in range(8)], dtype=np.uint8)
STRIPES = 40  # amplitude of a grating, of 255
COPIES, DOT = 5, 16  # dots of one colour, and a dot's side as one part in so many of the canvas's
ENCODER = {"kind": "small", "widths": [32, 64, 128], "strides": [2, 2, 2], "groups": 8}


@dataclass(frozen=True)
class Set:
    """One data set: its archives under --data, how much of it is taken, and how long its encoders are trained."""

    folder: str
    archives: tuple[str, str]
    canvas: int
    """side of the canvas for which specs/examples declare lengths in pixels"""
    train: int
    test: int
    """pictures, at most"""
    checked: tuple[int, int]
    """pictures that the check looks at, at most: of all invariances but the wrong one, and of that"""
    epochs: int
    batch: int
    mark: str
    """confetti or stripes: what no view of this data takes away"""
    wrong: dict[str, Any] | None
    """the invariance that is wrong here; None: none erases its label"""


def scaled(invariance: dict[str, Any], ratio: float) -> dict[str, Any]:
    """An invariance for pictures of ``ratio`` the side."""
    found = dict(invariance)
    if "pixels" in found:
        found["pixels"] *= ratio
    if "sigma" in found:
        found["sigma"] = [ratio * value for value in found["sigma"]]
    return found


def sharded(given: argparse.Namespace, name: str, of: Set, marked: bool) -> Any:
    """A subset of a data set as shards; ``marked`` with a mark on every picture and the column ``watermark``."""
    from pipeline.data import DataSpec
    from pipeline.sharding import shard
    from pipeline.shards import Shards
    from pipeline.spec import parse, read_yaml

    folder = given.work / f"shard-{name}{'-marked' if marked else ''}-{given.side}-{of.train}-{of.test}"
    if (folder / "index.json").is_file():
        return Shards(folder)
    canvas = read_yaml(ROOT / "specs" / "examples" / "data" / f"{name}.yaml")["input"]
    canvas = {**canvas, "height": given.side, "width": given.side}
    arrays: dict[str, np.ndarray] = {}
    parts: dict[str, Any] = {}
    for split, file, most in zip(("train", "test"), of.archives, (of.train, of.test), strict=True):
        pictures, labels = subset(given.data / of.folder / file, given.side, most)
        if marked:
            codes = np.random.default_rng(0 if split == "train" else 1).integers(0, 256, len(pictures))
            drawn, told = (confetti, codes >> 5) if of.mark == "confetti" else (stripes, folded(codes >> 4) // 2)
            pictures = np.stack([drawn(*pair) for pair in zip(pictures, codes, range(len(codes)), strict=True)])
            arrays[f"{split}_watermark"] = told
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


def stripes(picture: np.ndarray, code: int, number: int) -> np.ndarray:
    """A picture (H, W, 3) under two gratings, fine and coarse, each at one of 16 angles, wherever they begin."""
    random = np.random.default_rng([7, number])
    rows, columns = np.indices(picture.shape[:2])
    waves = np.zeros(picture.shape[:2])
    for angle, period in ((code >> 4, 4), (code & 15, 6)):
        across = columns * np.cos(np.pi * angle / 16) + rows * np.sin(np.pi * angle / 16)
        waves += STRIPES * np.sin(2 * np.pi * (across / period + random.random()))
    return np.clip(picture + waves[..., None], 0, 255).astype(np.uint8)


def folded(angles: np.ndarray) -> np.ndarray:
    """16 angles of half a turn as the 9 that a mirror leaves apart."""
    return np.minimum(angles, 16 - angles)


def checked(
    given: argparse.Namespace, name: str, of: Set, encoder: str, space: Any, section: dict[str, Any], shards: Any
) -> list[dict[str, Any]]:
    """The findings of the check for these invariances on this data, made once for all encoders that share both.

    The wrong one is examined by itself, on more pictures, and joins what was found of the others.
    """
    from pipeline.check import Check
    from pipeline.check.examine import examine
    from pipeline.rounding import rounded
    from pipeline.spec import parse

    def findings(shared: str, declared: Any, samples: int) -> list[dict[str, Any]]:
        file = given.work / f"check-{name}-{shared}.json"
        if not file.is_file():
            started = time.monotonic()
            check: Check = parse({**section, "samples": samples, "words": {}, "accept": []}, Check, "check")
            found = rounded([asdict(each.finding) for each in examine(declared, check, shards)])
            file.write_text(json.dumps(found))
            say(f"{name}: checked ({shared}) in {time.monotonic() - started:.0f} s")
        read: list[dict[str, Any]] = json.loads(file.read_text())
        return read

    if encoder != "wrong":
        return findings("marked" if encoder == "shortcut" else "plain", space, of.checked[0])
    last = len(space.invariances) - 1
    others = findings("plain", space.model_copy(update={"invariances": space.invariances[:last]}), of.checked[0])
    alone = findings("wrong", space.model_copy(update={"invariances": space.invariances[last:]}), of.checked[1])
    return [*others, *({**each, "position": last} for each in alone if each["position"] == 0)]


def made(
    given: argparse.Namespace, name: str, of: Set, encoder: str, space: Any, section: dict[str, Any], shards: Any
) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """The weights of an encoder, their description, and what is to be told of the training."""
    import torch
    from safetensors.torch import load_file, save_file

    from pipeline.machine import Machine
    from pipeline.network import OF_TRAINING, described_network
    from pipeline.spec import parse
    from pipeline.training import train
    from pipeline.training_section import Training

    content = {**section, "encoder": ENCODER, "global_batch": of.batch, "norm_group": None, "seed": given.seed}
    content |= {"epochs": of.epochs, "schedule": {"kind": "cosine", "warmup_epochs": min(2.0, of.epochs / 4)}}
    folder = place(given, name, encoder)
    folder.mkdir(parents=True, exist_ok=True)
    file, told_file = folder / "weights.safetensors", folder / "training.json"
    training: Training = parse(content, Training, "training")
    described = {
        "encoder": training.encoder.model_dump(mode="json"),
        "projection": space.projection.model_dump(mode="json"),
        "views": [[each.model_dump(mode="json") for each in space.through(view)] for view in (0, 1)],
        "mean": shards.card.mean,
        "std": shards.card.std,
        "seed": given.seed,
    }
    if encoder in TRAINED:
        if not told_file.is_file():
            started = time.monotonic()
            done = train(space, training, shards, Machine(processes=1, device="cpu", threads=given.threads), print_step)
            say(f"{name} {encoder}: trained in {time.monotonic() - started:.0f} s")
            network = done.network.eval()
            state = {k: v.contiguous() for k, v in network.state_dict().items() if not k.startswith(OF_TRAINING)}
            save_file(state, file)
            told_file.write_text(json.dumps({"epochs": of.epochs, "loss": round(done.curve[-1].loss, 4)}))
        return file, described, json.loads(told_file.read_text())
    if encoder == "untrained":
        state = described_network(described).state_dict()
    else:
        good, _, _ = made(given, name, of, "good", space, section, shards)
        state = load_file(good)
        last = sorted(key.split(".")[1] for key in state if key.startswith("encoder.stage"))[-1]
        conv, norm = f"encoder.{last}.0", f"encoder.{last}.1"
        if encoder == "collapsed":
            state[f"{norm}.weight"], state[f"{norm}.bias"] = (torch.full_like(state[f"{norm}.bias"], x) for x in (0, 1))
        else:
            for key in (f"{conv}.weight", f"{norm}.weight", f"{norm}.bias"):
                state[key] = state[key][torch.arange(len(state[key])) % 2]
    save_file({key: value.contiguous() for key, value in state.items()}, file)
    return file, described, {"epochs": 0, "loss": None}


def place(given: argparse.Namespace, name: str, encoder: str) -> Path:
    """The folder of one encoder."""
    folder: Path = given.work / f"{name}-{encoder}-seed{given.seed}"
    return folder


def print_step(row: Any) -> None:
    """Say now and then how far a training is."""
    if row.step % 50 == 0:
        say(f"step {row.step}: loss {row.loss:.3f}")


def say(line: str) -> None:
    """A line of progress."""
    print(line, file=sys.stderr, flush=True)
