"""A project in small: specs, and everything that the stages write for them, as far as the report reads it."""

from __future__ import annotations

import io
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from stages import report

EVIL = "<img src=x onerror=alert(1)>\"'\u202e$x^{\n</script>"
PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU"
    b"\x00\x00\x00\nIDATx\x9cc`\x00\x00\x00\x02\x00\x01H\xaf\xa4q\x00\x00\x00\x00IEND\xaeB`\x82"
)
SPEC = """# a comment with <b>tags</b>
data: {data}
space:
  invariances:
    - {{kind: rotation, degrees: 15}}
  views: {{kind: pair}}
  preserves: [label]
  target: same
  temperature: 0.1
  sampler: {{kind: in_batch}}
  objective: {{kind: nt_xent}}
training: {{global_batch: 128, seed: 0}}
export: {{description: "{description}"}}
"""
ACCURACY = {  # layer, split → accuracy: h is worse than raw pixels where nothing moves
    ("h", "test"): 0.919786,
    ("h", "view0"): 0.84492,
    ("raw", "test"): 0.97861,
    ("raw", "view0"): 0.459893,
    ("z", "test"): 0.9,
    ("z", "view0"): 0.88,
    ("untrained", "test"): 0.94385,
    ("untrained", "view0"): 0.385027,
}


def write(names: list[str], data: str = "digits") -> None:
    index = {"data": {data: {"raw": "specs/none"}}, "specs": {name: {"data": data} for name in names}}
    Path("specs/index.yaml").write_text(json.dumps(index))
    for name in names:
        Path(f"specs/{name}.yaml").write_text(SPEC.format(data=json.dumps(data), description="by form"))


def put(stage: str, name: str, file: str, content: Any) -> None:
    path = Path("work") / stage / name / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def make(name: str, label: str, data: str = "digits", drift: float = 0.0) -> None:
    """Everything that the stages write, in small."""
    canvas = {"channels": 1, "height": 12, "width": 12, "fit": "pad", "background": 0}
    column = {"kind": "class", "classes": ["0", label], "counts": {"train": [700, 723], "test": [200, 174]}}
    card = {"name": data, "input": canvas, "splits": {"train": 1423, "test": 374}, "columns": {label: column}}
    card |= {"mean": [0.1], "std": [0.3], "shards": [{"count": 1423, "bytes": 2918400}], "fingerprint": "f" * 64}
    put("shard", data, "index.json", card)
    codes = np.repeat(np.arange(2), (700, 723))
    np.savez(Path("work/shard") / data / "index.npz", **{f"train.label.{label}": codes})
    put("shard", data, "ledger.json", {"seen": 1800, "kept": 1797, "refused": {"cut short": 3}, "notes": []})
    cost: dict[str, Any] = dict.fromkeys(("samples", "views", "matrix_entries", "product_operations"), 65536)
    cost |= {"candidates": 255, "log_k": 5.541263545158426, "negatives_per_anchor": 254, "gathered_elements": 9}
    cost |= {"matrix_bytes": {"float32": 262144}, "gathered_bytes": {"float32": 65536}}
    cost |= {
        "false_negatives_per_anchor": {label: 25.468500870894736},
        "same_class_share": {label: 0.10026968846808951},
    }
    put("check", name, "cost.json", cost)
    put("check", name, "findings.json", [])
    put("check", name, "gate.json", {"gate": "pass"})
    summary = {"steps": 1320, "epochs": 120, "candidates": 255, "starts_at": 5.541264, "loss": 0.228341}
    summary |= {"positive_similarity": 0.954127, "negative_similarity": -0.000715, "parameters": 92896}
    summary |= {"temperature": 0.1}
    put("pretrain", name, "summary.json", summary)
    steps = [f"{step},{step // 11},{5 / (1 + step)},5.541,0.9,0.1,{1 + step / 300},{drift}" for step in range(1320)]
    head = "step,epoch,loss,starts_at,positive_similarity,negative_similarity,effective_rank,key_drift"
    put("pretrain", name, "curve.csv", "\n".join([head, *steps, ""]))
    (Path("work/pretrain") / name / "views.png").write_bytes(PNG)
    put("probe", name, "figures.json", {"rows": rows(label)})
    pair = {"value": 0.5, "low": 0.4, "high": 0.6, "count": 374, "split": "view0, view1", "note": ""}
    rank = {"value": 6.62848, "low": 6.1, "high": 7.1, "count": 374, "split": "test", "note": ""}
    nothing = {"value": None, "low": None, "high": None, "count": 0, "split": "test", "note": "rows of length zero"}
    measures = {f"{what}_similarity.{layer}": pair for what in ("positive", "negative") for layer in "hz"}
    measures |= {"effective_rank.h": rank, "effective_rank.z": nothing, f"neighbour_purity.{label}.h": pair}
    counts = {"positive_similarity": [0, 1, 5, 9], "negative_similarity": [3, 9, 2, 0]}
    similarities = {"bins": 4, "low": -1.0, "high": 1.0, "counts": {"h": counts, "z": counts}}
    spectra = {"h": [0.6, 0.3, 0.1], "z": [0.4, 0.3, 0.3]}
    put("audit", name, "measures.json", {"measures": measures, "similarities": similarities, "spectra": spectra})
    demand = {"measure": f"probe.{label}.knn.h.view0", "at_least": 0.75, "value": 0.84492, "low": 0.8, "high": 0.88}
    demand |= {"verdict": "passed", "note": "", "accepted": None}
    put("judge", name, "verdict.json", {"verdict": "passed", "thresholds": "a" * 64, "rows": [demand]})
    put("judge", name, "gate.json", {"gate": "pass"})
    show(name, label)
    bundle = {"identity": "b" * 64, "space_identity": "c" * 64, "weights": "d" * 64, "layer": "h"}
    put("export", name, "card.json", bundle)


SHADES = 24
"""Cells of either sheet: each is of one shade of grey, ten times its number."""


def show(name: str, label: str) -> None:
    """The gallery: a map of 24 samples on a circle in two columns of labels, two queries, and two lists."""
    for sheet in ("map", "pictures"):
        cells = np.repeat(np.repeat(10 * np.arange(SHADES, dtype=np.uint8).reshape(4, 6), 16, 0), 16, 1)
        file = io.BytesIO()
        Image.fromarray(cells).convert("RGB").save(file, "WEBP", lossless=True)
        path = Path("work/gallery") / name / f"{sheet}.webp"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.getvalue())
    angle = 2 * np.pi * np.arange(SHADES) / SHADES
    circle = [[round(float(each), 3) for each in pair] for pair in zip(np.cos(angle), np.sin(angle), strict=True)]
    line = [[round(number / 12 - 1, 3), 0.0] for number in range(SHADES)]
    labels: dict[str, Any] = {
        "other": {"classes": ["x", "y", "z"], "codes": [number % 3 for number in range(SHADES)]},
        label: {"classes": ["0", label], "codes": [int(number >= 12) for number in range(SHADES)]},
        "age": {"values": [None, *(number + 0.5 for number in range(1, SHADES))]},
    }
    placed: dict[str, Any] = {"layer": "h", "split": "test", "of": 374, "column": label, "note": "", "labels": labels}
    placed |= {"rows": list(range(0, 10 * SHADES, 10)), "nearby": {"points": circle, "perplexity": 7.6875}}
    placed |= {"principal": {"points": line, "shares": [0.46875, 0.15625]}}

    def near(cell: int, code: int) -> dict[str, Any]:
        return {"cell": cell, "row": 5 * cell, "code": code, "cosine": 0.984375 - cell / 64}

    found = {"h": [near(3, 1), near(4, 0)], "raw": [near(5, 0), near(3, 1)]}
    asked = [{"cell": 1, "row": 17, "code": 1, "layers": found}, {"cell": 2, "row": 18, "code": 0, "layers": found}]

    def sample(cell: int, split: str) -> dict[str, Any]:
        return {
            "cell": cell,
            "split": split,
            "row": cell,
            "name": f"{label}.png",
            "labels": {label: label, "other": "x"},
        }

    pair = {"figures": {"cosine": 0.953125, "positive_cosine": 0.890625}, "column": label}
    voted = {"figures": {"share": 0.859375, "own_share": 0.140625}, "column": label, "label": label, "voted": "0"}
    lists = {
        "worst_false_negatives": [{**pair, "samples": [sample(6, "test"), sample(7, "test")]}],
        "suspicious_labels": [{**voted, "samples": [sample(8, "train")]}],
        "outliers": [{"figures": {"distance": 0.203125}, "samples": [sample(9, "train")]}],
    }
    sheet = {"columns": 6, "width": 16, "height": 16, "count": SHADES}
    nearest = {"column": label, "classes": ["0", label], "among": 1423, "queries": asked, "note": ""}
    content = {"map": placed, "nearest": nearest, "lists": lists, "sheets": {"map": sheet, "pictures": sheet}}
    put("gallery", name, "gallery.json", content)
    for place, role in enumerate(("sample", "view_1", "view_2")):
        (Path("work/pretrain") / name / f"view-{place:02d}-{role}.png").write_bytes(PNG)
    versions = {"python": "3.11.0", "torch": "2.4.0"}
    put("pretrain", name, "lineage.json", {"depends_on": "e" * 16, "versions": versions})


def rows(label: str) -> list[dict[str, Any]]:
    """Both probes on every layer and split, and one shuffled control that could not be computed."""
    plain = {"label": label, "control": None, "count": 374, "gallery": 1423, "chance": 0.106114, "confidence": 0.95}
    found = []
    for (layer, split), accuracy in ACCURACY.items():
        for probe, settings in (("knn", {"k": 20, "temperature": 0.1}), ("linear", {"regularization": 0.001})):
            row = {**plain, **settings, "layer": layer, "split": split, "probe": probe, "note": ""}
            found.append({**row, "accuracy": accuracy, "low": accuracy - 0.02, "high": accuracy + 0.02})
    control = {"control": "shuffled labels", "accuracy": None, "low": None, "high": None, "note": "not computable"}
    return [*found, {**found[0], **control}]


def audit_more(name: str, label: str, transformation: str = "rotation") -> None:
    """What the audit writes beside its measures, and their scalars among them; a reason among the judge's words."""

    def told(value: float | None) -> dict[str, float | None]:
        return {"value": value, "low": None if value is None else value - 0.01, "high": value and value + 0.01}

    def estimated(value: float, **more: Any) -> dict[str, Any]:
        return {**told(value), "count": 374, "note": "", **more}

    temperatures = [
        {
            "temperature": at,
            "negatives": 373,
            "effective_negatives": estimated(300 * at + 2.125),
            "repulsion": estimated(0.5 + at / 4),
            "same_label": {label: estimated(0.7 - at, chance=0.501337)},
        }
        for at in (0.05, 0.1, 0.5)
    ]
    nearest = {"nearest": 1, "chance": 0.501337, "among_nearest": estimated(0.84375)}
    ranks = [
        {"class": "0", "code": 0, "count": 200, "effective_rank": 4.0625, "participation_ratio": 3.0625, "note": ""}
    ]
    ranks += [
        {**ranks[0], "class": label, "code": 1, "count": 174, "effective_rank": None, "note": "not computable: x"}
    ]
    near = {"neighbours": 20, "asked": 374, "quantiles": {"0.05": 1.5625, "0.5": 2.5625, "0.95": 4.5625}, "note": ""}
    layer: dict[str, Any] = {
        "pairs": {"count": 374, "split": "view0, view1", "note": "", "temperatures": temperatures},
        "classes": {label: ranks},
        "neighbourhoods": {**near, "anywhere": 7.5625},
        "a later structure": {"x": [1]},
    }
    layer["pairs"] |= {"false_negatives": {label: nearest}}
    put("audit", name, "geometry.json", {"layers": {"h": layer, "z": layer}})

    def at(strength: float, move: float) -> dict[str, Any]:
        kept = {**told(0.90625), "before": 0.75, "after": 0.6875, "chance": 0.5}
        answer = {"movement": told(move), "retrieval": {**told(0.65625), "chance": 0.0039}, "labels": {label: kept}}
        blank = {**answer, "movement": told(move / 2), "labels": {label: {**kept, **told(None)}}}
        return {"strength": strength, "changed": 250, "layers": {"h": answer, "z": blank}}

    def row(called: str, declared: bool, points: list[Any], reason: str | None = None) -> dict[str, Any]:
        kind = {"kind": called, "degrees": 15.0}
        return {"name": called, "declared": declared, "transformation": kind, "points": points, "reason": reason}

    drawn = {"parameter": "degrees", "kind": "number", "classes": 0, "chance": 0.0, "trained": 512, "count": 256}
    skills = {"h": told(0.71875), "z": told(0.21875), "raw": told(0.34375)}
    boundary = {
        "name": transformation,
        "parameters": [{**drawn, "skill": skills, "gone": told(0.484375)}],
        "reason": None,
    }
    readable = {"name": label, "how": "column", "layers": {**skills, "untrained": told(0.15625)}, "reason": None}
    points = [at(0.25, 0.03125), at(1.0, 0.09375)]
    achieved = {
        "transformations": [
            row(transformation, True, points),
            row("hue", True, [], "cannot be used on one channel"),
            row("erase", False, [{"strength": 0.25, "changed": 3}, at(1.0, 0.59375)]),
        ],
        "left_out": [{"name": "shift", "reason": "removes position, which the declaration removes"}],
        "boundary": [{**boundary, "sentence": "what was drawn is readable from h and less so from z"}],
        "preserved": [readable],
        "detail": [{**readable, "name": "writer", "layers": {}, "reason": "all rows are of one class"}],
        "sentences": [f"{label}: skill 0.72 from h, more than from raw (0.34)"],
        "samples": {"test": 256, "train": 512},
    }
    put("audit", name, "achieved.json", achieved)
    file = Path("work/audit") / name / "measures.json"
    content = json.loads(file.read_text())
    scalar = {"count": 250, "split": "test", "note": ""}
    for each, move in ((transformation, 0.09375), ("erase", 0.59375)):
        for layer_name, share in (("h", 1.0), ("z", 0.5)):
            content["measures"][f"movement.{each}.{layer_name}"] = {**told(move * share), **scalar}
            content["measures"][f"retrieval.{each}.{layer_name}"] = {**told(0.65625), **scalar}
        content["measures"][f"label_kept.{each}.{label}.h"] = {**told(0.90625), **scalar}
    file.write_text(json.dumps(content))
    lists = {
        "outliers": {"entries": 37, "note": "far from all"},
        "near_duplicates": {"entries": None, "note": "not made: x"},
        "worst_false_negatives": {"entries": 12, "note": "12 of 374 test images"},
        "suspicious_labels": {"entries": 3, "note": "3 of 1797 labels"},
    }
    put("audit", name, "curation/lists.json", lists)
    verdict = json.loads((Path("work/judge") / name / "verdict.json").read_text())
    sentence = f"shortcut: {label} is not what the space reads"
    verdict["reasons"] = [{"reason": "shortcut", "sentence": sentence, "measures": ["matching.h"]}]
    put("judge", name, "verdict.json", verdict)


class Page(HTMLParser):
    """Every element, the text, and every figure with the spec that it stands in."""

    VOID = frozenset(("meta", "link", "img", "br", "input"))

    def __init__(self, text: str):
        super().__init__()
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.figures: list[tuple[str, str, str, str]] = []  # spec, name, full value, as shown
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1][0] in ("script", "style"):
            return
        self.words.append(data)
        tag, attributes = self.open[-1] if self.open else ("", {})
        if tag == "data" and "data-figure" in attributes:
            spec = next(each["data-spec"] for _, each in reversed(self.open) if "data-spec" in each)
            self.figures.append((str(spec), str(attributes["data-figure"]), str(attributes["value"]), data))

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


def made() -> tuple[str, Page]:
    """The page as the report writes it of what is there, as text and read."""
    report.main([])
    text = Path("work/report.html").read_text(encoding="utf-8")
    return text, Page(text)
