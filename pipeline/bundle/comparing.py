"""Two bundles side by side: one space or two, what differs in their cards, how they agree on samples that are given.

A bundle holds no samples, so both embed some of those at a path; a file that either cannot read is left out.
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
from pipeline.samples import Values
from pipeline.sources import Record
from pipeline.spec import Refusal, digest

PARTS = ("space", "network", "input", "training", "data", "audit")
"""of the cards, that are shown where they differ"""


def is_bundle(place: str) -> bool:
    """Whether a name on the command line is a bundle's folder or URL, and no spec's."""
    return "://" in place or (Path(place) / CARD).is_file()


def compare_bundles(places: tuple[str, str], samples: Path | None) -> tuple[dict[str, Any], list[str]]:
    """What is written, and lines for a terminal.

    Args:
        places: two folders or URLs.
        samples: what both embed; None: no vectors are compared.

    Raises:
        Refusal: a bundle cannot be opened, or too few samples can be read by both.
    """
    first, second = load(places[0]), load(places[1])
    same, told = sameness(_hashes(first), _hashes(second))
    texts = [_yaml({name: each.card.get(name) for name in PARTS}) for each in (first, second)]
    changed = differences(texts[0], texts[1], places)
    lines = [told, *(changed or ["the cards are equal"])]
    content: dict[str, Any] = {"same": same, "told": told, "differences": changed, "rows": []}
    if samples is None:
        return content, [*lines, "give --samples PATH to compare their vectors of the same samples"]
    content["rows"] = list(agreement(list(_pairs(first, second, places, samples))))
    return content, lines


def _hashes(bundle: Bundle) -> dict[str, str]:
    """What the identity is of, by name."""
    parts = of_identity(bundle.card)
    parts["space"] = [parts["space"], parts.pop("space_identity")]  # of code in it only the latter knows
    return {name: digest(value) for name, value in parts.items()}


def _pairs(first: Bundle, second: Bundle, places: tuple[str, str], samples: Path) -> Iterator[Pair]:
    """h of both, and z of both where both have it, of the same samples."""
    names = [Path(place).name for place in places]
    names = list(places) if names[0] == names[1] else names
    chosen = list(_sample(first, second, samples))
    layers: tuple[Layer, ...] = ("h", "z")
    for layer in layers:
        if layer == "z" and not (first.has_z and second.has_z):
            continue
        rows = []
        for side, bundle in enumerate((first, second)):
            starts = range(0, len(chosen), BATCH)
            canvases = [each[side] for each in chosen]
            rows.append(np.concatenate([bundle.encode(canvases[start : start + BATCH], layer) for start in starts]))
        yield Pair(f"{names[0]}.{layer}", f"{names[1]}.{layer}", rows[0], rows[1])


def _sample(first: Bundle, second: Bundle, samples: Path) -> Iterator[tuple[Values, Values]]:
    """The first samples at a path that both can read, each on both canvases. Raises Refusal where there are few."""
    count = 0
    for item in items(samples):
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
        raise Refusal(f"--samples {samples}: both can read {count} of its files; at least 4 are needed")


def _yaml(content: dict[str, Any]) -> str:
    """Plain data as YAML, one value a line, as specs are compared."""
    stream = io.StringIO()
    YAML(typ="rt").dump(content, stream)
    return stream.getvalue()
