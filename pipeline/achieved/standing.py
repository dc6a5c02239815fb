"""What the tables of readable names say, in sentences: is it more than the best control reads?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

RIVALS = ("raw", "untrained", "cheap")


def standing(table: Sequence[Mapping[str, Any]]) -> list[str]:
    """A sentence a row: what is read from h, and whether that is more than from the best control."""
    told = []
    for row in table:
        layers = row["layers"]
        rivals = {name: layers[name] for name in RIVALS if name in layers}
        if row["reason"] is not None or "h" not in layers or not rivals:
            told.append(f"{row['name']}: {row['reason'] or 'h, or every control, cannot be read'}")
            continue
        best = max(rivals, key=lambda name: rivals[name]["value"])
        own, other = layers["h"], rivals[best]
        word = "less than" if own["high"] < other["low"] else "as much as"
        word = "more than" if own["low"] > other["high"] else word
        told.append(f"{row['name']}: skill {own['value']:.2f} from h, {word} from {best} ({other['value']:.2f})")
    return told
