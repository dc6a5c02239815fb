"""SimCLR's ablations on CIFAR-10, small but real, and MoCo's momentum against its keys' drift: a ``dvc exp`` grid.

    python tests/benchmarks/ablations.py                     (about half an hour on two cores; what is done is kept)
    python tests/benchmarks/ablations.py --only momentum     (one group)

Every row of GRID is one experiment: a clone of this repository (the last commit) with one spec on real pictures
(CIFAR-10's test archive: 8,000 to train, 2,000 to test), the row's edit of that spec's YAML, and
``dvc exp run --temp report``, which is the pipeline's own training, embedding, probes and audit. Figures are read from
``dvc exp show``. Small strided encoder (the shapes' own), batch 256 unless said, AdamW, a cosine, bf16, one random
seed. Writes results/ablations.json and ablations.md beside this file.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NAME = "ablation"
CROP = [{"kind": "resized_crop", "area": [0.2, 1.0], "ratio": [0.75, 1.3333]}]
FLIP = [{"kind": "horizontal_flip", "probability": 0.5}]
COLOUR = [
    {"kind": "color_jitter", "brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1, "probability": 0.8},
    {"kind": "grayscale", "probability": 0.2},
]
GRID: dict[str, dict[str, Any]] = {  # name: edits of the spec, by dotted path
    "composition: crop": {"space.invariances": [*CROP, *FLIP]},
    "composition: colour": {"space.invariances": [*FLIP, *COLOUR]},
    "composition: both": {},
    "head: none": {"space.projection": {"kind": "none"}},
    "head: linear": {"space.projection": {"kind": "linear", "dim": 128, "boundary": "h"}},
    "head: mlp": {},
    **{f"batch: {size}": {"training.global_batch": size} for size in (64, 128, 256, 512, 1024)},
    **{f"length: {times} times": {"training.epochs": times} for times in (1, 2, 4)},
    **{
        f"momentum: {m:g}": {
            "space.target": {"kind": "momentum", "m": m, "schedule": "constant"},
            "space.sampler": {"kind": "queue", "length": 4096, "in_batch": False},
        }
        for m in (0.0, 0.9, 0.99, 0.999)
    },
}
SHOWN = {"knn_h": "label.knn_h", "knn_z": "label.knn_z", "untrained": "label.knn_untrained", "raw": "label.knn_raw"} | {
    "effective_rank_h": "effective_rank_h",
    "loss": "loss",
    "loss_at_chance": "loss_at_chance",
    "key_drift": "key_drift",
}
SPEC = """\
data: cifar10_small
space:
  preset: null
  invariances: []
  views: {kind: pair}
  preserves: [label]
  projection: {kind: mlp, hidden: 128, dim: 128, boundary: h}
  predictor: null
  target: same
  normalization: l2
  metric: cosine
  temperature: 0.2
  sampler: {kind: in_batch}
  objective: {kind: nt_xent}
"""


def dvc(*arguments: str, at: Path) -> str:
    """Run dvc in a folder. Raises SystemExit with its last words where it fails."""
    command = [sys.executable, "-m", "dvc", *arguments]
    done = subprocess.run(command, cwd=at, env=environment(), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"dvc {' '.join(arguments)} failed in {at}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def environment() -> dict[str, str]:
    """Of every stage: this interpreter first, the clone's code before any installed one."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "DVC_NO_ANALYTICS": "1"}


def git(*arguments: str, at: Path) -> None:
    """Run git in a folder, as nobody in particular."""
    command = ["git", "-c", "user.name=benchmark", "-c", "user.email=benchmark@localhost", *arguments]
    subprocess.run(command, cwd=at, check=True, stdout=subprocess.DEVNULL)


def prepared(data: Path, epochs: int, folder: Path) -> tuple[Path, dict[str, Any]]:
    """A clone with the one spec in its index, its data sharded: (its path, the spec's content)."""
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe")
    clone = folder / "clone"
    git("clone", "--quiet", str(ROOT), str(clone), at=folder)
    raw = folder / "raw"
    raw.mkdir()
    (raw / "cifar10_test.tar.gz").symlink_to(data.resolve() / "cifar10_test.tar.gz")
    content = yaml.load(clone / "specs" / "shapes.yaml") | yaml.load(SPEC)
    content["space"]["invariances"] = [*CROP, *FLIP, *COLOUR]
    content["check"] |= {
        "words": {},
        "samples": 200,
        "tolerance": 1.0,
        "retained": 0.0,
        "shortcut": 1.0,
        "matched": 0.0,
    }
    content["training"] |= {
        "encoder": {"kind": "small", "widths": [32, 64, 128, 128], "strides": [2, 2, 2, 1], "groups": 8},
        "global_batch": 256,
        "epochs": epochs,
        "schedule": {"kind": "cosine", "warmup_epochs": 1},
    }
    content["probe"] |= {"labels": ["label"], "k": 200, "few_labels": None}
    content["audit"] |= {"thresholds": [{"measure": "effective_rank.h", "at_least": 1}], "samples": 500}
    set_of = yaml.load(clone / "specs" / "examples" / "data" / "cifar10.yaml")
    set_of["source"] |= {"train": "cifar10_test.tar.gz", "test": None}
    set_of["split"] = {"test": 0.2, "seed": 0, "group": None}
    written(content, clone / "specs" / f"{NAME}.yaml")
    written(set_of, clone / "specs" / "data" / "cifar10_small.yaml")
    entries = {
        "data": {"cifar10_small": {"raw": str(raw)}},
        "specs": {NAME: {"data": "cifar10_small", "files": "specs/none"}},
    }
    written(entries, clone / "specs" / "index.yaml")
    dvc("repro", "shard@cifar10_small", at=clone)
    git("add", "--all", at=clone)
    git("commit", "--quiet", "--message", "the spec of the ablations", at=clone)
    return clone, content


def written(content: dict[str, Any], file: Path) -> None:
    """Write YAML."""
    from ruamel.yaml import YAML

    with file.open("w", encoding="utf-8") as stream:
        YAML(typ="safe").dump(content, stream)


def edited(content: dict[str, Any], edits: dict[str, Any]) -> dict[str, Any]:
    """The spec with a row's edits; ``training.epochs`` is a factor."""
    content = copy.deepcopy(content)
    for path, value in edits.items():
        section, key = path.split(".")
        content[section][key] = content[section][key] * value if path == "training.epochs" else value
    return content


def experiment(clone: Path, content: dict[str, Any], number: int) -> dict[str, Any]:
    """Run one experiment, and read its figures from ``dvc exp show``."""
    name = f"row-{number}"
    written(content, clone / "specs" / f"{NAME}.yaml")
    dvc("exp", "run", "--temp", "--force", "--name", name, "report", at=clone)
    git("checkout", "--quiet", "--", "specs", at=clone)
    found = _metrics(json.loads(dvc("exp", "show", "--json", at=clone)), name)
    return {short: found.get(long) for short, long in SHOWN.items()} | {"verdict": found.get("verdict")}


def _metrics(shown: Any, name: str) -> dict[str, Any]:
    """The metrics of the experiment of that name, in what ``dvc exp show --json`` prints."""
    if isinstance(shown, dict):
        if shown.get("name") == name and isinstance(shown.get("data"), dict):
            files = shown["data"].get("metrics", {})
            return dict(files["work/report/metrics.json"]["data"][NAME])
        shown = list(shown.values())
    for each in shown if isinstance(shown, list) else ():
        found = _metrics(each, name)
        if found:
            return found
    return {}


def table(rows: dict[str, dict[str, Any]]) -> str:
    """A line a row, shares in percent."""
    lines = ["| experiment | kNN h | kNN z | effective rank of h | log K - loss | drift of keys |", "|---" * 6 + "|"]
    for name, row in rows.items():
        gap = None if row["loss_at_chance"] is None else row["loss_at_chance"] - row["loss"]
        cells = [
            f"{row['knn_h']:.1%}",
            f"{row['knn_z']:.1%}",
            f"{row['effective_rank_h']:.1f}",
            "–" if gap is None else f"{gap:.2f}",
            "–" if row["key_drift"] is None else f"{row['key_drift']:.4f}",
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    some = next(iter(rows.values()))
    lines.append(f"| untrained encoder, raw pixels | {some['untrained']:.1%}, {some['raw']:.1%} | | | | |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run what is not done yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=12, help="of length 1")
    parser.add_argument("--only", help="rows whose name begins so")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "natural")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    given = parser.parse_args()
    if not (given.data / "cifar10_test.tar.gz").is_file():
        print(f"skipped: cifar10_test.tar.gz is not in {given.data}; name its folder with --data")
        return
    given.out.mkdir(parents=True, exist_ok=True)
    store = given.out / "ablations.json"
    rows: dict[str, dict[str, Any]] = json.loads(store.read_text()) if store.exists() else {}
    wanted = {name: edits for name, edits in GRID.items() if name not in rows and name.startswith(given.only or "")}
    with tempfile.TemporaryDirectory() as folder:
        clone, content = prepared(given.data, given.epochs, Path(folder)) if wanted else (Path(), {})
        done: dict[str, dict[str, Any]] = {}
        for number, (name, edits) in enumerate(wanted.items()):
            key = json.dumps(edited(content, edits), sort_keys=True)
            if key not in done:  # composition: both, head: mlp, batch: 256 and length: 1 are one experiment
                done[key] = experiment(clone, edited(content, edits), number)
            rows[name] = done[key]
            store.write_text(json.dumps(rows, indent=1) + "\n")
            print(f"{number + 1} of {len(wanted)}: {name}: {rows[name]}", flush=True)
    rows = {name: rows[name] for name in GRID if name in rows}
    (given.out / "ablations.md").write_text(table(rows))
    print(table(rows))


if __name__ == "__main__":
    main()
