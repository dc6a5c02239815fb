"""Declared against achieved: how a space answers to what should not matter, and to what nobody declared.

For every transformation, at every strength, three numbers of h and of z: movement (``movement``), the share of pictures
that their transformed self still finds among all (top 1), and how much of a label a vote of the nearest training
vectors, all untransformed, still reads from it: (accuracy - chance) transformed / untransformed.

n test pictures, of which a transformation changes some; only these count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pipeline.achieved.found import Found
from pipeline.achieved.looking import Networks, Rows, Sample
from pipeline.achieved.movement import movement, retrieved, spacing
from pipeline.achieved.reading import told
from pipeline.achieved.strength import scales, weakened
from pipeline.audit.estimate import Estimate
from pipeline.check.interval import Resampled, figure, kept
from pipeline.embeddings import unusable
from pipeline.neighbours import unit
from pipeline.probes.intervals import wilson
from pipeline.probes.knn import vote
from pipeline.spec import Refusal
from pipeline.views import Invariance

LAYERS = ("h", "z")
TEMPERATURE = 0.1
"""A neighbour's vote weighs exp(cosine / temperature)."""
FEWEST = 10
"""Pictures that a transformation must change, or it is told that it changes hardly any."""


@dataclass(frozen=True)
class Known:
    """The training vectors that vote, of one layer, and the labels of both splits."""

    gallery: Mapping[str, np.ndarray]
    """layer to (G, D) float32, not scaled"""
    columns: Mapping[str, tuple[Rows, Rows, int]]
    """column to (codes of the gallery (G,), codes of the test pictures (n,), classes)"""
    neighbours: int


class Layer:
    """The plain test pictures in one layer: unit rows, how far they lie apart, and what their neighbours say."""

    def __init__(self, plain: Tensor, known: Known, layer: str, resampled: Resampled):
        gallery = known.gallery[layer]
        self.fault = unusable(plain.numpy()) or unusable(gallery)
        self.known, self.resampled = known, resampled
        if self.fault is not None:
            return
        self.rows = torch.from_numpy(unit(plain.numpy()))
        self.apart = spacing(self.rows, resampled)
        if float(self.apart.min()) <= 0:
            self.fault = "more than half of the rows lie on one spot"
            return
        self.gallery = torch.from_numpy(unit(gallery))
        self.right = self.answers(self.rows)

    def answers(self, rows: Tensor) -> dict[str, Tensor]:
        """For each column whether the vote is right: (n,) float64."""
        near = (rows @ self.gallery.T).topk(min(self.known.neighbours, len(self.gallery)), dim=1)  # bounded: n x G
        similarity, index = near.values.numpy(), near.indices.numpy()
        found = {}
        for column, (codes, truth, classes) in self.known.columns.items():
            voted = vote(similarity, codes[index], TEMPERATURE, classes)
            found[column] = torch.from_numpy((voted == truth).astype(np.float64))
        return found


def achieved(
    name: str, transformation: Invariance, stream: int, sample: Sample, networks: Networks, plain: Mapping[str, Layer]
) -> tuple[list[dict[str, Any]], str, str | None]:
    """One transformation at each of its strengths: (points, its kind of strength, why there is none or None).

    A point is plain data; the last is of full strength.
    """
    points: list[dict[str, Any]] = []
    try:
        kind = "scaled" if scales(transformation) else "acts or does not"
        for strength, weaker in weakened(transformation):
            moved, _ = sample.draw(weaker, stream)
            changed = (moved != sample.images).flatten(1).any(1).nonzero().flatten()
            if len(changed) < FEWEST:
                points.append({"strength": strength, "changed": len(changed)})
                continue
            vectors = networks.encode(moved)
            layers = {layer: _layer(vectors[layer], changed, plain[layer]) for layer in LAYERS}
            points.append({"strength": strength, "changed": len(changed), "layers": layers})
    except Refusal as refusal:
        return [], "", str(refusal)
    if not any("layers" in point for point in points):
        return [], kind, f"changes {points[-1]['changed']} of {len(sample.rows)} samples"
    return points, kind, None


def _layer(vectors: Tensor, changed: Tensor, plain: Layer) -> dict[str, Any]:
    fault = plain.fault
    if fault is None and bool((~torch.isfinite(vectors)).any()):
        fault = "transformed rows hold NaN or infinity"
    if fault is not None:
        return {"note": f"not computable: {fault}"}
    rows = torch.from_numpy(unit(vectors.numpy()))
    hits = retrieved(plain.rows, rows, changed)
    low, high = wilson(int(hits.sum()), len(hits))
    found: dict[str, Any] = {
        "movement": told(movement(plain.rows, rows, changed, plain.apart, plain.resampled)),
        "retrieval": {"value": float(hits.double().mean()), "low": low, "high": high, "chance": 1 / len(rows)},
        "labels": {},
    }
    right = plain.answers(rows)
    for column, (_, truth, _) in plain.known.columns.items():
        chance = float(np.bincount(truth[changed.numpy()]).max()) / len(changed)
        before = plain.resampled.mean(plain.right[column][changed], changed)
        after = plain.resampled.mean(right[column][changed], changed)
        share = kept(after, before, chance) if figure(before)[1] > chance else None
        of_label: dict[str, Any] = {"before": float(before[0]), "after": float(after[0]), "chance": chance}
        of_label |= {"value": None, "low": None, "high": None} if share is None else told(share)
        found["labels"][column] = of_label
    return found


def enter(found: Found, name: str, points: list[dict[str, Any]], reason: str | None, columns: list[str]) -> None:
    """Enter the scalars of one transformation: those at its full strength."""
    whole = points[-1] if points else {}
    if reason is None and "layers" not in whole:
        reason = f"changes {whole['changed']} samples at full strength"
    for layer in LAYERS:
        missed = {"note": f"not computable: {reason}"}
        at: dict[str, Any] = missed if reason is not None else whole["layers"][layer]
        note = at.get("note", "")
        for measure in ("movement", "retrieval"):
            _one(found, f"{measure}.{name}.{layer}", at.get(measure), whole.get("changed", 0), note)
        for column in columns:
            of_label = at.get("labels", {}).get(column)
            blank = note or "not computable: the label is not read above chance from untransformed samples"
            _one(found, f"label_kept.{name}.{column}.{layer}", of_label, whole.get("changed", 0), blank)


def _one(found: Found, measure: str, at: dict[str, Any] | None, count: int, note: str) -> None:
    if at is None or at["value"] is None:
        found.add(measure, "test", Estimate(None, None, None, count, note))
    else:
        found.add(measure, "test", Estimate(at["value"], at["low"], at["high"], count))
