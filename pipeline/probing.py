"""Floor 2: every row of the probe figures: each label, layer, split, probe and control of one embedded space.

The controls: raw pixels and the untrained encoder are layers like h and z; shuffled training labels are probed on h
(whoever reads those better than chance has test rows among the training rows).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.embeddings import Column, Embeddings, unusable
from pipeline.neighbours import Codes, Floats, nearest_rows, unit
from pipeline.probes import SPLITS, Probe
from pipeline.probes.intervals import CONFIDENCE, wilson
from pipeline.probes.knn import vote
from pipeline.probes.linear import fit_linear
from pipeline.spec import Fault, SpecError, nearest

SHUFFLED = "shuffled labels"
SEED = 0
"""Of the permutation that shuffles the training labels."""


def check_columns(probe: Probe, columns: Mapping[str, Column], path: Path) -> None:
    """Hold ``probe.labels`` against the columns of the data.

    Raises:
        SpecError: a label that the data does not have, or a column of numbers; all of them at once.
    """
    faults = []
    for position, label in enumerate(probe.labels):
        where = f"probe.labels[{position}]"
        if label not in columns:
            faults.append(Fault(str(path), where, f'"{label}"', f"no such label column; {nearest(label, columns)}"))
        elif columns[label].kind != "class":
            remedy = "a column of numbers, and probes read classes only; take it out of probe.labels"
            faults.append(Fault(str(path), where, f'"{label}"', remedy))
    if faults:
        raise SpecError(faults)


def probe_layer(embeddings: Embeddings, layer: str, probe: Probe) -> Iterator[dict[str, Any]]:
    """Yield the rows of one layer: each label, control, probe and split."""
    gallery = embeddings.features("train", layer)  # (N, D)
    asked = {split: embeddings.features(split, layer) for split in SPLITS}
    near = _neighbours(gallery, asked, probe.k)
    knn = {"probe": "knn", "k": probe.k, "temperature": probe.temperature, "regularization": None}
    linear = {"probe": "linear", "k": None, "temperature": None, "regularization": probe.regularization}
    for label in probe.labels:
        known, classes = embeddings.labels("train", label), len(embeddings.columns[label].classes)
        chance = int(np.bincount(known).max()) / len(known)
        for control in (None, SHUFFLED) if layer == "h" else (None,):
            train = known if control is None else np.random.default_rng(SEED).permutation(known)
            voted = _vote(near, train, probe.temperature, classes)
            fitted, note = _fit(gallery, train, asked, probe.regularization)
            for settings, answers, remark in ((knn, voted, ""), (linear, fitted, note)):
                for split in SPLITS:
                    figure = _accuracy(answers[split], embeddings.labels(split, label), remark)
                    place = {"label": label, "split": split, "layer": layer, "control": control}
                    sizes = {"chance": chance, "classes": classes, "gallery": len(train)}
                    yield {**place, **settings, **sizes, **figure}


Neighbours = tuple[Floats, Codes] | str
"""The similarities and indices of each query's neighbours, or why there are none."""
Answers = dict[str, Codes | str]
"""For each split a class for every row, or why there is no answer."""


def _neighbours(gallery: Floats, asked: Mapping[str, Floats], k: int) -> dict[str, Neighbours]:
    few = f"{len(gallery)} training rows are fewer than probe.k = {k}" if len(gallery) < k else None
    reason = few or unusable(gallery)
    if reason is not None:
        return dict.fromkeys(asked, reason)
    stored = unit(gallery)
    return {split: unusable(rows) or nearest_rows(unit(rows), stored, k) for split, rows in asked.items()}


def _vote(near: Mapping[str, Neighbours], train: Codes, temperature: float, classes: int) -> Answers:
    single = _single(train)
    if single is not None:
        return dict.fromkeys(near, single)
    return {
        split: found if isinstance(found, str) else vote(found[0], train[found[1]], temperature, classes)
        for split, found in near.items()
    }


def _fit(gallery: Floats, train: Codes, asked: Mapping[str, Floats], regularization: float) -> tuple[Answers, str]:
    reason = _single(train) or unusable(gallery, cosine=False)
    if reason is not None:
        return dict.fromkeys(asked, reason), ""
    probe = fit_linear(gallery, train, regularization)
    answers = {split: unusable(rows, cosine=False) or probe.predict(rows) for split, rows in asked.items()}
    return answers, "" if probe.converged else "the fit did not converge"


def _single(train: Codes) -> str | None:
    return "all training rows are of one class" if int(train.min()) == int(train.max()) else None


def _accuracy(answer: Codes | str, truth: Codes, note: str) -> dict[str, Any]:
    if isinstance(answer, str):
        value, low, high, note = None, None, None, f"not computable: {answer}"
    else:
        right = int((answer == truth).sum())
        value, (low, high) = right / len(truth), wilson(right, len(truth))
    interval = {"low": low, "high": high, "confidence": CONFIDENCE}
    return {"accuracy": value, **interval, "count": len(truth), "note": note}
