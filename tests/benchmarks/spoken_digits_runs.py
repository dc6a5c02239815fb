"""Trained spaces of spoken digits: the digit of a speaker whom the probe never heard, few labels, and what pitch costs.

    python -m tests.benchmarks.spoken_digits_runs --data FOLDER --work FOLDER [--only NAME ...]

Each row of RUNS is the shipped spec with an edit (``deeper`` is the shipped one itself), trained by the pipeline's own
stages in a clone of the last commit under --work (three to six core minutes each; what is done there is kept). Every
layer is read by the same two probes: linear and kNN (k 20). *unheard*: trained on five speakers, asked about the sixth,
the mean of the six, on the test clips; on the training clips it is what recipes are chosen by. *kept*: under a pitch of
so many semitones that always acts, in parts of what is read without it, above chance: transported (probe of the clips
as they are: what the audit calls label_kept, and the check transported) and erased (probe trained on moved clips).
Writes results/spoken_digits_runs.json and .md.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LAYERS = ("h", "z", "raw", "untrained")
ASKED_OF = ("test", "view0", "train")  # clips that the probe of five speakers is asked about
SEMITONES = (3, 6, 12)
K, TEMPERATURE = 20, 0.1
Floats = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int64]

PITCH_3 = {"kind": "pitch", "semitones": 3, "probability": 0.5}
PITCH_6 = {"kind": "pitch", "semitones": 6, "probability": 0.8}
DEEP = {"kind": "small", "widths": [32, 64, 128, 256], "strides": [2, 2, 2, 2], "groups": 8}
DEEPER = {"kind": "small", "widths": [32, 64, 128, 256, 256], "strides": [2, 2, 2, 2, 2], "groups": 8}


def invariances(*pitch: dict[str, Any]) -> dict[str, Any]:
    """An edit of space.invariances: the shipped ones with another pitch, or none."""
    return {
        "space.invariances": [
            {"kind": "time_shift", "ms": 60},
            {"kind": "tempo", "speed": [0.85, 1.2], "probability": 0.5},
            *pitch,
            {"kind": "gain", "db": 6},
            {"kind": "noise_at_snr", "snr": [15, 40], "probability": 0.8},
            {"kind": "frequency_mask", "share": [0.0, 0.15]},
        ]
    }


TRUNK = {"training.encoder.trunk": {"kind": "small", "widths": [32, 64, 128], "strides": [2, 2, 2], "groups": 8}}
RUNS: dict[str, dict[str, Any]] = {  # name to edits of specs/examples/spoken_digits.yaml, by dotted path
    "pitch_none": {**TRUNK, **invariances(), "training.epochs": 30},
    "pitch_6": {**TRUNK, **invariances(PITCH_6), "training.epochs": 30},
    "deep": {"training.encoder.trunk": DEEP, **invariances(PITCH_3), "training.epochs": 30},
    "deeper": {"training.encoder.trunk": DEEPER, **invariances(PITCH_3), "training.epochs": 30},
    "one_room_pitch_none": {**TRUNK, **invariances(), "training.epochs": 15},
    "one_room_pitch_6": {**TRUNK, **invariances(PITCH_6), "training.epochs": 15},
}


# --- training, by the stages ---


def clone(work: Path) -> Path:
    """A clone of the last commit, whose work/ is kept, with an empty index."""
    from ruamel.yaml import YAML

    folder = work / "clone"
    if not folder.exists():
        work.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
        with (folder / "specs" / "index.yaml").open("w", encoding="utf-8") as file:
            YAML().dump({"data": {}, "specs": {}}, file)
    return folder


def sharded(name: str, data: Path, folder: Path) -> None:
    """Enter and shard a data set of the clone: spoken, the recordings, or one_room (``spoken_digits_speaker``)."""
    from ruamel.yaml import YAML

    from tests.benchmarks.spoken_digits_speaker import sets_of, written

    if (folder / "work" / "shard" / name).exists():
        return
    raw = data.resolve()
    if name == "one_room":
        raw = folder.resolve().parent / name
        if not raw.exists():
            sets, _, labels, names = sets_of(data)
            written(sets["one room"], labels, names, raw)
    source = folder / "specs" / "examples" / "data" / "spoken_digits.yaml"
    (folder / "specs" / "data" / f"{name}.yaml").write_bytes(source.read_bytes())
    index = folder / "specs" / "index.yaml"
    content = YAML().load(index.read_text(encoding="utf-8"))
    content["data"][name] = {"raw": str(raw)}
    with index.open("w", encoding="utf-8") as file:
        YAML().dump(content, file)
    stage("shard", name, folder)


def stage(name: str, spec: str, folder: Path) -> None:
    """Run one stage in the clone. Raises CalledProcessError."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    subprocess.run([sys.executable, "-m", f"stages.{name}", spec], cwd=folder, env=environment, check=True)


def trained(name: str, like: str, data: str, edits: dict[str, Any], folder: Path) -> str:
    """Write the spec and run what has not been run of it; the core seconds that pretrain took, where it ran whole."""
    from ruamel.yaml import YAML

    yaml = YAML()
    spec = yaml.load((folder / "specs" / "examples" / f"{like}.yaml").read_text(encoding="utf-8"))
    spec["data"] = data
    for path, value in edits.items():
        *parents, last = path.split(".")
        at = spec
        for key in parents:
            at = at[key]
        at[last] = value
    with (folder / "specs" / f"{name}.yaml").open("w", encoding="utf-8") as file:
        yaml.dump(spec, file)
    took = folder / "work" / f"{name}.core_seconds"
    for each in ("check", "pretrain", "embed", "probe", "audit", "judge"):
        if not (folder / "work" / each / name).exists():
            before = core_seconds()
            stage(each, name, folder)
            if each == "pretrain":
                took.write_text(f"{core_seconds() - before:.0f}", encoding="utf-8")
    return took.read_text(encoding="utf-8") if took.exists() else ""


def core_seconds() -> float:
    """Of all processes that have ended: what a busy machine does not change much."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# --- reading ---


def answers(train: Floats, codes: Codes, asked: Floats, probe: str) -> Codes:
    """What one probe says of rows."""
    from pipeline.neighbours import nearest_rows
    from pipeline.probes.knn import vote
    from pipeline.probes.linear import fit_linear

    if probe == "linear":
        return fit_linear(train, codes).predict(asked)
    similarity, near = nearest_rows(asked, train, K)
    return vote(similarity, codes[near], TEMPERATURE, int(codes.max()) + 1)


def unheard(rows: dict[str, Floats], labels: dict[str, dict[str, Codes]], probe: str, split: str) -> list[float]:
    """The digit read from each speaker's clips of a split by a probe of the other speakers' training clips."""
    found = []
    for speaker in np.unique(labels["train"]["speaker"]):
        others, own = labels["train"]["speaker"] != speaker, labels[split]["speaker"] == speaker
        said = answers(rows["train"][others], labels["train"]["digit"][others], rows[split][own], probe)
        found.append(round(float((said == labels[split]["digit"][own]).mean()), 4))
    return found


def unheard_rows(folder: Path, name: str) -> list[dict[str, Any]]:
    """A row a layer and probe, of one embedded run."""
    source = folder / "work" / "embed" / name
    with np.load(source / "labels.npz") as arrays:
        labels = {
            split: {column: arrays[f"{split}.{column}"] for column in ("digit", "speaker")}
            for split in ("train", "test")
        }
    labels["view0"] = labels["test"]
    found = []
    for layer in LAYERS:
        rows = {split: np.load(source / f"{split}.{layer}.npy") for split in ASKED_OF}
        for probe in ("linear", "knn"):
            row: dict[str, Any] = {"layer": layer, "probe": probe}
            for split in ASKED_OF:
                row[split] = unheard(rows, labels, probe, split)
            found.append(row)
    return found


def kept_rows(folder: Path, name: str, data: str) -> list[dict[str, Any]]:
    """What pitch leaves of both labels, of each layer by each probe, transported and erased."""
    import torch

    from pipeline.achieved.looking import Networks
    from pipeline.keys import Keys
    from pipeline.shards import Shards
    from pipeline.views import draw_view
    from pipeline.views.audio import Pitch

    shards = Shards(folder / "work" / "shard" / data)
    source = folder / "work" / "pretrain" / name
    described = json.loads((source / "network.json").read_text(encoding="utf-8"))
    networks = Networks(described, source / "weights.safetensors", shards.card.input)
    clips = {split: shards.batch(split, np.arange(shards.card.splits[split])) for split in ("train", "test")}
    labels = {split: shards.labels(split) for split in clips}
    plain = {split: networks.encode(each, LAYERS) for split, each in clips.items()}
    rows = []
    for semitones in SEMITONES:
        moved = {}
        for number, (split, each) in enumerate(clips.items()):
            keys = Keys.of(0, -9, np.arange(len(each)), number)
            parts = [
                draw_view(each[some], [Pitch(semitones=semitones)], keys.take(some), shards.card.input.size)
                for some in (slice(start, start + 256) for start in range(0, len(each), 256))
            ]
            moved[split] = networks.encode(torch.cat(parts), LAYERS)
        for layer in LAYERS:
            before, after = ({split: each[layer].numpy() for split, each in whole.items()} for whole in (plain, moved))
            for label in ("digit", "speaker"):
                codes, truth = labels["train"][label], labels["test"][label]
                chance = float(np.bincount(truth).max()) / len(truth)
                for probe in ("linear", "knn"):
                    read = {
                        "plain": answers(before["train"], codes, before["test"], probe),
                        "transported": answers(before["train"], codes, after["test"], probe),
                        "erased": answers(after["train"], codes, after["test"], probe),
                    }
                    right = {key: float((said == truth).mean()) for key, said in read.items()}
                    row = {"semitones": semitones, "layer": layer, "label": label, "probe": probe}
                    row |= {key: round(value, 4) for key, value in right.items()}
                    for key in ("transported", "erased"):
                        row[f"{key} kept"] = round((right[key] - chance) / (right["plain"] - chance), 4)
                    rows.append(row)
    return rows


def stage_rows(folder: Path, name: str) -> dict[str, Any]:
    """What the stages themselves found: the probes' rows, and what the audit says is kept of each label."""
    rows = json.loads((folder / "work" / "probe" / name / "figures.json").read_text(encoding="utf-8"))["rows"]
    measures = json.loads((folder / "work" / "audit" / name / "measures.json").read_text(encoding="utf-8"))["measures"]
    kept = {key: each for key, each in measures.items() if key.startswith("label_kept.")}
    keys = ("label", "probe", "layer", "split", "accuracy", "low", "high", "chance", "count")
    plain = (row for row in rows if row["accuracy"] is not None and row["control"] is None)
    return {
        "probe": [{key: row[key] for key in keys} for row in plain],
        "audit": {key: [each["value"], each["low"], each["high"]] for key, each in kept.items()},
    }


def measured(name: str, data: Path, work: Path) -> dict[str, Any]:
    """Everything of one run; what was done before is read."""
    done = work / f"{name}.json"
    if not done.exists():
        folder = clone(work)
        like, edits = ("speakers", {}) if name == "speakers" else ("spoken_digits", RUNS[name])
        clips = "one_room" if name.startswith("one_room") else "spoken"
        sharded(clips, data, folder)
        seconds = trained(name, like, clips, edits, folder)
        found = {"edits": edits, "core_seconds": seconds, "unheard": unheard_rows(folder, name)}
        found |= {"kept": kept_rows(folder, name, clips), **stage_rows(folder, name)}
        done.write_text(json.dumps(found), encoding="utf-8")
    content: dict[str, Any] = json.loads(done.read_text(encoding="utf-8"))
    return content


# --- tables ---

ASKED = (  # row of figures.json: label, probe, split
    ("digit", "linear", "test"),
    ("digit", "knn", "test"),
    ("digit", "linear", "view0"),
    ("digit", "knn", "view0"),
    ("digit", "few_1", "test"),
    ("digit", "few_10", "test"),
    ("speaker", "linear", "test"),
    ("speaker", "knn", "test"),
    ("speaker", "linear", "view0"),
    ("speaker", "knn", "view0"),
)


def tables(found: dict[str, Any]) -> str:
    """Everything as markdown, a section a question."""
    lines = ["## The digit of a speaker whom the probe never heard, % (view0: moved test clips)", ""]
    lines += ["| run | training, core s | probe | on | h | z | log-mel statistics | untrained | h, each speaker |"]
    lines += ["|---|---|---|---|---|---|---|---|---|"]
    for name, run in found.items():
        for probe in ("linear", "knn"):
            for split in ASKED_OF:
                of = {row["layer"]: row[split] for row in run["unheard"] if row["probe"] == probe}
                means = " | ".join(f"{100 * np.mean(of[layer]):.1f}" for layer in LAYERS)
                each = " ".join(f"{100 * value:.0f}" for value in of["h"])
                lines.append(f"| {name} | {run['core_seconds']} | {probe} | {split} | {means} | {each} |")
    lines += ["", "## What the probe stage read, % (view0: moved clips; few_1: with 1 % of the labels)", ""]
    lines += [
        "| run | label | probe | clips | h | z | log-mel statistics | untrained |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, run in found.items():
        for label, probe, split in ASKED:
            of = {row["layer"]: row["accuracy"] for row in run["probe"] if _is(row, label, probe, split)}
            if len(of) == len(LAYERS):
                shown = " | ".join(f"{100 * of[layer]:.1f}" for layer in LAYERS)
                lines.append(f"| {name} | {label} | {probe} | {split} | {shown} |")
    lines += ["", "## Left under a pitch that always acts, % of what is read above chance: transported, erased", ""]
    lines += [
        "| run | semitones | label | probe | h | z | log-mel statistics | untrained |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, run in found.items():
        cells: dict[tuple[Any, ...], dict[str, str]] = {}
        for row in run["kept"]:
            at = (row["semitones"], row["label"], row["probe"])
            pair = f"{100 * row['transported kept']:.0f}, {100 * row['erased kept']:.0f}"
            cells.setdefault(at, {})[row["layer"]] = pair
        for at, of in cells.items():
            lines.append(f"| {name} | {' | '.join(map(str, at))} | {' | '.join(of[layer] for layer in LAYERS)} |")
    lines += ["", "## What the audit says is kept of each label, of 200 test clips, kNN", ""]
    lines += ["| run | measure | value |", "|---|---|---|"]
    for name, run in found.items():
        for key, value in run["audit"].items():
            if not any(f".{kind}." in key for kind in ("pitch", "time_reversal")):
                continue
            shown = "" if value[0] is None else f"{value[0]:.2f} ({value[1]:.2f} to {value[2]:.2f})"
            lines.append(f"| {name} | {key} | {shown} |")
    return "\n".join(lines) + "\n"


def _is(row: dict[str, Any], label: str, probe: str, split: str) -> bool:
    return (row["label"], row["probe"], row["split"]) == (label, probe, split)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="folder with train.tar.gz and test.tar.gz")
    parser.add_argument("--work", type=Path, required=True, help="where clones, runs and what is done are kept")
    parser.add_argument("--only", nargs="*", choices=[*RUNS, "speakers"], help="these runs alone")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    given = parser.parse_args()
    found = {name: measured(name, given.data, given.work) for name in given.only or [*RUNS, "speakers"]}
    (given.out / "spoken_digits_runs.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    text = tables(found)
    (given.out / "spoken_digits_runs.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
