"""Two bundles side by side: one space or two, what differs in their cards, how they agree on pictures that are given.

A bundle holds no pictures, so both embed a sample of those at a path; a picture that either cannot read is left out.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from ruamel.yaml import YAML

from pipeline.bundle import Bundle, load
from pipeline.bundle.card import CARD, of_identity
from pipeline.bundle.encoder import BATCH
from pipeline.bundle.input import items
from pipeline.bundle.reading import on_canvas
from pipeline.bundle.vectors import Layer
from pipeline.comparing import SAMPLES, Pair, agreement, differences, sameness
from pipeline.images import Pixels
from pipeline.sources import Record
from pipeline.spec import Refusal, digest

PARTS = ("space", "network", "input", "training", "data", "audit")
"""of the cards, that are shown where they differ"""


def is_bundle(place: str) -> bool:
    """Whether a name on the command line is a bundle's folder or URL, and no spec's."""
    return "://" in place or (Path(place) / CARD).is_file()


def compare_bundles(places: tuple[str, str], images: Path | None) -> tuple[dict[str, Any], list[str]]:
    """What is written, and lines for a terminal.

    Args:
        places: two folders or URLs.
        images: pictures that both embed; None: no vectors are compared.

    Raises:
        Refusal: a bundle cannot be opened, or too few pictures can be read by both.
    """
    first, second = load(places[0]), load(places[1])
    same, told = sameness(_hashes(first), _hashes(second))
    texts = [_yaml({name: each.card.get(name) for name in PARTS}) for each in (first, second)]
    changed = differences(texts[0], texts[1], places)
    lines = [told, *(changed or ["the cards are equal"])]
    content: dict[str, Any] = {"same": same, "told": told, "differences": changed, "rows": []}
    if images is None:
        return content, [*lines, "give --images PATH to compare their vectors of the same pictures"]
    content["rows"] = list(agreement(list(_pairs(first, second, places, images))))
    return content, lines


def _hashes(bundle: Bundle) -> dict[str, str]:
    """What the identity is of, by name."""
    parts = of_identity(bundle.card)
    parts["space"] = [parts["space"], parts.pop("space_identity")]  # of code in it only the latter knows
    return {name: digest(value) for name, value in parts.items()}


def _pairs(first: Bundle, second: Bundle, places: tuple[str, str], images: Path) -> Iterator[Pair]:
    """h of both, and z of both where both have it, of the same pictures."""
    names = [Path(place).name for place in places]
    names = list(places) if names[0] == names[1] else names
    pictures = list(_sample(first, second, images))
    layers: tuple[Layer, ...] = ("h", "z")
    for layer in layers:
        if layer == "z" and not (first.has_z and second.has_z):
            continue
        rows = []
        for side, bundle in enumerate((first, second)):
            starts = range(0, len(pictures), BATCH)
            canvases = [each[side] for each in pictures]
            rows.append(np.concatenate([bundle.encode(canvases[start : start + BATCH], layer) for start in starts]))
        yield Pair(f"{names[0]}.{layer}", f"{names[1]}.{layer}", rows[0], rows[1])


def _sample(first: Bundle, second: Bundle, images: Path) -> Iterator[tuple[Pixels, Pixels]]:
    """The first pictures at a path that both can read, each on both canvases. Raises Refusal where there are few."""
    count = 0
    for item in items(images):
        if count == SAMPLES:
            break
        if isinstance(item, Record):
            try:
                both = tuple(on_canvas(item.content, bundle.input) for bundle in (first, second))
            except Refusal:
                continue
            count += 1
            yield both[0], both[1]
    if count < 4:
        raise Refusal(f"--images {images}: both can read {count} of its files; at least 4 are needed")


def _yaml(content: dict[str, Any]) -> str:
    """Plain data as YAML, one value a line, as specs are compared."""
    stream = io.StringIO()
    YAML(typ="rt").dump(content, stream)
    return stream.getvalue()
