"""Which samples a person should look at: four lists that a space's own geometry names, each a pure function of arrays.

Near-duplicates: pairs whose cosine lies above a quantile of all nearest-neighbour cosines. Outliers: by the distance to
their k-th neighbour (Ramaswamy, Rastogi & Shim, SIGMOD 2000). Suspicious labels: the k neighbours vote for another
class with confidence (a kNN form of confident learning, Northcutt, Jiang & Chuang, JAIR 2021). Worst false negatives:
what the loss pushes apart though it belongs together: the nearest negative of the anchor's own class, or (without
labels) a negative that is nearer than the positive.

Legend: N rows of length one, k neighbours, D dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.neighbours import Codes, Floats, nearest_rows

DECIMALS = 6
"""of cosines, so that no order hangs on a product's last bit"""
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pairs:
    """Pairs of rows, the worst first: (P,) each."""

    first: Codes
    second: Codes
    similarity: Numbers


@dataclass(frozen=True)
class Suspicions:
    """Rows whose neighbours say another class, the surest first: (P,) each."""

    rows: Codes
    voted: Codes
    """the class that they say"""
    share: Numbers
    """of the votes, for that class"""
    own: Numbers
    """of the votes, for the row's own label"""


def nearest_sorted(queries: Floats, gallery: Floats, k: int, own: bool = True) -> tuple[Floats, Codes]:
    """The k nearest gallery rows of each query (Q, D), nearest first, ties by index: cosines and indices, (Q, k) each.

    Args:
        own: query i and gallery row i are the same sample, which is left out; then 1 <= k < len(gallery).
    """
    similarity, index = nearest_rows(queries, gallery, k + own)
    similarity = np.round(similarity, DECIMALS)
    if own:
        similarity = np.where(index == np.arange(len(queries))[:, None], np.float32(-np.inf), similarity)
    order = np.lexsort((index, -similarity))[:, :k]  # oneself is last; without it the farthest is dropped
    return np.take_along_axis(similarity, order, axis=1), np.take_along_axis(index, order, axis=1)


def near_duplicates(similarity: Floats, index: Codes, quantile: float) -> tuple[Pairs, float]:
    """Pairs of rows as near as the ``quantile`` nearest of all nearest neighbours, each pair once; and that border.

    Args:
        similarity, index: (N, k) of ``nearest_sorted`` among the same rows.
        quantile: 0.99: the border is the cosine that one row in a hundred has with its nearest neighbour.
    """
    border = float(np.quantile(similarity[:, 0], quantile, method="higher"))
    row, place = np.nonzero(similarity >= border)
    other = index[row, place]
    low, high = np.minimum(row, other), np.maximum(row, other)
    _, kept = np.unique(low * len(index) + high, return_index=True)
    pairs = Pairs(low[kept], high[kept], similarity[row, place][kept].astype(np.float64))
    order = np.lexsort((pairs.second, pairs.first, -pairs.similarity))
    return Pairs(pairs.first[order], pairs.second[order], pairs.similarity[order]), border


def outliers(similarity: Floats) -> tuple[Codes, Numbers]:
    """All rows with the cosine distance to their k-th neighbour, the farthest first; similarity (N, k) as sorted."""
    distance = 1 - similarity[:, -1].astype(np.float64)
    order = np.argsort(-distance, kind="stable")
    return order, distance[order]


def suspicious_labels(
    similarity: Floats, index: Codes, labels: Codes, classes: int, temperature: float, confidence: float
) -> Suspicions:
    """Rows that at least ``confidence`` of their neighbours' votes give another class than their label.

    Args:
        similarity, index: (N, k) of ``nearest_sorted`` among the same rows.
        labels: (N,) class codes below ``classes``.
        temperature: a neighbour's vote weighs exp(cosine / temperature), as in the kNN probe.
    """
    weight = np.exp((similarity.astype(np.float64) - similarity[:, :1]) / temperature)
    weight /= weight.sum(axis=1, keepdims=True)
    everyone = np.arange(len(labels))
    votes: Numbers = np.zeros((len(labels), classes))
    np.add.at(votes, (everyone[:, None], labels[index]), weight)
    voted = votes.argmax(axis=1)
    share, own = votes[everyone, voted], votes[everyone, labels]
    found = np.flatnonzero((voted != labels) & (share >= confidence))
    order = found[np.lexsort((found, -(share - own)[found]))]
    return Suspicions(order, voted[order], share[order], own[order])


def false_negatives(
    anchors: Floats, candidates: Floats, similarity: Floats, index: Codes, labels: Codes | None
) -> tuple[Pairs, Numbers]:
    """For each anchor (first) the nearest negative (second) that should be none, the worst first, and the cosine of the
    anchor's positive; a pair of samples is told once.

    Args:
        anchors, candidates: (N, D), two views of each sample; row i of both is sample i.
        similarity, index: (N, k) of ``nearest_sorted(anchors, candidates, k)``.
        labels: (N,) class codes: negatives of the anchor's class, by their cosine. None: negatives nearer than the
            positive, by how much nearer.
    """
    positive = np.round(np.einsum("nd,nd->n", anchors, candidates, dtype=np.float64), DECIMALS)
    wrong = (
        similarity > positive[:, None].astype(np.float32) if labels is None else labels[index] == labels[:, None]
    )  # (N, k)
    rows = np.flatnonzero(wrong.any(axis=1))
    place = wrong[rows].argmax(axis=1)  # the nearest of them
    other, cosine = index[rows, place], similarity[rows, place].astype(np.float64)
    worth = cosine - positive[rows] if labels is None else cosine
    order = np.lexsort((rows, -worth))
    low, high = np.minimum(rows, other)[order], np.maximum(rows, other)[order]
    _, kept = np.unique(low * len(anchors) + high, return_index=True)
    order = order[np.sort(kept)]
    return Pairs(rows[order], other[order], cosine[order]), positive[rows[order]]
