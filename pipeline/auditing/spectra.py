"""Floor 2: how many dimensions a split of a layer uses, and how narrow the cone is in which its rows lie."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pipeline.audit.anisotropy import anisotropy
from pipeline.audit.estimate import Estimate, NotComputable, not_computable
from pipeline.audit.rankme import rankme
from pipeline.audit.spectrum import spectrum
from pipeline.auditing.report import Report, Vectors, tried
from pipeline.embeddings import unusable

RANKS = ("effective_rank", "participation_ratio", "dimensions_99")
MEASURED = "test"
"""The split whose numbers are measures, by the names that thresholds use; the others' are in the geometry alone."""


def measure_spectrum(vectors: Vectors, split: str, layer: str, report: Report) -> None:
    """Enter spectrum, ranks and anisotropy of one split of a layer."""
    rows, count = vectors.rows, len(vectors.rows)
    estimates, shares = _ranks(vectors)
    estimates["anisotropy"] = tried(lambda: anisotropy(vectors.directions()), count)
    told: dict[str, Any] = {"count": count, "dimensions": rows.shape[1], "shares": shares}
    told |= {name: asdict(estimate) for name, estimate in estimates.items()}
    report.structure(layer).setdefault("splits", {})[split] = told
    if split == MEASURED:
        if shares:
            report.spectra[layer] = shares
        for name, estimate in estimates.items():
            report.add(f"{name}.{layer}", split, estimate)


def _ranks(vectors: Vectors) -> tuple[dict[str, Estimate], list[float]]:
    """The ranks by name, and the eigenvalues' shares of the variance, largest first; no shares where there are none."""
    rows, count = vectors.rows, len(vectors.rows)
    reason = vectors.reason and unusable(rows, cosine=False)  # one dimension has a spectrum, but no directions
    if reason:
        return {name: not_computable(reason, count) for name in (*RANKS, "rankme")}, []
    rank = tried(lambda: rankme(rows), count)
    try:
        found = spectrum(rows)
    except NotComputable as why:
        return {**{name: not_computable(why, count) for name in RANKS}, "rankme": rank}, []
    return {**{name: getattr(found, name) for name in RANKS}, "rankme": rank}, found.shares.tolist()
