"""A small but real space: shapes on their own canvas, the small encoder, a few steps. Every test changes one thing."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.data import DataSpec
from pipeline.machine import Machine
from pipeline.sharding import shard
from pipeline.shards import Shards
from pipeline.space import LatentSpace
from pipeline.spec import parse, read_yaml
from pipeline.state import Row
from pipeline.training import Trained, train
from pipeline.training_section import Training

ROOT = Path(__file__).parent.parent
CPU = Machine(processes=1, device="cpu", threads=1)

SPACE: dict[str, Any] = {
    "preset": None,
    "invariances": [{"kind": "shift", "pixels": 2}, {"kind": "brightness", "amount": 0.3, "probability": 0.8}],
    "views": {"kind": "pair"},
    "preserves": ["shape"],
    "projection": {"kind": "mlp", "hidden": 16, "dim": 8, "boundary": "h"},
    "predictor": None,
    "target": "same",
    "normalization": "l2",
    "metric": "cosine",
    "temperature": 0.2,
    "sampler": {"kind": "in_batch"},
    "objective": {"kind": "nt_xent"},
}
TRAINING: dict[str, Any] = {
    "encoder": {"kind": "small", "widths": [8, 16], "strides": [2, 2], "groups": 4},
    "start": {"kind": "untrained"},
    "global_batch": 16,
    "norm_group": None,
    "epochs": 2,
    "optimizer": {"kind": "adamw", "learning_rate": 3e-3, "weight_decay": 1e-4},
    "schedule": {"kind": "cosine", "warmup_epochs": 1},
    "precision": "float32",
    "seed": 0,
}
CHECK: dict[str, Any] = {
    "samples": 5000,
    "seed": 0,
    "group": None,
    "words": {},
    "tolerance": 0.1,
    "retained": 0.7,
    "shortcut": 0.5,
    "matched": 0.05,
    "accept": [],
}
DATA: dict[str, Any] = {
    "source": {"kind": "shapes", "pictures": 96, "seed": 0, "watermark": None},
    "input": {"height": 16, "width": 16, "channels": 3, "fit": "resize", "background": 0},
    "split": {"test": 0.3, "seed": 0},
    "labels": ["shape", "hue", "rotation"],
}


def space(**changes: Any) -> LatentSpace:
    return parse({**SPACE, **changes}, LatentSpace, "x.yaml", "space")


def training(**changes: Any) -> Training:
    return parse({**TRAINING, **changes}, Training, "x.yaml", "training")


def sharded(folder: Path, raw: Path | None = None, **changes: Any) -> Shards:
    folder.mkdir(parents=True, exist_ok=True)
    shard(parse({**DATA, **changes}, DataSpec, "data.yaml"), "small", raw, folder)
    return Shards(folder)


def trained(
    shards: Shards, space: LatentSpace, training: Training, machine: Machine = CPU, rows: list[Row] | None = None
) -> Trained:
    return train(space, training, shards, machine, (rows if rows is not None else []).append)


def whole(**changes: Any) -> dict[str, Any]:
    """The content of specs/digits.yaml, each change given by its dotted path with ``__`` for dots."""
    content = read_yaml(ROOT / "specs" / "digits.yaml")
    for path, value in changes.items():
        *above, last = path.split("__")
        inner: Any = content
        for step in above:
            inner = inner[step]
        inner[last] = copy.deepcopy(value)
    return content


def shipped() -> list[Path]:
    """Every spec file of the repository."""
    folders = (ROOT / "specs", ROOT / "specs" / "examples", ROOT / "specs" / "examples" / "methods")
    return [path for folder in folders for path in sorted(folder.glob("*.yaml")) if path.stem != "index"]


def pictures(sizes: list[tuple[int, int]], channels: int, seed: int = 0) -> list[np.ndarray]:
    """Raw inputs of several sizes, uint8 (H, W, C)."""
    random = np.random.default_rng(seed)
    return [random.integers(0, 256, (height, width, channels), dtype=np.uint8) for height, width in sizes]


RUN = """
import runpy, sys
for stage, name in (each.split("/") for each in sys.argv[1:]):
    sys.argv = ["stages." + stage, *([name] if name else [])]
    try:
        runpy.run_module("stages." + stage, run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
"""


def run_stages(root: Path, stages: Iterable[str], library: Path = ROOT) -> None:
    """Run stages in a folder, one after the other in one process on one core: "STAGE/NAME", or "STAGE/" of all."""
    here = {"PATH": "", "OMP_NUM_THREADS": "1", "LATENT_WORKERS": "1", "LATENT_DEVICE": "cpu"}
    command, environment = [sys.executable, "-c", RUN, *stages], {**here, "PYTHONPATH": str(library)}
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
