"""What lies next to a sample: a few test samples, each with its nearest training samples on h and on the raw input.

The samples are not chosen by what they show: the first of each class in an order that is fixed before, classes in turn.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.curation import nearest_sorted
from pipeline.embeddings import Embeddings, unusable
from pipeline.gallery.sprites import Sprite
from pipeline.neighbours import unit

Codes = npt.NDArray[np.int64]
QUERIES, NEAREST, AMONG = 8, 6, 10_000
"""Samples that ask, what each is shown, and the training samples that are searched, at most."""
LAYERS = ("h", "raw")


def queries(codes: Codes | None, total: int, count: int, seed: int = 0) -> Codes:
    """At most ``count`` of ``total`` rows: of a fixed order the first of each class, then the second, and so on.

    Args:
        codes: (total,) class codes, or None: the order alone decides.
    """
    order = np.random.default_rng(seed).permutation(total)
    if codes is None:
        return order[:count]
    turn = np.zeros(total, dtype=np.int64)  # how many of its class come before a row
    for code in np.unique(codes):
        own = order[codes[order] == code]
        turn[own] = np.arange(len(own))
    return order[np.lexsort((codes[order], turn[order]))][:count]


def neighbours(embeddings: Embeddings, column: str | None, sprite: Sprite) -> dict[str, Any]:
    """The queries, and for each layer what lies nearest by cosine, as plain data; ``note`` says why there is nothing.

    Args:
        column: of the classes that tell whether a neighbour is of the query's own.
    """
    test = embeddings.features("test", "h")
    codes = {split: embeddings.labels(split, column) if column else None for split in ("train", "test")}
    asking = queries(codes["test"], len(test), QUERIES)
    total = len(embeddings.features("train", "h"))
    among = np.arange(total)
    if total > AMONG:
        among = np.sort(np.random.default_rng(0).permutation(total)[:AMONG])
    found: list[dict[str, Any]] = [
        {"cell": sprite.cell("test", row), "row": row, "code": _code(codes["test"], row), "layers": {}}
        for row in asking.tolist()
    ]
    notes = []
    for layer in LAYERS:
        asked, gallery = embeddings.features("test", layer)[asking], embeddings.features("train", layer)[among]
        reason = unusable(gallery)
        if reason is not None:
            notes.append(f"{layer}: {reason}")
            continue
        similarity, index = nearest_sorted(unit(asked), unit(gallery), min(NEAREST, len(gallery)), own=False)
        for query, cosines, places in zip(found, similarity, among[index], strict=True):
            query["layers"][layer] = [
                {"cell": sprite.cell("train", row), "row": row, "code": _code(codes["train"], row), "cosine": cosine}
                for row, cosine in zip(places.tolist(), cosines.astype(float).tolist(), strict=True)
            ]
    classes = list(embeddings.columns[column].classes) if column else []
    told = {"column": column, "classes": classes, "among": len(among), "note": "; ".join(notes)}
    return {**told, "queries": found}


def _code(codes: Codes | None, row: int) -> int | None:
    return None if codes is None else int(codes[row])
