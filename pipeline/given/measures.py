"""Measure vectors of any origin: the geometry of an audit, probes of the labels, curation lists.

The measures are an audit's own, under the same names with the layer h. What needs two views of a sample is not
computable where none are given. Probes are trained on the rows that are marked for it, or on four fifths, drawn.

Legend: N rows, D dimensions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.audit import Audit
from pipeline.audit.estimate import NotComputable, not_computable
from pipeline.audit.similarity import negative_similarity
from pipeline.audit.sphere import uniformity
from pipeline.auditing import measure_rows, measure_views
from pipeline.auditing.pairs import FALSE, MEASURES
from pipeline.auditing.report import Report, tried
from pipeline.curation.lists import Space
from pipeline.embeddings import Embeddings, unusable
from pipeline.given.rows import Given, Rows
from pipeline.neighbours import unit
from pipeline.probes import FewLabels, Probe
from pipeline.probes.strata import too_few
from pipeline.probing import probe_layer

AUDIT = Audit(samples=5000, neighbours=10, purity_at=(1, 5, 20), thresholds=(), accept=())
K, TEMPERATURE, TEST, SEED = 20, 0.1, 0.2, 0
"""Of the kNN probe, the share of rows that probes are tested on, and the seed of all that is drawn."""
FEW, DRAWS = (1, 10), 5
"""Per cent of the labels that the probes with few labels are given, and draws of them."""
ALL, LAYER = "all", "h"
NO_VIEWS = "one vector a sample was given, and it needs two views of each (--views)"


def measure(space: Given) -> Report:
    """Every measure of geometry, of all rows."""
    report = Report()
    names = {column: each.classes for column, each in space.columns.items() if each.kind == "class"}
    labels = {column: space.labels[column] for column in names}
    if space.views is None:
        _without_views(space.rows, list(labels), report)
    else:
        measure_views(*space.views, labels, LAYER, AUDIT, report)
    measure_rows(space.rows, labels, names, LAYER, AUDIT, report)
    for entry in report.measures.values():
        entry["split"] = ALL if entry["split"] in ("test", "view0") and space.views is None else entry["split"]
        entry["split"] = ALL if entry["split"] == "test" else entry["split"]
    return report


def _without_views(rows: Rows, columns: list[str], report: Report) -> None:
    """What can be said of pairs where a sample has one vector: negatives, and how they fill the sphere."""
    order = np.random.default_rng(SEED).permutation(len(rows))[: AUDIT.samples]
    some, reason = rows[np.sort(order)], unusable(rows)
    for name in (*MEASURES, *(f"{FALSE}.{column}" for column in columns)):
        report.add(f"{name}.{LAYER}", ALL, not_computable(NO_VIEWS, len(some)))
    for name in ("negative_similarity", "uniformity"):
        report.add(f"{name}.{LAYER}", ALL, not_computable(reason, len(some)))
    if reason is not None:
        return
    units = unit(some)
    report.add(f"uniformity.{LAYER}", ALL, tried(lambda: uniformity(units), len(some)))
    try:
        found = negative_similarity(units, units)
    except NotComputable as fault:
        report.add(f"negative_similarity.{LAYER}", ALL, not_computable(fault, len(some)))
    else:
        quantiles = {f"{share:g}": value for share, value in found.quantiles.items()}
        report.add(f"negative_similarity.{LAYER}", ALL, found.mean, quantiles=quantiles)


def probed(space: Given, folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The probes' figures of every label column, of classes and of numbers.

    Args:
        folder: an empty one, for the rows as the probes read them.
    """
    train = trained_rows(space)
    parts = {"train": np.flatnonzero(train), "test": np.flatnonzero(~train)}
    moved = space.rows if space.views is None else space.views[0]
    for split, places in parts.items():
        np.save(folder / f"{split}.{LAYER}.npy", np.ascontiguousarray(space.rows[places]))
    np.save(folder / f"view0.{LAYER}.npy", np.ascontiguousarray(moved[parts["test"]]))
    arrays: dict[str, Any] = {
        f"{split}.{column}": values[places]
        for split, places in parts.items()
        for column, values in space.labels.items()
    }
    np.savez(folder / "labels.npz", **arrays)
    columns = {name: column.model_dump(mode="json") for name, column in space.columns.items()}
    (folder / "columns.json").write_text(json.dumps(columns), encoding="utf-8")
    few = _few(space, parts["train"])
    probe = Probe(labels=tuple(space.columns), k=min(K, len(parts["train"])), temperature=TEMPERATURE, few_labels=few)
    found = probe_layer(Embeddings(folder), LAYER, probe)
    classes, numbers = ([row for row in rows if space.views or row["split"] == "test"] for rows in found)
    return classes, numbers


def _few(space: Given, train: npt.NDArray[np.int64]) -> FewLabels | None:
    """The probes with few labels, at the shares that leave a row of every class of some column."""
    codes = [space.labels[name][train] for name, column in space.columns.items() if column.kind == "class"]
    shares = tuple(share for share in FEW if any(too_few(each, share) is None for each in codes))
    return FewLabels(percent=shares, draws=DRAWS) if shares else None


def trained_rows(space: Given) -> npt.NDArray[np.bool_]:
    """Which rows probes are trained on (N,); at least one is, and one is not, where there are two."""
    if space.train is not None and 0 < space.train.sum() < len(space.train):
        return space.train
    count = len(space.rows)
    train = np.ones(count, bool)
    train[np.random.default_rng(SEED).permutation(count)[: max(1, round(TEST * count))]] = False
    return train


def curated(space: Given) -> Space:
    """The rows as the curation lists read them: one split of all."""
    classes = {name: column.classes for name, column in space.columns.items() if column.kind == "class"}
    codes = {(column, ALL): space.labels[column] for column in classes}
    return Space({ALL: space.rows}, space.views, ALL, classes, codes)


def table(report: Report, figures: list[dict[str, Any]], numbers: list[dict[str, Any]]) -> Iterator[str]:
    """Measures and figures as lines for a terminal; what could not be computed stands last, by its reason."""
    width = max(map(len, report.measures))
    missing: dict[str, list[str]] = {}
    for name, entry in report.measures.items():
        if entry["value"] is None:
            missing.setdefault(entry["note"], []).append(name)
            continue
        yield f"{name:<{width}}  {_interval(entry):<36} {entry['split']}, {entry['count']} rows"
    for row in (*figures, *numbers):
        entry, what = _figure(row)
        control = f" ({row['control']})" if row["control"] else ""
        name = f"{row['probe']} of {row['label']}{control}"
        if entry["value"] is None:
            missing.setdefault(row["note"], []).append(name)
            continue
        yield f"{name:<{width}}  {_interval(entry):<36} {row['split']}, {row['count']} rows; {what}"
    for note, names in missing.items():
        yield f"{note}: {', '.join(names)}"


def _figure(row: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """A probe's figure as value and interval, and what it is beside chance."""
    if "accuracy" in row:
        return {**row, "value": row["accuracy"]}, f"accuracy; chance {row['chance']:.4g}"
    return {"value": row["r2"], "low": row["r2_low"], "high": row["r2_high"]}, "R²; chance 0"


def _interval(entry: dict[str, Any]) -> str:
    if entry["low"] is None:
        return f"{entry['value']:.4g}"
    return f"{entry['value']:.4g} ({entry['low']:.4g} to {entry['high']:.4g})"
