"""Search among many vectors with FAISS, by the metric and normalization of the card; and how much of it is found.

The index holds z as the space compares it: inner products of what is normalised, or Euclidean distances. It is an HNSW
graph (Malkov & Yashunin 2018): approximate, so its recall against exact search is measured when it is written.
It is of one file of vectors, and answers with rows of that one only. FAISS is an extra: ``pip install -e '.[search]'``.

Legend: N vectors of the index, Q queries, D dimensions, k neighbours.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.bundle.encoder import Bundle
from pipeline.bundle.files import digest_of_file
from pipeline.bundle.vectors import Rows, Vectors, as_tensor
from pipeline.bundle.weights import weight_digest
from pipeline.spec import Refusal

INDEX, ABOUT = "index.faiss", "index.json"
LINKS, BUILT_WITH, SEARCHED_WITH = 32, 200, 128
"""of HNSW: links of a vector, candidates while it is built and while it is searched"""
ASKED, K, SEED = 1000, 10, 0
"""Queries that recall is measured with (vectors of the index), their neighbours, and the seed that draws them."""


@dataclass(frozen=True)
class Found:
    """What a search gave."""

    rows: npt.NDArray[np.int64]
    """(Q, k) of the index, the most similar first"""
    similar: Rows
    """(Q, k), as the space declares"""


def write_index(bundle: Bundle, vectors: Vectors, folder: Path) -> dict[str, Any]:
    """Write an index of vectors into an empty folder; what is said of it, recall at K included.

    Raises:
        Refusal: FAISS is not installed, or the vectors are of another space.
    """
    faiss = _faiss()
    z = bundle.compared(vectors).values
    inner = bundle.metric in ("cosine", "dot")
    index = faiss.IndexHNSWFlat(z.shape[1], LINKS, faiss.METRIC_INNER_PRODUCT if inner else faiss.METRIC_L2)
    index.hnsw.efConstruction, index.hnsw.efSearch = BUILT_WITH, SEARCHED_WITH
    index.add(np.ascontiguousarray(z))
    chosen = np.sort(np.random.default_rng(SEED).permutation(len(z))[:ASKED])
    k = min(K, len(z))
    exact, _ = bundle.neighbors(vectors[chosen], vectors, k)
    found = _searched(bundle, index, vectors[chosen], k).rows
    shared = [len(np.intersect1d(ours, theirs)) for ours, theirs in zip(found, exact, strict=True)]
    faiss.write_index(index, str(folder / INDEX))
    about = {
        "identity": bundle.identity,
        "count": len(z),
        "vectors": _digest(vectors),
        "metric": bundle.metric,
        "normalization": bundle.normalization,
        "recall": {"k": k, "queries": len(chosen), "value": round(float(np.mean(shared)) / k, 6)},
        "sha256": digest_of_file(folder / INDEX),
    }
    (folder / ABOUT).write_text(json.dumps(about, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return about


def search_index(bundle: Bundle, folder: Path, queries: Vectors, gallery: Vectors, k: int) -> Found:
    """The k nearest of an index to each query: rows of ``gallery``, which the index was written of.

    Raises:
        Refusal: FAISS is not installed, no such index, one that is damaged, of another space or of other vectors, or
            fewer than k, also where the graph reaches fewer (it does among many equal vectors).
    """
    faiss = _faiss()
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        identity, count, digest, of = about["identity"], about["count"], about["sha256"], about["vectors"]
        whole = digest_of_file(folder / INDEX) == digest
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Refusal(f"{folder}: no index ({str(error).splitlines()[0][:120]}); name a new folder") from None
    if not whole:
        raise Refusal(f"{folder / INDEX}: not the file that {ABOUT} describes; write the index again")
    if identity != bundle.identity:
        told = f"({str(identity)[:8]}; this one is {bundle.identity[:8]})"
        raise Refusal(f"{folder}: an index of another space {told}; name a new folder")
    if of != _digest(gallery):
        raise Refusal(f"{folder}: an index of other vectors; name a new folder, or the vectors that it was written of")
    if not 1 <= k <= count:
        raise Refusal(f"search: k = {k} of {count} vectors; must lie between 1 and {count}")
    found = _searched(bundle, faiss.read_index(str(folder / INDEX)), queries, k)
    if (found.rows < 0).any():  # how FAISS tells that there was no more
        raise Refusal(f"{folder}: reaches fewer than the {k} nearest; ask for fewer, or leave --index out")
    return found


def _digest(vectors: Vectors) -> str:
    return weight_digest({vectors.layer: as_tensor(vectors.values)})


def _searched(bundle: Bundle, index: Any, queries: Vectors, k: int) -> Found:
    values, rows = index.search(np.ascontiguousarray(bundle.compared(queries).values), k)
    if bundle.metric == "euclidean":
        values = -np.sqrt(values)
    elif bundle.metric == "squared_euclidean":
        values = -values
    return Found(rows.astype(np.int64), values)


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise Refusal("search: FAISS is not installed; pip install faiss-cpu, or leave --index out") from None
    return faiss
