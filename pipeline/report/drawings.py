"""Which charts a spec's results allow, each with ids of its own."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from pipeline.report import charts
from pipeline.report.few_chart import LINES, few_chart
from pipeline.report.figures import LAYERS, MOVED, UNMOVED, knn, labels
from pipeline.report.mass_chart import mass_chart
from pipeline.report.result import Result
from pipeline.report.results import ProbeRow
from pipeline.report.telling import label_of

COURSES = {
    "apart": ("told_apart", "share of log K", "How far NT-Xent of the same samples lies below log K"),
    "rank": ("effective_rank", "effective rank of z", "Effective rank of z of the same samples"),
    "age": ("key_age", "steps", "Mean age of the queue's keys"),
    "drift": ("key_drift", "1 - cosine", "How far queued keys are from those that are made now"),
}
"""A column of the curve that is drawn by itself, where it is not 0 throughout."""


def drawings(result: Result, prefix: str) -> dict[str, Any]:
    """Every chart of a spec that its results allow; ``probes`` is a mapping of (label, probe) to a chart."""
    found: dict[str, Any] = dict.fromkeys(
        ("loss", "similarity", "apart", "rank", "age", "drift", "spectrum", "histogram_h", "histogram_z", "mass")
    )
    found["probes"], found["few"] = {}, {}
    if result.curve is not None:
        found["loss"] = charts.loss_chart(result.curve)
        found["points"] = -(-len(result.curve["loss"]) // charts.POINTS)
        if {"positive_similarity", "negative_similarity"} <= result.curve.keys():
            found["similarity"] = charts.similarity_chart(result.curve)
        for name, (column, words, title) in COURSES.items():
            if max(result.curve.get(column, [0.0])) > 0:
                found[name] = charts.course_chart(result.curve, column, words, title)
    if result.audited is not None and any(result.audited.spectra.values()):
        found["spectrum"] = charts.spectrum_chart(result.audited.spectra)
    histograms = result.audited.similarities if result.audited is not None else None
    for layer, counts in histograms.counts.items() if histograms is not None else ():
        if layer in ("h", "z") and {"positive_similarity", "negative_similarity"} <= counts.keys():
            found[f"histogram_{layer}"] = charts.histogram_chart(counts, histograms.low, histograms.high)  # type: ignore[union-attr]
    pairs = result.geometry.layers["z"].pairs if result.geometry and "z" in result.geometry.layers else None
    if pairs is not None and pairs.temperatures:
        own = result.summary.temperature if result.summary is not None else None
        found["mass"] = mass_chart(pairs.temperatures, label_of(result, pairs.temperatures[0].same_label), own)
    for label in labels(result):
        for probe in ("knn", "linear"):
            rows = {
                (layer, split): row
                for layer in LAYERS
                for split in (UNMOVED, MOVED)
                if (row := knn(result, label, layer, split, probe)) is not None
            }
            chance = next((row.chance for row in rows.values()), None)
            found["probes"][label, probe] = charts.probe_chart(rows, chance)
        shares = few(result, label)
        points = [point for line in shares.values() for point in line]
        if len({share for share, _ in points}) > 1:
            found["few"][label] = few_chart(shares, points[0][1].chance)
    numbered = iter(range(1000))
    for key, chart in found.items():
        if isinstance(chart, str):
            found[key] = Markup(charts.with_ids(chart, f"{prefix}{next(numbered)}-"))
    for each in (found["probes"], found["few"]):
        for key, chart in each.items():
            each[key] = Markup(charts.with_ids(chart, f"{prefix}{next(numbered)}-"))
    return found


def few(result: Result, label: str) -> dict[str, list[tuple[float, ProbeRow]]]:
    """Linear probes with a share of the labels, and with all: layer to (percent, row), on samples as they are."""
    found: dict[str, list[tuple[float, ProbeRow]]] = {}
    for row in result.probed.rows if result.probed is not None else ():
        if (row.label, row.split, row.control) != (label, UNMOVED, None) or row.layer not in LINES:
            continue
        percent = row.probe.removeprefix("few_")
        if row.probe == "linear" or (row.probe.startswith("few_") and percent.replace(".", "", 1).isdigit()):
            found.setdefault(row.layer, []).append((100.0 if row.probe == "linear" else float(percent), row))
    return found
