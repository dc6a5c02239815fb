"""Floor 2: the measures of neighbours, clusters and classes of one layer; the nearest rows are looked up once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict

import numpy as np

from pipeline.audit import PURITY, Audit
from pipeline.audit.classes import class_ranks, mean_rank
from pipeline.audit.clusters import agreement
from pipeline.audit.estimate import Estimate, NotComputable, Numbers, not_computable, of_mean, of_quantile
from pipeline.audit.false_negatives import chance
from pipeline.audit.hubness import antihubs, occurrences, skewness
from pipeline.audit.k_means import k_means
from pipeline.audit.local import anywhere, local_dimensions
from pipeline.audit.purity import neighbour_purity
from pipeline.auditing.report import SEED, Codes, Report, Vectors, choose, tried
from pipeline.embeddings import unusable
from pipeline.neighbours import nearest_others

TEST = "test"
LOCAL = 2000
"""Rows whose neighbourhoods are spanned, at most."""
DRAWS = 200
"""Neighbourhoods of rows drawn anywhere, to compare with."""
CLUSTERED = 10_000
"""Rows that are clustered, at most."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
Nearest = Callable[[int], Codes]
"""k -> the k nearest others (N, k) of every row, the nearest first; raises NotComputable."""


def measure_neighbours(vectors: Vectors, labels: Mapping[str, Codes], layer: str, audit: Audit, report: Report) -> None:
    """Enter purity, hubness and local dimensions; labels: column -> (N,) class codes."""
    n, wanted = len(vectors.rows), sorted({audit.neighbours, *audit.purity_at})
    most = max((k for k in wanted if k < n), default=0)
    near = None
    if vectors.units is not None and most:
        near = nearest_others(vectors.units, np.arange(n), most)

    def nearest(k: int) -> Codes:
        if near is None or k > near.shape[1]:
            raise NotComputable(vectors.reason or f"{n} rows have fewer than {k} others")
        return near[:, :k]

    _hubness(nearest, n, audit.neighbours, layer, report)
    _local(nearest, vectors, audit.purity_at[-1], layer, report)
    told = report.structure(layer).setdefault("purity", {})
    for column, codes in labels.items():
        curve = {k: tried(lambda: _purity(nearest, k, column, codes), n) for k in wanted}  # noqa: B023 (called here)
        report.add(f"{PURITY}.{column}.{layer}", TEST, curve[audit.neighbours], neighbours=audit.neighbours)
        told[column] = {
            "chance": chance(codes) if n > 1 else None,
            "at": [{"neighbours": k, **asdict(estimate)} for k, estimate in curve.items()],
        }


def _purity(nearest: Nearest, k: int, column: str, codes: Codes) -> Estimate:
    if len(np.unique(codes)) < 2:
        raise NotComputable(f"all test rows are of one class of {column}")
    return neighbour_purity(nearest(k), codes, np.arange(len(codes)))


def _hubness(nearest: Nearest, n: int, k: int, layer: str, report: Report) -> None:
    def counts() -> Numbers:
        return occurrences(nearest(k))

    skew, lost = tried(lambda: skewness(counts()), n), tried(lambda: antihubs(counts()), n)
    report.add(f"hubness.{layer}", TEST, skew, neighbours=k)
    report.add(f"antihubs.{layer}", TEST, lost, neighbours=k)
    told = {"neighbours": k, "skewness": asdict(skew), "antihubs": asdict(lost), "largest": None}
    report.structure(layer)["hubness"] = told | ({"largest": int(counts().max())} if lost.value is not None else {})


def _local(nearest: Nearest, vectors: Vectors, k: int, layer: str, report: Report) -> None:
    n = len(vectors.rows)
    asked = choose(n, LOCAL)
    told: dict[str, object] = {"neighbours": k, "asked": len(asked), "quantiles": None, "anywhere": None, "note": ""}
    report.structure(layer)["neighbourhoods"] = told
    try:
        found = local_dimensions(vectors.directions(), nearest(k)[asked])
        told["quantiles"] = {f"{share:g}": float(np.quantile(found, share)) for share in QUANTILES}
        told["anywhere"] = anywhere(vectors.directions(), k, DRAWS, SEED)
    except NotComputable as reason:
        told["note"] = f"not computable: {reason}"
        mean = low = not_computable(reason, n)
    else:
        most = min(k - 1, vectors.rows.shape[1])
        mean, low = (
            tried(take, n).within(0, most) for take in (lambda: of_mean(found), lambda: of_quantile(found, 0.05))
        )
    report.add(f"local_dimensions.{layer}", TEST, mean, neighbours=k)
    report.add(f"local_dimensions_low.{layer}", TEST, low, neighbours=k)


def measure_classes(
    vectors: Vectors, labels: Mapping[str, Codes], names: Mapping[str, tuple[str, ...]], layer: str, report: Report
) -> None:
    """Enter the ranks of each class, and how far clusters agree with classes, of each column of labels."""
    n = len(vectors.rows)
    broken = vectors.reason and unusable(vectors.rows, cosine=False)  # one dimension has a spectrum, but no directions
    sample, clusters = choose(n, CLUSTERED), dict[int, Codes]()
    for column, codes in labels.items():
        ranks = [] if broken else class_ranks(vectors.rows, codes)
        mean = not_computable(broken, n) if broken else tried(lambda: mean_rank(ranks), n)  # noqa: B023 (called here)
        report.add(f"class_effective_rank.{column}.{layer}", TEST, mean)
        told = [{"class": names[column][each.code], **asdict(each)} for each in ranks]
        report.structure(layer).setdefault("classes", {})[column] = told
        some, k = codes[sample], len(np.unique(codes[sample]))
        try:
            if k < 2:
                raise NotComputable(f"all test rows are of one class of {column}")
            if k not in clusters:
                clusters[k] = k_means(vectors.directions()[sample], k, SEED)
            nmi, ari = agreement(some, clusters[k])
        except NotComputable as reason:
            nmi = ari = not_computable(reason, len(sample))
        report.add(f"cluster_nmi.{column}.{layer}", TEST, nmi, clusters=k)
        report.add(f"cluster_ari.{column}.{layer}", TEST, ari, clusters=k)
