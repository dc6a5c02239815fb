"""Time and memory of the probes and measures: ``python tests/benchmarks/proof.py knn|linear|audit [rows]``.

knn: 10,000 queries on rows x 512, k = 200 (the product alone beside it, and faiss where it is installed); linear: rows
x 512, ten classes, against scikit-learn's own tolerance; audit: all measures of one layer, 60,000 x 512.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

RANDOM = np.random.default_rng(0)


def told(name: str, work: Callable[[], Any]) -> Any:
    """Run, and print seconds and the growth of the process's peak memory."""
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    result = work()
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{name:<44} {seconds:7.2f} s   peak +{(after - before) / 1024:.0f} MiB", flush=True)
    return result


def knn(rows: int) -> None:
    """The search and the vote, beside the matrix product that no exact search avoids."""
    import torch

    from pipeline.neighbours import nearest_rows, unit
    from pipeline.probes.knn import vote

    gallery = unit(RANDOM.standard_normal((rows, 512), dtype=np.float32))
    queries = unit(RANDOM.standard_normal((10_000, 512), dtype=np.float32))
    labels = RANDOM.integers(0, 10, rows)
    nearest_rows(queries[:100], gallery, 200)
    similarity, index = told(f"nearest of 10,000 x 512 in {rows:,}", lambda: nearest_rows(queries, gallery, 200))
    told("vote", lambda: vote(similarity, labels[index], 0.07, 10))
    if rows > 100_000:
        return
    try:
        import faiss
    except ImportError:
        print("faiss: not installed")
    else:
        flat = faiss.IndexFlatIP(512)
        flat.add(gallery)
        theirs = told("faiss IndexFlatIP", lambda: flat.search(queries, 200))[1]
        same = np.mean([len(np.intersect1d(a, b)) / 200 for a, b in zip(index[:500], theirs[:500], strict=True)])
        print(f"neighbours in common {same:.5f}")
    asked, stored, scores = torch.from_numpy(queries), torch.from_numpy(gallery), torch.empty((500, rows))
    told("the product alone", lambda: [torch.mm(part, stored.T, out=scores) for part in torch.split(asked, 500)])


def linear(rows: int) -> None:
    """The probe against scikit-learn's logistic regression with the same penalty and its own tolerance."""
    from sklearn.linear_model import LogisticRegression

    from pipeline.probes.linear import fit_linear

    mix, weights = RANDOM.normal(size=(512, 512)) / 22, RANDOM.normal(size=(512, 10))
    features = (RANDOM.normal(size=(rows + 10_000, 512)) @ mix).astype(np.float32)
    labels = (features @ weights + 8 * RANDOM.gumbel(size=(len(features), 10))).argmax(axis=1)
    train, test = slice(0, rows), slice(rows, None)
    probe = told("linear probe", lambda: fit_linear(features[train], labels[train], 1e-3))
    scaled = (features - features[train].mean(0)) / features[train].std(0)
    theirs = LogisticRegression(C=1 / (rows * 1e-3), max_iter=1000)
    told("scikit-learn, float32, tol 1e-4", lambda: theirs.fit(scaled[train], labels[train]))
    ours = (probe.predict(features[test]) == labels[test]).mean()
    print(f"accuracy {ours:.4f}, scikit-learn {(theirs.predict(scaled[test]) == labels[test]).mean():.4f}")


def audit(rows: int) -> None:
    """Every measure of one layer with 2,000 sampled rows."""
    import torch  # noqa: F401  (so that its own memory is not counted below)

    from pipeline.audit.purity import neighbour_purity
    from pipeline.audit.similarity import negative_similarity, positive_similarity
    from pipeline.audit.spectrum import spectrum
    from pipeline.audit.sphere import alignment, uniformity
    from pipeline.neighbours import nearest_others, unit

    features = RANDOM.standard_normal((rows, 512), dtype=np.float32)
    a, labels, chosen = unit(features[:2000]), RANDOM.integers(0, 10, rows), np.arange(2000)
    b = unit(a + 0.02 * RANDOM.standard_normal(a.shape, dtype=np.float32))
    told("spectrum, three numbers, intervals", lambda: spectrum(features))
    told("similarities", lambda: (positive_similarity(a, b), negative_similarity(a, b)))
    told("alignment and uniformity", lambda: (alignment(a, b), uniformity(a)))
    near = told("neighbours of 2,000", lambda: nearest_others(unit(features), chosen, 10))
    told("purity", lambda: neighbour_purity(near, labels, chosen))


if __name__ == "__main__":
    default = {"knn": 50_000, "linear": 50_000, "audit": 60_000}
    what = sys.argv[1]
    {"knn": knn, "linear": linear, "audit": audit}[what](int(sys.argv[2]) if len(sys.argv) > 2 else default[what])
