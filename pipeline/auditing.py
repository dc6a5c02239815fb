"""Floor 2: every measure of one embedded space, by name, each with its interval or with the reason why it has no value.

Positives are the rows (view0_i, view1_i), negatives other rows of a bounded sample of the test images; spectrum and
neighbour purity are of the test images as they are. Rows are scaled to length one where directions are compared, and
taken as they are stored for the spectrum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.audit import PURITY, Audit
from pipeline.audit.estimate import Estimate, NotComputable, not_computable
from pipeline.audit.purity import neighbour_purity
from pipeline.audit.similarity import BINS, Similarities, negative_similarity, positive_similarity
from pipeline.audit.spectrum import spectrum
from pipeline.audit.sphere import alignment, uniformity
from pipeline.embeddings import Embeddings, unusable
from pipeline.neighbours import nearest_others, unit

SEED = 0
"""Of the sample of test rows, where there are more than ``audit.samples``."""
Rows = npt.NDArray[np.float32]


class Report:
    """What measures.json holds: measures by name, and the curves behind some of them by layer."""

    def __init__(self) -> None:
        self.measures: dict[str, dict[str, Any]] = {}
        self.spectra: dict[str, list[float]] = {}
        self.histograms: dict[str, dict[str, list[int]]] = {}

    def add(self, name: str, split: str, estimate: Estimate, **more: Any) -> None:
        """Enter one measure."""
        self.measures[name] = {**asdict(estimate), "split": split, **more}

    def content(self) -> dict[str, Any]:
        """Plain data: measures, eigenvalue shares by layer, similarity counts over equal bins of [-1, 1] by layer."""
        histograms = {"bins": BINS, "low": -1.0, "high": 1.0, "counts": self.histograms}
        return {"measures": self.measures, "spectra": self.spectra, "similarities": histograms}


def measure_layer(embeddings: Embeddings, layer: str, audit: Audit, report: Report) -> None:
    """Enter every measure of one layer."""
    first, second = embeddings.features("view0", layer), embeddings.features("view1", layer)
    _pairs(first, second, layer, audit.samples, report)
    rows = embeddings.features("test", layer)
    names = ("effective_rank", "participation_ratio", "dimensions_99")
    try:
        found = spectrum(_usable(rows, cosine=False))
    except NotComputable as reason:
        for name in names:
            report.add(f"{name}.{layer}", "test", not_computable(reason, len(rows)))
    else:
        report.spectra[layer] = found.shares.tolist()
        for name in names:
            report.add(f"{name}.{layer}", "test", getattr(found, name))
    _purity(embeddings, rows, layer, audit, report)


def _pairs(first: Rows, second: Rows, layer: str, samples: int, report: Report) -> None:
    chosen = _choose(len(first), samples)
    try:
        a, b = unit(_usable(first)[chosen]), unit(_usable(second)[chosen])
    except NotComputable as reason:
        for name in ("positive_similarity", "negative_similarity", "alignment", "uniformity"):
            report.add(f"{name}.{layer}", _PAIRS[name], not_computable(reason, len(chosen)))
        return

    def similarities(name: str, measure: Callable[[Rows, Rows], Similarities]) -> None:
        try:
            found = measure(a, b)
        except NotComputable as reason:
            report.add(f"{name}.{layer}", _PAIRS[name], not_computable(reason, len(chosen)))
        else:
            report.histograms.setdefault(layer, {})[name] = found.histogram.tolist()
            quantiles = {f"{share:g}": value for share, value in found.quantiles.items()}
            report.add(f"{name}.{layer}", _PAIRS[name], found.mean, quantiles=quantiles)

    similarities("positive_similarity", positive_similarity)
    similarities("negative_similarity", negative_similarity)
    report.add(f"alignment.{layer}", _PAIRS["alignment"], _tried(lambda: alignment(a, b), len(a)))
    report.add(f"uniformity.{layer}", _PAIRS["uniformity"], _tried(lambda: uniformity(a), len(a)))


_PAIRS = {
    "positive_similarity": "view0, view1",
    "negative_similarity": "view0, view1",
    "alignment": "view0, view1",
    "uniformity": "view0",
}


def _purity(embeddings: Embeddings, rows: Rows, layer: str, audit: Audit, report: Report) -> None:
    chosen, k = _choose(len(rows), audit.samples), audit.neighbours
    reason = unusable(rows) or (f"{len(rows)} rows have fewer than {k} others" if len(rows) <= k else None)
    neighbours = nearest_others(unit(rows), chosen, k) if reason is None else None
    for column in embeddings.class_columns():
        labels, estimate = embeddings.labels("test", column), not_computable(reason, len(chosen))
        if len(np.unique(labels)) < 2:
            estimate = not_computable(f"all test rows are of one class of {column}", len(chosen))
        elif neighbours is not None:
            near = neighbours
            estimate = _tried(lambda: neighbour_purity(near, labels, chosen), len(chosen))  # noqa: B023 (called here)
        report.add(f"{PURITY}.{column}.{layer}", "test", estimate, neighbours=k)


def _tried(measure: Callable[[], Estimate], count: int) -> Estimate:
    try:
        return measure()
    except NotComputable as reason:
        return not_computable(reason, count)


def _usable(rows: Rows, cosine: bool = True) -> Rows:
    reason = unusable(rows, cosine)
    if reason is not None:
        raise NotComputable(reason)
    return rows


def _choose(count: int, samples: int) -> npt.NDArray[np.int64]:
    """Indices of at most ``samples`` rows, ascending; the same ones for both layers and both views."""
    if count <= samples:
        return np.arange(count)
    return np.sort(np.random.default_rng(SEED).permutation(count)[:samples])
