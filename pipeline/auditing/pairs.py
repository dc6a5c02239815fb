"""Floor 2: every measure of pairs of views, from one walk over their similarities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from pipeline.audit.estimate import Estimate, NotComputable, not_computable
from pipeline.audit.false_negatives import FalseNegatives, chance
from pipeline.audit.gradient import GradientMass
from pipeline.audit.info_nce import info_nce_bound
from pipeline.audit.nearer import Nearer
from pipeline.audit.pairs import walk
from pipeline.audit.separation import Overlap, Sensitivity
from pipeline.audit.similarity import BINS, Negatives, Similarities, positive_similarity, positives_of
from pipeline.audit.sphere import alignment, uniformity
from pipeline.auditing.report import Codes, Report, Rows, Vectors, tried

BOTH = "view0, view1"
FROM_WALK = ("negative_similarity", "overlap", "d_prime", "nearer_negatives", "info_nce_bound")
MEASURES = ("positive_similarity", "alignment", *FROM_WALK)
FALSE = "false_negatives"


def measure_pairs(first: Vectors, second: Vectors, labels: Mapping[str, Codes], layer: str, report: Report) -> None:
    """Enter every measure of pairs of one layer; row i of first and of second are two views of one sample.

    Args:
        labels: column -> (n,) class codes of the samples.
    """
    n = len(first.rows)
    try:
        a, b = first.directions(), second.directions()
    except NotComputable as reason:
        for name in MEASURES:
            report.add(f"{name}.{layer}", BOTH, not_computable(reason, n))
        report.add(f"uniformity.{layer}", "view0", not_computable(reason, n))
        for column in labels:
            report.add(f"{FALSE}.{column}.{layer}", BOTH, not_computable(reason, n))
        report.structure(layer)["pairs"] = {"count": n, "split": BOTH, "note": f"not computable: {reason}"}
        return
    _similarities("positive_similarity", lambda: positive_similarity(a, b), n, layer, report)
    report.add(f"alignment.{layer}", BOTH, tried(lambda: alignment(a, b), n))
    report.add(f"uniformity.{layer}", "view0", tried(lambda: uniformity(a), n))
    _walked(a, b, labels, layer, report)


def _walked(a: Rows, b: Rows, labels: Mapping[str, Codes], layer: str, report: Report) -> None:
    n, positives = len(a), positives_of(a, b)
    told = {column: codes for column, codes in labels.items() if len(np.unique(codes)) > 1}
    negatives, nearer, hardest = Negatives(n), Nearer(n), FalseNegatives(n, told)
    overlap, sensitivity, mass = Overlap(positives), Sensitivity(positives), GradientMass(n, told)
    pairs: dict[str, Any] = {"count": n, "split": BOTH, "note": ""}
    report.structure(layer)["pairs"] = pairs
    try:
        walk(a, b, negatives, nearer, hardest, overlap, sensitivity, mass)
    except NotComputable as reason:
        for name in FROM_WALK:
            report.add(f"{name}.{layer}", BOTH, not_computable(reason, n))
        for column in labels:
            report.add(f"{FALSE}.{column}.{layer}", BOTH, not_computable(reason, n))
        pairs["note"] = f"not computable: {reason}"
        return
    _similarities("negative_similarity", negatives.similarities, n, layer, report)
    report.add(f"overlap.{layer}", BOTH, tried(overlap.overlap, n))
    report.add(f"d_prime.{layer}", BOTH, tried(sensitivity.d_prime, n))
    report.add(f"nearer_negatives.{layer}", BOTH, tried(nearer.share, n))
    report.add(f"info_nce_bound.{layer}", BOTH, tried(lambda: info_nce_bound(mass.losses, mass.temperatures), n))
    pairs |= {"bins": BINS, "low": -1.0, "high": 1.0, **report.histograms[layer]}
    pairs["false_negatives"] = _false_negatives(hardest, labels, told, layer, report)
    pairs["temperatures"] = [_weighed(mass, at, told) for at in range(len(mass.temperatures))]


def _similarities(name: str, measure: Callable[[], Similarities], count: int, layer: str, report: Report) -> None:
    try:
        found = measure()
    except NotComputable as reason:
        report.add(f"{name}.{layer}", BOTH, not_computable(reason, count))
    else:
        report.histograms.setdefault(layer, {})[name] = found.histogram.tolist()
        quantiles = {f"{share:g}": value for share, value in found.quantiles.items()}
        report.add(f"{name}.{layer}", BOTH, found.mean, quantiles=quantiles)


def _false_negatives(
    seen: FalseNegatives, labels: Mapping[str, Codes], told: Mapping[str, Codes], layer: str, report: Report
) -> dict[str, dict[str, Any]]:
    """Enter the rate of each column, and return it beside what chance gives."""
    found = {}
    for column, codes in labels.items():
        rate = not_computable(f"all rows are of one class of {column}", len(codes))
        if column in told:
            rate = tried(lambda: seen.rate(column), len(codes))  # noqa: B023 (called here)
        report.add(f"{FALSE}.{column}.{layer}", BOTH, rate, nearest=seen.nearest)
        found[column] = {"nearest": seen.nearest, "chance": chance(codes), "among_nearest": asdict(rate)}
    return found


def _weighed(mass: GradientMass, at: int, labels: Mapping[str, Codes]) -> dict[str, Any]:
    """One temperature's row of the table of gradient mass."""

    def share(column: str) -> Estimate:
        return tried(lambda: mass.same_label(at, column), mass.n)

    return {
        "temperature": mass.temperatures[at],
        "negatives": mass.n - 1,
        "effective_negatives": asdict(tried(lambda: mass.effective_negatives(at), mass.n)),
        "repulsion": asdict(tried(lambda: mass.mean_repulsion(at), mass.n)),
        "same_label": {column: {"chance": chance(codes), **asdict(share(column))} for column, codes in labels.items()},
    }
