"""Everything of a gallery: gallery.json and two sheets of thumbnails, the same bytes for the same inputs.

``map.webp`` has the samples of the maps, ``pictures.webp`` those of neighbours and lists, which are shown larger.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from pipeline.embeddings import Embeddings, unusable
from pipeline.gallery.lists import lists
from pipeline.gallery.maps import fitted, nearby, principal
from pipeline.gallery.nearest import neighbours
from pipeline.gallery.sprites import Sprite
from pipeline.neighbours import unit
from pipeline.rounding import rounded
from pipeline.shards import Shards

DRAWN = 500
"""Points of a map, at most."""
SEEN = 4_000
"""Rows that the plane is found from, at most."""
FEWEST = 4
"""Points of a map, at least."""
LAYER, SPLIT = "h", "test"
MAP_SIDE, PICTURE_SIDE = 48, 64
"""Pixels of a thumbnail's longer side."""
Rows = npt.NDArray[np.int64]


def build(folder: Path, embeddings: Embeddings, shards: Shards, audited: Path, preserves: Sequence[str]) -> Any:
    """Write both sheets into ``folder``; return what gallery.json holds.

    Args:
        audited: work/audit/NAME, whose lists are shown.
        preserves: the declared names; the first that is a label column of classes tells who belongs together.
    """
    held = embeddings.class_columns()
    column = next((name for name in [*preserves, *held] if name in held), None)
    dots, pictures = Sprite(shards, MAP_SIDE), Sprite(shards, PICTURE_SIDE)
    content = {
        "map": mapped(embeddings, column, dots),
        "nearest": neighbours(embeddings, column, pictures),
        "lists": lists(audited / "curation", shards.card.splits, pictures),
    }
    sheets = {"map": dots.write(folder / "map.webp"), "pictures": pictures.write(folder / "pictures.webp")}
    return rounded({**content, "sheets": sheets})


def mapped(embeddings: Embeddings, column: str | None, sprite: Sprite) -> dict[str, Any]:
    """Both maps of a sample of the test split, with all labels; ``note`` says why there is none."""
    rows = embeddings.features(SPLIT, LAYER)
    told: dict[str, Any] = {"layer": LAYER, "split": SPLIT, "of": len(rows), "column": column, "rows": [], "note": ""}
    told |= {"principal": None, "nearby": None, "labels": {}}
    reason = unusable(rows) or (f"{len(rows)} samples; at least {FEWEST} are needed" if len(rows) < FEWEST else None)
    if reason is not None:
        return {**told, "note": reason}
    seen = chosen(len(rows), SEEN)
    drawn = chosen(len(seen), DRAWN)
    vectors = unit(rows[seen])
    with threadpool_limits(limits=1):  # sums in one order
        plane, shares = principal(vectors, drawn)
        near, perplexity = nearby(vectors[drawn], plane)
    kept = seen[drawn].tolist()
    for row in kept:
        sprite.cell(SPLIT, row)
    return {
        **told,
        "rows": kept,
        "principal": {"points": fitted(plane).tolist(), "shares": list(shares)},
        "nearby": {"points": fitted(near).tolist(), "perplexity": perplexity},
        "labels": {name: labelled(embeddings, name, seen[drawn]) for name in embeddings.columns},
    }


def chosen(total: int, count: int) -> Rows:
    """At most ``count`` of ``total`` rows, rising: the same whenever it is called, and fewer are a part of more."""
    if total <= count:
        return np.arange(total)
    return np.sort(np.random.default_rng(0).permutation(total)[:count])


def labelled(embeddings: Embeddings, name: str, rows: Rows) -> dict[str, Any]:
    """A label column of some rows: classes and codes, or numbers (None where one is not known)."""
    column = embeddings.columns[name]
    if column.kind == "class":
        return {"classes": list(column.classes), "codes": embeddings.labels(SPLIT, name)[rows].tolist()}
    values = embeddings.numbers(SPLIT, name)[rows].tolist()
    return {"values": [value if np.isfinite(value) else None for value in values]}
