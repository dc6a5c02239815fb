"""What the check says where the answer is known: ``python tests/benchmarks/check.py --data FOLDER``.

FOLDER holds natural/, medical/ and remote_sensing/ (CIFAR-10, stained blood cells, satellite tiles as archives, see
specs/examples/data). Prints a table of (data, invariance, label, finding, figure, interval, verdict), counts false
alarms on 20 harmless pairs and misses on 20 harmful ones, times the whole check of CIFAR-10, and writes
tests/benchmarks/results/check.csv. ``--seeds 5`` repeats SimCLR's recipe over as many seeds.

Every data set is judged by the tolerances of its shipped spec; nothing else differs between them. An alarm is a warning
or a failure of erased, merged or transported.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from pipeline.check.examine import examine
from pipeline.check.findings import Finding
from pipeline.check.ground import Ground, prepare
from pipeline.check.judged import judge
from pipeline.check.losses import loss_findings
from pipeline.check.partners import shortcut
from pipeline.check.section import TOGETHER, Check
from pipeline.data import DataSpec
from pipeline.keys import Keys
from pipeline.sharding import shard
from pipeline.shards import Shards
from pipeline.spec import parse, read_spec
from pipeline.specification import Specification
from pipeline.views import (
    Blur,
    Brightness,
    ColorJitter,
    Contrast,
    Grayscale,
    HorizontalFlip,
    Hue,
    ResizedCrop,
    RightAngle,
    Rotation,
    Solarize,
    VerticalFlip,
)

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).parent / "results" / "check.csv"
FOLDERS = {"cifar10": "natural", "blood_cells": "medical", "satellite": "remote_sensing"}
KNOWN_SHAPES = {
    "source": {"kind": "shapes", "pictures": 3000, "seed": 0, "watermark": 1.0, "mark": "own"},
    "input": {"height": 32, "width": 32, "channels": 3, "fit": "resize", "background": 0},
    "split": {"test": 0.3, "seed": 0},
    "labels": ["shape", "hue", "red", "side"],
}


class ChannelOrder:
    """The channels in a random order: for the table only."""

    kind, group = "channel_order", False
    removes: ClassVar[frozenset[str]] = frozenset({"hue", "spectrum"})

    def draw(self, keys: Keys) -> dict[str, Tensor]:
        return {"order": keys.orders("order", 3)}

    def apply(self, images: Tensor, parameters: dict[str, Tensor]) -> Tensor:
        return images.gather(1, parameters["order"][:, :, None, None].expand_as(images))

    def channels_fault(self, channels: int) -> str | None:
        return None


def jitter(amount: float) -> ColorJitter:
    """SimCLR's colour distortion of a strength."""
    return ColorJitter(brightness=amount, contrast=amount, saturation=amount, hue=amount / 4)


CROP = ResizedCrop(area=(0.2, 1.0))
JITTER = ColorJitter(brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1, probability=0.8)
HALF_TURN = [HorizontalFlip(probability=1.0), VerticalFlip(probability=1.0)]
GREY = Grayscale(probability=1.0)
HARMLESS: list[tuple[str, str, str, list[Any]]] = [
    ("cifar10", "label", "horizontal_flip", [HorizontalFlip()]),
    ("cifar10", "label", "resized_crop 0.2 to 1", [ResizedCrop(area=(0.2, 1.0))]),
    ("cifar10", "label", "color_jitter 0.4", [JITTER]),
    ("cifar10", "label", "grayscale, p 0.2", [Grayscale(probability=0.2)]),
    ("cifar10", "label", "brightness 0.4", [Brightness(amount=0.4)]),
    ("blood_cells", "label", "horizontal_flip", [HorizontalFlip()]),
    ("blood_cells", "label", "vertical_flip", [VerticalFlip()]),
    ("blood_cells", "label", "right_angle", [RightAngle()]),
    ("blood_cells", "label", "rotation 180", [Rotation(degrees=180, fill=0.8)]),
    ("blood_cells", "label", "brightness 0.1", [Brightness(amount=0.1)]),
    ("blood_cells", "label", "blur", [Blur(sigma=(0.1, 0.8), probability=0.3)]),
    ("satellite", "label", "horizontal_flip", [HorizontalFlip()]),
    ("satellite", "label", "vertical_flip", [VerticalFlip()]),
    ("satellite", "label", "right_angle", [RightAngle()]),
    ("satellite", "label", "brightness 0.2", [Brightness(amount=0.2)]),
    ("satellite", "label", "contrast 0.2", [Contrast(amount=0.2)]),
    ("digits", "label", "rotation 15", [Rotation(degrees=15)]),
    ("shapes", "shape", "horizontal_flip", [HorizontalFlip()]),
    ("shapes", "shape", "rotation 15", [Rotation(degrees=15)]),
    ("shapes", "side", "vertical_flip", [VerticalFlip()]),
]
HARMFUL: list[tuple[str, str, str, list[Any]]] = [
    ("blood_cells", "label", "grayscale", [GREY]),
    ("blood_cells", "label", "grayscale, p 0.2", [Grayscale(probability=0.2)]),
    ("blood_cells", "label", "channel_order", [ChannelOrder()]),
    ("blood_cells", "label", "hue 0.5", [Hue(amount=0.5)]),
    ("blood_cells", "label", "color_jitter 0.4", [JITTER]),
    ("blood_cells", "label", "resized_crop 0.02 to 0.08", [ResizedCrop(area=(0.02, 0.08))]),
    ("satellite", "label", "grayscale", [GREY]),
    ("satellite", "label", "channel_order", [ChannelOrder()]),
    ("satellite", "label", "hue 0.5", [Hue(amount=0.5)]),
    ("satellite", "label", "solarize", [Solarize(probability=1.0)]),
    ("cifar10", "label", "vertical_flip", [VerticalFlip()]),
    ("cifar10", "label", "right_angle", [RightAngle()]),
    ("cifar10", "label", "rotation 180", [Rotation(degrees=180)]),
    ("cifar10", "label", "channel_order", [ChannelOrder()]),
    ("cifar10", "label", "resized_crop 0.01 to 0.05", [ResizedCrop(area=(0.01, 0.05))]),
    ("digits", "label", "half turn", HALF_TURN),
    ("digits", "label", "right_angle", [RightAngle()]),
    ("shapes", "red", "grayscale", [GREY]),
    ("shapes", "hue", "hue 0.5", [Hue(amount=0.5)]),
    ("shapes", "side", "horizontal_flip", [HorizontalFlip()]),
]
SHORTCUTS: list[tuple[str, str, list[Any]]] = [
    ("cifar10", "resized_crop alone", [CROP]),
    ("cifar10", "resized_crop, color_jitter 0.4", [CROP, jitter(0.4)]),
    ("cifar10", "resized_crop, color_jitter 0.8", [CROP, jitter(0.8)]),
    ("shapes", "color_jitter 0.8", [jitter(0.8)]),
    ("shapes", "resized_crop, color_jitter 0.8", [CROP, jitter(0.8)]),
]


def sharded(data: Path, folder: Path) -> dict[str, tuple[Shards, Check]]:
    """Every data set, sharded, with the check of its shipped spec."""
    found = {}
    for name in ("cifar10", "blood_cells", "satellite", "digits", "shapes"):
        base = ROOT / "specs" / ("examples" if name in FOLDERS else "")
        spec: DataSpec = (
            parse(KNOWN_SHAPES, DataSpec, name)
            if name == "shapes"
            else read_spec(base / "data" / f"{name}.yaml", DataSpec)
        )
        place = folder / name
        place.mkdir()
        shard(spec, name, data / FOLDERS[name] if name in FOLDERS else None, place)
        whole: Specification = read_spec(base / f"{name}.yaml", Specification)
        found[name] = Shards(place), whole.check.model_copy(update={"samples": 5000})
        print(f"sharded {name}", file=sys.stderr)
    return found


def judged(ground: Ground, label: str, words: str, invariances: list[Any]) -> Iterator[Finding]:
    """The findings on one label under one invariance, or a list of them in order."""
    together = len(invariances) > 1
    found = judge(ground, invariances, together=together)
    kind = TOGETHER if together else invariances[0].kind
    yield from (each for each in loss_findings(ground, found, kind, None, (label,)) if each.preserved == label)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with natural, medical and remote_sensing")
    parser.add_argument("--seeds", type=int, default=1, help="of SimCLR's recipe on CIFAR-10")
    given = parser.parse_args()
    rows: list[list[Any]] = []

    def told(data: str, words: str, label: str, finding: Finding, expected: str) -> None:
        details = finding.details
        row = [data, words, label, finding.finding, finding.figure, finding.low, finding.high, finding.verdict]
        rows.append([*row, details.get("before"), details.get("after"), details.get("accuracy"), expected])
        interval = "" if finding.low is None else f"{finding.low:.3f} to {finding.high:.3f}"
        value = "" if finding.figure is None else f"{finding.figure:.3f}"
        print(
            f"{data:12} {words:28} {label:6} {finding.finding:14} {value:>7} {interval:17} {finding.verdict}",
            flush=True,
        )

    with tempfile.TemporaryDirectory() as folder:
        sets = sharded(given.data, Path(folder))
        grounds = {name: prepare(*each) for name, each in sets.items()}
        wrong: dict[str, list[str]] = {"false alarms": [], "misses": []}
        for expected, pairs in (("harmless", HARMLESS), ("harmful", HARMFUL)):
            for data, label, words, invariances in pairs:
                alarm = False
                for finding in judged(grounds[data], label, words, invariances):
                    alarm |= finding.verdict in ("warn", "fail")
                    told(data, words, label, finding, expected)
                if alarm != (expected == "harmful"):
                    wrong["false alarms" if alarm else "misses"].append(f"{data}, {words}, {label}")
        for data, words, invariances in SHORTCUTS:
            finding, _ = shortcut(grounds[data], [invariances] * 2, None, lambda _: "")
            told(data, words, finding.details["statistic"], finding, "")
            matched = finding.details["statistics"]["the colour histogram"]
            print(f"{'':12} {'':28} the colour histogram alone: {matched:.3f}")
            rows.append([data, words, "the colour histogram", "shortcut", *[None] * 6, matched, ""])
        for what, names in wrong.items():
            print(f"{what}: {len(names)} of 20 {names}")
        shards, check = sets["cifar10"]
        space = read_spec(ROOT / "specs" / "examples" / "cifar10.yaml", Specification).space
        wider = space.model_copy(update={"invariances": (*space.invariances, Blur(), Contrast(amount=0.2))})
        started = time.perf_counter(), time.process_time()
        examine(wider, check, shards)
        wall, cpu = time.perf_counter() - started[0], time.process_time() - started[1]
        print(
            f"CIFAR-10, {check.samples} samples, 6 invariances, all findings: {wall:.0f} s, {cpu:.0f} s of CPU time, "
            f"{torch.get_num_threads()} threads"
        )
        for seed in range(given.seeds):
            found = [each.finding for each in examine(space, check.model_copy(update={"seed": seed}), shards)]
            alarms = [each.sentence for each in found if each.verdict in ("warn", "fail")]
            print(f"SimCLR's recipe on CIFAR-10, seed {seed}: {len(alarms)} warnings or failures {alarms}", flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    head = ["data", "invariance", "label", "finding", "figure", "low", "high", "verdict", "before", "after", "matched"]
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerows([[*head, "expected"], *rows])


if __name__ == "__main__":
    main()
