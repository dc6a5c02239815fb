"""The probes beside faiss, lightly and scikit-learn: ``python tests/benchmarks/probes.py [--rounds 3]``.

kNN: 10,000 queries on 50,000 x 512, k = 200; linear: 50,000 x 512, ten classes. Every system runs in a process of its
own, one after the other in each round, on all cores of this machine; told are the median of its times, the median over
rounds of its ratio to the system that is to be matched, and how far its peak of memory lies above its inputs. What is
not installed is skipped and said so. ``--million``: 1,000 queries on 1,000,000 x 512, for the memory alone.

Writes results/probes.json beside this file. lightly's function is read from its file alone; faiss: pip install
faiss-cpu.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "probes.json"
ROWS, QUERIES, DIMENSIONS, K, TEMPERATURE, CLASSES = 50_000, 10_000, 512, 200, 0.1, 10
KNN = ("pipeline", "faiss", "lightly", "lightly_whole", "product")
"""lightly in parts of 500 queries and whole; the matrix product alone, which no exact search avoids."""
LINEAR = ("pipeline", "pipeline_given", "sklearn", "sklearn_optimum")
"""The pipeline's with its choice of the regularization, and at the one that is given to scikit-learn."""
SPECTRA = ("even", "falling")
"""Features whose directions have nearly equal variances, or variances that fall as 1 / rank."""
GIVEN = 1e-3


def measured(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """The result of ``work``, its seconds (and those of all cores), and the MiB of its peak above what was there."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before, start, busy = resident("VmRSS"), time.perf_counter(), time.process_time()
    result = work()
    seconds, cores = time.perf_counter() - start, time.process_time() - busy
    return result, {"seconds": seconds, "core_seconds": cores, "peak_mib": resident("VmHWM") - before}


def resident(key: str) -> float:
    """MiB of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024


def rows_of(count: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((count, DIMENSIONS), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def knn(system: str, rows: int = ROWS, queries: int = QUERIES) -> dict[str, Any]:
    """One search and vote."""
    gallery, asked = rows_of(rows, 0), rows_of(queries, 1)
    labels = np.random.default_rng(2).integers(0, CLASSES, rows)
    if system == "pipeline":
        from pipeline.neighbours import nearest_rows
        from pipeline.probes.knn import vote

        nearest_rows(asked[:64], gallery[:4096], K)  # loads what a first call loads
        (similarity, index), told = measured(lambda: nearest_rows(asked, gallery, K))
        answers, voted = measured(lambda: vote(similarity, labels[index], TEMPERATURE, CLASSES))
        told["vote_seconds"] = voted["seconds"]
    elif system == "faiss":
        import faiss

        flat = faiss.IndexFlatIP(DIMENSIONS)
        flat.add(gallery)
        flat.search(asked[:64], K)
        (similarity, index), told = measured(lambda: flat.search(asked, K))
        votes = np.zeros((queries, CLASSES))
        np.add.at(votes, (np.arange(queries)[:, None], labels[index]), np.exp(similarity / TEMPERATURE))
        answers = votes.argmax(1)
    else:
        import torch

        bank, given = torch.from_numpy(gallery).T, torch.from_numpy(asked)
        size = queries if system == "lightly_whole" else 500
        if system == "product":
            torch.mm(given[:64], bank)
            scores = torch.empty((size, rows))
            return measured(lambda: [torch.mm(part, bank, out=scores) for part in given.split(size)])[1]
        predict, known = lightly_knn(), torch.from_numpy(labels)
        predict(given[:64], bank, known, CLASSES, K, TEMPERATURE)
        found, told = measured(
            lambda: [predict(part, bank, known, CLASSES, K, TEMPERATURE)[:, 0] for part in given.split(size)]
        )
        answers = torch.cat(found).numpy()
    return {**told, "answers": answers.tolist()}


def linear(system: str, spectrum: str) -> dict[str, Any]:
    """One fit, and its accuracy on 10,000 other rows."""
    random = np.random.default_rng(0)
    count = ROWS + QUERIES
    along = np.ones(DIMENSIONS) if spectrum == "even" else np.arange(1, DIMENSIONS + 1) ** -0.5
    turn = np.linalg.qr(random.normal(size=(DIMENSIONS, DIMENSIONS)))[0]
    features = random.standard_normal((count, DIMENSIONS), dtype=np.float32) * along.astype(np.float32)
    logits = features @ (random.normal(size=(DIMENSIONS, CLASSES)) / along[:, None] ** 0.5).astype(np.float32)
    labels = (logits / logits.std() * 4 + random.gumbel(size=(count, CLASSES))).argmax(axis=1)
    features = features @ turn.astype(np.float32)
    train, test = slice(0, ROWS), slice(ROWS, None)
    if system.startswith("pipeline"):
        from pipeline.probes.linear import fit_linear

        given = GIVEN if system == "pipeline_given" else None
        fit_linear(features[:2000], labels[:2000], GIVEN)
        probe, told = measured(lambda: fit_linear(features[train], labels[train], given))
        answers = probe.predict(features[test])
        told["regularization"] = probe.regularization
    else:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        tolerance = 1e-4 if system == "sklearn" else 1e-6
        fit = LogisticRegression(C=1 / (ROWS * GIVEN), max_iter=500, tol=tolerance)
        probe = make_pipeline(StandardScaler(), fit).fit(features[:2000], labels[:2000])
        _, told = measured(lambda: probe.fit(features[train], labels[train]))
        answers = probe.predict(features[test])
        told |= {"regularization": GIVEN, "iterations": int(fit.n_iter_.max())}
    return {**told, "accuracy": float((answers == labels[test]).mean())}


def lightly_knn() -> Callable[..., Any]:
    """lightly's function, from its file: the package around it wants pytorch_lightning, which nothing here uses."""
    place = importlib.util.find_spec("lightly")
    if place is None or not place.submodule_search_locations:
        raise ImportError("lightly is not installed (pip install lightly)")
    path = Path(place.submodule_search_locations[0]) / "utils" / "benchmarking" / "knn.py"
    spec = importlib.util.spec_from_file_location("lightly_knn", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[..., Any] = module.knn_predict
    return function


def child(kind: str, *arguments: str) -> dict[str, Any]:
    """A system in a process of its own; {"skipped": why} where it is not installed."""
    found = subprocess.run(
        [sys.executable, __file__, "--child", kind, *arguments], capture_output=True, text=True, check=False
    )
    if found.returncode:
        last = found.stderr.strip().splitlines()[-1]
        if "Error: " in last and ("ImportError" in last or "ModuleNotFound" in last):
            return {"skipped": last.partition(": ")[2]}
        raise RuntimeError(found.stderr)
    result: dict[str, Any] = json.loads(found.stdout)
    return result


def rounds_of(kind: str, systems: tuple[str, ...], rounds: int, *more: str) -> dict[str, list[dict[str, Any]]]:
    """Every system once a round, in turn."""
    runs: dict[str, list[dict[str, Any]]] = {system: [] for system in systems}
    for number in range(rounds):
        for system in systems:
            if number and "skipped" in runs[system][0]:
                continue
            runs[system].append(child(kind, system, *more))
            told = runs[system][-1]
            seconds = told.get("skipped") or f"{told['seconds']:.2f} s, peak +{told['peak_mib']:.0f} MiB"
            print(f"{kind} {' '.join(more)} {system}: {seconds}", file=sys.stderr, flush=True)
    return runs


def summary(runs: dict[str, list[dict[str, Any]]], against: str) -> dict[str, Any]:
    """Medians, and medians of ratios within a round."""
    told: dict[str, Any] = {}
    for system, found in runs.items():
        if "skipped" in found[0]:
            told[system] = found[0]
            continue
        one = {key: statistics.median(run[key] for run in found) for key in found[0] if key != "answers"}
        if "skipped" not in runs[against][0]:
            ratios = [run["seconds"] / other["seconds"] for run, other in zip(found, runs[against], strict=True)]
            one["times_" + against] = statistics.median(ratios)
        if "answers" in found[0] and "answers" in runs["pipeline"][0]:
            pairs = zip(found[0]["answers"], runs["pipeline"][0]["answers"], strict=True)
            one["same_answers_as_pipeline"] = statistics.fmean(a == b for a, b in pairs)
        told[system] = {key: float(f"{value:.4g}") for key, value in one.items()}
    return told


def keep(part: str, found: dict[str, Any]) -> None:
    """Enter a part into the file of results, at once, and print it."""
    told: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    told |= {"cores": len(os.sched_getaffinity(0)), part: found}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(told, indent=1) + "\n")
    print(json.dumps({part: found}, indent=1), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--only", choices=("knn", "linear"))
    parser.add_argument("--child", nargs="+")
    given = parser.parse_args()
    if given.child:
        kind, system, *more = given.child
        run = knn(system, *map(int, more)) if kind == "knn" else linear(system, *more)
        print(json.dumps(run))
        return
    if given.million:
        keep("knn_million", summary(rounds_of("knn", ("pipeline",), 1, "1000000", "1000"), "pipeline"))
        return
    if given.only != "linear":
        keep("knn", summary(rounds_of("knn", KNN, given.rounds), "faiss"))
    if given.only != "knn":
        for spectrum in SPECTRA:
            keep(f"linear_{spectrum}", summary(rounds_of("linear", LINEAR, given.rounds, spectrum), "sklearn"))


if __name__ == "__main__":
    main()
