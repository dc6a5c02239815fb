"""Time and memory of all geometric measures of one layer: ``python tests/benchmarks/audit.py [rows] [dimensions]``.

60,000 x 512 by default: ten clusters that are not equally wide in all directions, two views of each row, one column of
labels, and the audit of the shipped specs (2,000 samples of pairs, purity at 1 to 50 neighbours). Beside it, in a
process of its own, the same numbers by scikit-learn where it has them: the 50 nearest of every row, PCA of all rows and
of each class, k-means with the audit's settings and its two scores, cosines of 2,000 pairs of views. Each side prints
seconds, of the clock and of all cores' work (which says more where others use the machine), and how far its peak memory
lies above that of its data; both are written to tests/benchmarks/results/audit.json.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RESULT = Path(__file__).parent / "results" / "audit.json"
CLASSES, NEAREST, PAIRS, CLUSTERED = 10, 50, 2000, 10_000


def data(rows: int, dimensions: int) -> tuple[Any, Any, Any, Any]:
    """The rows and two views of them (rows, dimensions) float32, and their labels (rows,)."""
    random = np.random.default_rng(0)
    labels = np.arange(rows) % CLASSES
    width = np.geomspace(1, 0.05, dimensions, dtype=np.float32)
    centres = 2 * random.standard_normal((CLASSES, dimensions), dtype=np.float32) * width
    found = []
    x = centres[labels] + random.standard_normal((rows, dimensions), dtype=np.float32) * width
    for noise in (0.0, 0.3, 0.3):
        found.append(x + noise * random.standard_normal(x.shape, dtype=np.float32) * width if noise else x)
    return found[0], found[1], found[2], labels


class Clock:
    """Seconds by name, of the clock and of the processor, and the peak of memory above what was there at the start."""

    def __init__(self) -> None:
        self.before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.seconds: dict[str, float] = {}
        self.processor: dict[str, float] = {}

    def timed(self, name: str, work: Callable[[], Any]) -> Any:
        """Run, and note the seconds."""
        start, busy = time.perf_counter(), time.process_time()
        result = work()
        self.seconds[name] = round(time.perf_counter() - start, 2)
        self.processor[name] = round(time.process_time() - busy, 2)
        print(f"{name:<52} {self.seconds[name]:7.2f} s   processor {self.processor[name]:7.2f} s", flush=True)
        return result

    def content(self) -> dict[str, Any]:
        """Plain data."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - self.before
        total, busy = (round(sum(each.values()), 2) for each in (self.seconds, self.processor))
        print(f"{'together':<52} {total:7.2f} s   processor {busy:7.2f} s   peak +{peak / 1024:.0f} MiB", flush=True)
        times = {"seconds": self.seconds, "processor_seconds": self.processor}
        return {**times, "total": total, "processor_total": busy, "peak_mib": round(peak / 1024)}


def ours(rows: int, dimensions: int) -> dict[str, Any]:
    """Every measure of the audit that needs no re-encoding, of one layer."""
    from pipeline.audit import Audit
    from pipeline.auditing import MOST, SPLIT, choose, measure_views
    from pipeline.auditing.report import Report, Vectors
    from pipeline.auditing.rows import measure_classes, measure_neighbours
    from pipeline.auditing.spectra import measure_spectrum

    x, first, second, labels = data(rows, dimensions)
    audit = Audit(samples=PAIRS, neighbours=10, purity_at=(1, 5, 20, NEAREST), thresholds=(), accept=())
    clock, report, columns = Clock(), Report(), {"kind": labels}
    names = {"kind": tuple(map(str, range(CLASSES)))}
    clock.timed("pairs of views", lambda: measure_views(first, second, columns, "h", audit, report))
    vectors = clock.timed("faults and directions", lambda: Vectors.of(x, choose(rows, MOST)))
    clock.timed("spectrum, RankMe, anisotropy", lambda: measure_spectrum(vectors, "test", "h", report))
    clock.timed(
        "nearest rows, purity, hubness, local dimensions",
        lambda: measure_neighbours(vectors, columns, "h", audit, report),
    )
    clock.timed("ranks of classes, clusters", lambda: measure_classes(vectors, columns, names, "h", report))
    clock.timed(
        "spectrum of the moved rows",
        lambda: measure_spectrum(Vectors.of(first, choose(rows, SPLIT)), "view0", "h", report),
    )
    wanting = [name for name, entry in report.measures.items() if entry["value"] is None]
    assert not wanting, f"no value: {wanting}"
    return clock.content() | {"measures": len(report.measures)}


def theirs(rows: int, dimensions: int) -> dict[str, Any]:
    """What scikit-learn has of it."""
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
    from sklearn.metrics.pairwise import cosine_similarity
    from sklearn.neighbors import NearestNeighbors
    from sklearn.preprocessing import normalize

    x, first, second, labels = data(rows, dimensions)
    clock = Clock()
    chosen = np.sort(np.random.default_rng(0).permutation(rows)[:CLUSTERED])
    clock.timed("cosines of pairs of views", lambda: cosine_similarity(first[:PAIRS], second[:PAIRS]))
    clock.timed("PCA of all rows", lambda: PCA().fit(x))
    units = clock.timed("directions", lambda: normalize(x))
    # on rows of length one the Euclidean order is that of cosines, and scikit-learn's fast search has only the former
    search = NearestNeighbors(n_neighbors=NEAREST, algorithm="brute").fit(units)
    near = clock.timed("nearest rows", lambda: search.kneighbors(return_distance=False))
    clock.timed("purity, hubness", lambda: ((labels[near] == labels[:, None]).mean(), np.bincount(near.ravel())))
    clock.timed("PCA of each class", lambda: [PCA().fit(x[labels == code]) for code in range(CLASSES)])
    method = KMeans(CLASSES, n_init=3, max_iter=100, random_state=0)
    found = clock.timed("clusters", lambda: method.fit_predict(units[chosen]))
    scores = normalized_mutual_info_score, adjusted_rand_score
    clock.timed("NMI, ARI", lambda: [score(labels[chosen], found) for score in scores])
    return clock.content()


def main(arguments: list[str]) -> None:
    """Run both sides, each in a process of its own, or one of them where its name is given first."""
    sides = {"ours": ours, "scikit-learn": theirs}
    if arguments and arguments[0] in sides:
        content = sides[arguments[0]](*map(int, arguments[1:3]))
        Path(arguments[3]).write_text(json.dumps(content), encoding="utf-8")
        return
    rows, dimensions = (
        int(arguments[at]) if len(arguments) > at else default for at, default in ((0, 60_000), (1, 512))
    )
    result: dict[str, Any] = {"rows": rows, "dimensions": dimensions, "cores": len(os.sched_getaffinity(0))}
    for side in sides:
        print(f"{side}: {rows:,} x {dimensions}")
        scratch = RESULT.with_suffix(f".{side}.tmp")
        subprocess.run([sys.executable, __file__, side, str(rows), str(dimensions), str(scratch)], check=True)
        result[side.replace("-", "_")] = json.loads(scratch.read_text(encoding="utf-8"))
        scratch.unlink()
    result["processor_ratio"] = round(result["ours"]["processor_total"] / result["scikit_learn"]["processor_total"], 2)
    print(f"ratio of the processor's seconds {result['processor_ratio']}")
    RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
