"""Floor 2: write the curation lists, as CSV with a contact sheet each, into work/audit/NAME/curation.

lists.json says what each list is of, with which settings, or why there is none.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from pipeline.audit.estimate import NotComputable
from pipeline.contact_sheet import Entry, contact_sheet
from pipeline.curation.lists import (
    Entries,
    Searched,
    Space,
    list_false_negatives,
    list_near_duplicates,
    list_outliers,
    list_suspicious_labels,
    search,
)
from pipeline.images import Pixels
from pipeline.rounding import rounded

SHOWN = 24
"""Entries of a contact sheet, at most."""
Look = Callable[[str, int], Pixels]
Name = Callable[[str, int], str]


def write_curation(folder: Path, space: Space, look: Look | None = None, name: Name | None = None) -> dict[str, int]:
    """Write every list into ``folder``/curation.

    Args:
        look: (split, row) → picture (C, H, W) uint8; None: there are no contact sheets.
        name: (split, row) → what it is called in the source; None: rows have numbers only.

    Returns:
        How many entries each list has that could be made.
    """
    target = folder / "curation"
    target.mkdir()
    near: Searched | NotComputable
    try:
        near = search(space)
    except NotComputable as reason:
        near = reason

    def among_all(make: Callable[[Space, Searched], Iterator[Entries]]) -> Iterator[Entries]:
        if isinstance(near, NotComputable):
            raise near
        return make(space, near)

    makers: dict[str, Callable[[], Iterator[Entries]]] = {
        "near_duplicates": lambda: among_all(list_near_duplicates),
        "outliers": lambda: among_all(list_outliers),
        "suspicious_labels": lambda: among_all(list_suspicious_labels),
        "worst_false_negatives": lambda: list_false_negatives(space),
    }
    told: dict[str, Any] = {}
    for title, make in makers.items():
        try:
            lists = list(make())
        except NotComputable as reason:
            told[title] = {"entries": None, "note": f"not made: {reason}"}
            continue
        lines = [line for entries in lists for line in _lines(entries, space, name)]
        _write(target / f"{title}.csv", lines)
        note = "; ".join(entries.told for entries in lists)
        if look is not None and lines:
            _draw(target / f"{title}.png", lists, look)
        told[title] = {"entries": len(lines), "note": note}
    text = json.dumps(told, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    (target / "lists.json").write_text(text + "\n", encoding="utf-8")
    return {title: entry["entries"] for title, entry in told.items() if entry["entries"] is not None}


def _lines(entries: Entries, space: Space, name: Name | None) -> Iterator[dict[str, Any]]:
    """The figures of each entry, then what is known of its images."""
    for places, figures in zip(entries.places, entries.figures, strict=True):
        line = dict(figures)
        for place, which in zip(places, ("first_", "second_") if len(places) == 2 else ("",), strict=True):
            called = {} if name is None else {"name": _printable(name(*place))}
            known = {"split": place[0], "row": place[1], **called, **space.labels(place)}
            line |= {f"{which}{key}": value for key, value in known.items() if f"{which}{key}" not in figures}
        yield line


def _write(file: Path, lines: list[dict[str, Any]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(lines[0]) if lines else ["row"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rounded(lines))


def _draw(file: Path, lists: list[Entries], look: Look) -> None:
    """The first entries of each list on one page."""
    share = -(-SHOWN // len(lists))
    shown = [entry for each in lists for entry in islice(zip(each.places, each.words, strict=True), share)]
    titles = [each.told for each in lists if each.places]
    pages = [Entry([look(*place) for place in places], words) for places, words in shown]
    contact_sheet(titles[0] if len(titles) == 1 else f"{titles[0]}, and so on", pages, file)


def _printable(text: str) -> str:
    """A name on one line: a line end or an escape in it is shown as \\n or \\xNN."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)
