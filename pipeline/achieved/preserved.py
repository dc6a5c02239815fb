"""What stayed readable: every label column, those that are to be preserved and those that nobody asked for.

Read from the embedded splits, beside raw pixels, the untrained encoder, labels dealt out anew, and what the check's
cheap probes read from the pictures themselves. What nobody asked for and is read all the same is what telling samples
apart has kept: it costs room, and may be a shortcut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pipeline.achieved.found import Found
from pipeline.achieved.looking import RAW_SIDE, Rows, chosen
from pipeline.achieved.reading import SHUFFLED, Question, dealt, question, read, skill, told
from pipeline.achieved.targets import Target
from pipeline.audit.estimate import Estimate
from pipeline.check.interval import Resampled
from pipeline.embeddings import Embeddings, unusable
from pipeline.encoding import RAW_SIDE as EMBEDDED_SIDE
from pipeline.modalities.proofs import proof_of
from pipeline.probes.intervals import wilson
from pipeline.shards import Shards

LAYERS = ("h", "z", "raw", "untrained")
TRAINED = 2000
"""Training rows that a label's probe is fitted on, at most."""
TESTED = 1000
"""Test rows that it is asked about, at most."""
CHEAP = "cheap"


class Vectors:
    """Rows of the embedded splits, by layer; each layer with the reason why it cannot be read, or None."""

    def __init__(self, embeddings: Embeddings, shards: Shards):
        self.rows = {
            split: chosen(shards.card.splits[split], count, split)
            for split, count in (("train", TRAINED), ("test", TESTED))
        }
        self.layers: dict[str, tuple[Tensor, Tensor]] = {}
        self.faults: dict[str, str] = {}
        for layer in LAYERS:
            parts = [np.asarray(embeddings.features(split, layer)[self.rows[split]]) for split in ("train", "test")]
            reasons = [unusable(part, cosine=False) for part in parts]
            if any(reasons):
                self.faults[layer] = next(reason for reason in reasons if reason)
            elif layer == "raw":
                self.layers[layer] = (_raw(parts[0], shards), _raw(parts[1], shards))
            else:
                self.layers[layer] = (torch.from_numpy(parts[0]), torch.from_numpy(parts[1]))
        self.resampled = Resampled.of(self.rows["test"], 0)


def _raw(rows: np.ndarray, shards: Shards) -> Tensor:
    """Embedded raw samples (n, D), pooled on."""
    return proof_of(shards.card.input).raw_again(torch.from_numpy(rows), EMBEDDED_SIDE, RAW_SIDE)


def columns_asked(shards: Shards, rows: Mapping[str, Rows]) -> tuple[dict[str, Question], dict[str, str]]:
    """Every label column as a question, and why the others are none."""
    labels = {split: shards.labels(split) for split in rows}
    asked: dict[str, Question] = {}
    faults: dict[str, str] = {}
    for name, column in shards.card.columns.items():
        of_splits = [_target(name, column.kind == "class", labels[split][name][rows[split]]) for split in rows]
        made = question(*of_splits)
        if isinstance(made, Question):
            asked[name] = made
        else:
            faults[name] = made
    return asked, faults


def _target(name: str, classes: bool, values: np.ndarray) -> Target:
    tensor = torch.from_numpy(np.ascontiguousarray(values))
    if classes:
        return Target(name, "class", tensor.long(), tensor >= 0)
    numbers = tensor.double()
    known = numbers.isfinite()
    return Target(name, "number", torch.where(known, numbers, 0.0)[:, None], known)


def worths_of(asked: Mapping[str, Question], vectors: Vectors) -> dict[str, dict[str, Tensor]]:
    """What each layer, and h with the labels dealt out anew, knows of every column: layer → column → (rows,)."""
    questions = list(asked.values())
    found: dict[str, dict[str, Tensor]] = {}
    for layer, (train, test) in vectors.layers.items():
        found[layer] = dict(zip(asked, read(train, test, questions), strict=True))
    if "h" in vectors.layers and questions:
        shuffled = read(*vectors.layers["h"], [dealt(each) for each in questions])
        found[SHUFFLED] = dict(zip(asked, shuffled, strict=True))
    return found


def of_columns(
    names: Sequence[str],
    asked: Mapping[str, Question],
    faults: Mapping[str, str],
    vectors: Vectors,
    worths: Mapping[str, Mapping[str, Tensor]],
    cheap: Mapping[str, tuple[float, float, int]],
    preserves: Sequence[str],
    found: Found,
) -> list[dict[str, Any]]:
    """A table row for each label column; its scalars are entered under ``preserved`` or ``detail``.

    Args:
        worths: of all columns (``worths_of``).
        cheap: column to (accuracy, chance, test rows) of the check's best cheap probe of the pictures.
    """
    table = []
    for name in names:
        family = "preserved" if name in preserves else "detail"
        row: dict[str, Any] = {"name": name, "how": "column", "transformation": None, "layers": {}}
        reason = faults.get(name)
        drawn_of: dict[str, Tensor] = {}
        for layer in (*LAYERS, SHUFFLED):
            why = reason or vectors.faults.get("h" if layer == SHUFFLED else layer)
            if why is not None:
                if layer != SHUFFLED:
                    found.miss(f"{family}.{name}.{layer}", "test", why)
                continue
            drawn_of[layer] = skill(worths[layer][name], asked[name], vectors.resampled)
        enter_read(found, family, name, drawn_of, row, len(asked[name].test_rows) if name in asked else 0)
        if name in cheap and reason is None:
            row["layers"][CHEAP] = _cheap(f"{family}.{name}.{CHEAP}", cheap[name], found)
        if reason is None:
            each = asked[name]
            sizes = {"trained": int(each.train_rows.sum()), "count": len(each.test_rows)}
            row |= {"kind": each.kind, "classes": each.classes, "chance": each.chance, **sizes}
        table.append({**row, "reason": reason})
    return table


def enter_read(
    found: Found, family: str, name: str, skills: Mapping[str, Tensor], row: dict[str, Any], count: int
) -> None:
    """Enter the skills (R + 1,) of the layers and the gain over the untrained network, and fill the table's row."""
    for layer, drawn in skills.items():
        row["layers"][layer] = told(drawn)
        if layer != SHUFFLED:
            found.add_drawn(f"{family}.{name}.{layer}", "test", drawn, count)
    if "h" in skills and "untrained" in skills:
        found.add_drawn(f"gain.{name}", "test", skills["h"] - skills["untrained"], count)
    else:
        found.miss(f"gain.{name}", "test", "h or the untrained network cannot be read", count)


def _cheap(measure: str, read_of: tuple[float, float, int], found: Found) -> dict[str, float]:
    """The check's cheap probe, as a skill."""
    accuracy, chance, count = read_of
    low, high = wilson(round(accuracy * count), count)
    drawn = torch.tensor([accuracy, low, high], dtype=torch.float64)
    value, least, most = ((drawn - chance) / (1 - chance)).clamp(min=-1.0).tolist()
    note = "of the check's best cheap probe of the samples, on its own test rows"
    found.add(measure, "test", Estimate(value, least, most, count, note))
    return {"value": value, "low": least, "high": most}
