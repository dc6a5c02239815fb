"""Floor 2: the four curation lists of an embedded space, each with what is to be said of its entries.

Near-duplicates, outliers and suspicious labels are of the images of several splits together: a pair on both sides is a
leak. False negatives are of the test images under the declared invariances, drawn twice. All of them are of h.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.audit.estimate import NotComputable
from pipeline.curation import false_negatives, near_duplicates, nearest_sorted, outliers, suspicious_labels
from pipeline.embeddings import Embeddings, unusable
from pipeline.neighbours import Codes, Floats, unit

NEIGHBOURS, QUANTILE, TEMPERATURE, CONFIDENCE = 10, 0.99, 0.1, 0.8
ROWS, LONGEST, SEED = 20_000, 200, 0
"""Images that are looked at and entries of a list, at most, and the seed of the sample where there are more."""

Rows = npt.NDArray[np.float32]
Place = tuple[str, int]
"""(split, row) of an image."""


@dataclass
class Entries:
    """One list, the worst first."""

    told: str
    """what it is of"""
    places: list[tuple[Place, ...]] = field(default_factory=list)
    """the one or two images of each entry"""
    figures: list[dict[str, Any]] = field(default_factory=list)
    words: list[tuple[str, ...]] = field(default_factory=list)
    """to stand below the pictures"""

    def add(self, places: tuple[Place, ...], figures: dict[str, Any], words: tuple[str, ...]) -> None:
        """Append one entry."""
        self.places.append(places)
        self.figures.append(figures)
        self.words.append(words)


@dataclass(frozen=True)
class Space:
    """Vectors of h with what is known of their images."""

    rows: Mapping[str, Rows]
    """of each split that is looked at (N, D)"""
    views: tuple[Rows, Rows] | None
    """two views of each sample of one split (N, D), and which; None: there are none"""
    viewed: str
    """the split that views are of"""
    classes: Mapping[str, tuple[str, ...]]
    """names of the classes of each label column"""
    codes: Mapping[tuple[str, str], Codes]
    """(column, split) → (N,) class codes"""

    @classmethod
    def of(cls, embeddings: Embeddings) -> Space:
        """All images of an embedded space."""
        splits, columns = ("train", "test"), embeddings.class_columns()
        return cls(
            {split: embeddings.features(split, "h") for split in splits},
            (embeddings.features("view0", "h"), embeddings.features("view1", "h")),
            "test",
            {column: embeddings.columns[column].classes for column in columns},
            {(column, split): embeddings.labels(split, column) for column in columns for split in splits},
        )

    def labels(self, place: Place) -> dict[str, str]:
        """Every label of an image, by its column."""
        return {column: names[self.codes[column, place[0]][place[1]]] for column, names in self.classes.items()}

    def said(self, places: tuple[Place, ...]) -> str:
        """The first column's labels of an entry's images."""
        column = next(iter(self.classes), None)
        return "" if column is None else " | ".join(dict.fromkeys(self.labels(place)[column] for place in places))


@dataclass(frozen=True)
class Searched:
    """Where each looked-at row lies, and its nearest others (N, k)."""

    places: list[Place]
    similarity: Floats
    index: Codes


def search(space: Space) -> Searched:
    """Find every row's neighbours among all splits. Raises NotComputable."""
    places = [(split, row) for split, rows in space.rows.items() for row in range(len(rows))]
    chosen = _choose(len(places))
    rows = _usable(np.concatenate(list(space.rows.values()))[chosen])
    similarity, index = nearest_sorted(rows, rows, min(NEIGHBOURS, len(rows) - 1))
    return Searched([places[row] for row in chosen.tolist()], similarity, index)


def list_near_duplicates(space: Space, near: Searched) -> Iterator[Entries]:
    """Pairs that are nearer than nearly all nearest neighbours."""
    pairs, border = near_duplicates(near.similarity, near.index, QUANTILE)
    count = f"{len(pairs.first)} pairs of {len(near.places)} samples"
    entries = Entries(f"{count}: cosine of at least {border:.4f}, which 1 sample in 100 has with its nearest")
    for one, other, cosine in _first(pairs.first, pairs.second, pairs.similarity):
        places = (near.places[one], near.places[other])
        across = "" if places[0][0] == places[1][0] else f", {places[0][0]} and {places[1][0]}"
        entries.add(places, {"cosine": cosine}, (f"{cosine:.4f}{across}", space.said(places)))
    yield entries


def list_outliers(space: Space, near: Searched) -> Iterator[Entries]:
    """Samples far from all others."""
    order, distance = outliers(near.similarity)
    k = near.index.shape[1]
    entries = Entries(f"of {len(near.places)} samples those farthest from their neighbour {k}, by cosine distance")
    for row, far in _first(order, distance):
        places = (near.places[row],)
        entries.add(places, {"distance": far}, (f"{far:.4f}", space.said(places)))
    yield entries


def list_suspicious_labels(space: Space, near: Searched) -> Iterator[Entries]:
    """Labels that neighbours contradict, a list for each column of classes. Raises NotComputable."""
    if not space.classes:
        raise NotComputable("there is no label column of classes")
    k = near.index.shape[1]
    for column, classes in space.classes.items():
        labels = np.array([space.codes[column, split][row] for split, row in near.places], dtype=np.int64)
        made = suspicious_labels(near.similarity, near.index, labels, len(classes), TEMPERATURE, CONFIDENCE)
        count = f"{column}: {len(made.rows)} of {len(labels)} labels"
        entries = Entries(f"{count} are contradicted by {CONFIDENCE:.0%} or more of the votes of {k} neighbours")
        for row, voted, share, own in _first(made.rows, made.voted, made.share, made.own):
            label, other = classes[labels[row]], classes[voted]
            figures = {"column": column, "label": label, "voted": other, "share": share, "own_share": own}
            entries.add((near.places[row],), figures, (f"labelled {label}", f"among {other} ({share:.0%})"))
        yield entries


def list_false_negatives(space: Space) -> Iterator[Entries]:
    """Negatives that should be none: of the anchor's class, or nearer than the positive. Raises NotComputable."""
    if space.views is None and not space.classes:
        raise NotComputable("neither labels nor two views of each sample were given")
    whole = space.views or (space.rows[space.viewed],) * 2
    chosen = _choose(len(whole[0]))
    first, second = (_usable(rows[chosen]) for rows in whole)
    similarity, index = nearest_sorted(first, second, min(NEIGHBOURS, len(first) - 1))
    columns: list[str | None] = list(space.classes) or [None]
    for column in columns:
        labels = None if column is None else space.codes[column, space.viewed][chosen]
        pairs, own = false_negatives(first, second, similarity, index, labels)
        what = "nearer than their second view" if column is None else f"with a near negative of their {column}"
        entries = Entries(f"{len(pairs.first)} of {len(first)} {space.viewed} samples {what}, by its cosine")
        for one, other, cosine, positive in _first(pairs.first, pairs.second, pairs.similarity, own):
            places = ((space.viewed, int(chosen[one])), (space.viewed, int(chosen[other])))
            figures = {"column": column or "", "cosine": cosine}
            figures |= {} if space.views is None else {"positive_cosine": positive}
            beside = "" if space.views is None else f" (own view {positive:.4f})"
            label = "" if column is None else space.labels(places[0])[column]
            entries.add(places, figures, (f"{cosine:.4f}{beside}", label))
        yield entries


def _first(*arrays: npt.NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    """The first entries of a list, as plain values."""
    return islice(zip(*(array[:LONGEST].tolist() for array in arrays), strict=True), LONGEST)


def _choose(count: int) -> Codes:
    if count <= ROWS:
        return np.arange(count)
    return np.sort(np.random.default_rng(SEED).permutation(count)[:ROWS])


def _usable(rows: npt.NDArray[np.float32]) -> Floats:
    """Rows of length one. Raises NotComputable."""
    reason = unusable(rows) or (f"{len(rows)} rows; at least 3 are needed" if len(rows) < 3 else None)
    if reason is not None:
        raise NotComputable(reason)
    return unit(rows)
