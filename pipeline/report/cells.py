"""Thumbnails of the page as markup: a cell of a spec's sheet, which stands in the page once, in a style rule."""

from __future__ import annotations

import base64

from markupsafe import Markup

from pipeline.report.result import Result
from pipeline.report.results_gallery import Entry, Neighbour, Query, Sample, Sheet


def webp(content: bytes) -> str:
    """A picture as an address that asks for nothing."""
    return f"data:image/webp;base64,{base64.b64encode(content).decode()}"


def sheet_rule(result: Result, position: int) -> Markup:
    """The style of a spec's thumbnails; nothing where there are none."""
    if result.gallery is None or "pictures" not in result.sheets:
        return Markup("")
    sheet = result.gallery.sheets.pictures
    rule = ".p{0} {{ background-image: url({1}); background-size: {2}% {3}%; aspect-ratio: {4} / {5}; }}"
    size = 100 * sheet.columns, 100 * sheet.rows, sheet.width, sheet.height
    return Markup(rule).format(position, webp(result.sheets["pictures"]), *size)


def cell(position: int, sheet: Sheet, number: int, words: str) -> Markup:
    """One thumbnail of the spec at ``position`` of the page; ``words`` say what it is of."""
    row, column = divmod(number, sheet.columns)
    across, down = 100 * column / max(1, sheet.columns - 1), 100 * row / max(1, sheet.rows - 1)
    place = f"background-position:{across:.4g}% {down:.4g}%"
    span = '<span class="pic p{}" role="img" aria-label="{}" title="{}" style="{}"></span>'
    return Markup(span).format(position, words, words, place)


def sample_words(sample: Sample) -> str:
    """What a sample of a list is: its labels, its place, and its name in the source."""
    place = f"{sample.split} {sample.row}" + (f": {sample.name}" if sample.name else "")
    labels = ", ".join(sample.labels.values())
    return f"{labels} ({place})" if labels else place


def entry_label(entry: Entry) -> str:
    """What the samples of an entry are labelled: by the list's column, or else by the first one."""
    found = []
    for sample in entry.samples:
        found.append(sample.labels.get(entry.column) or next(iter(sample.labels.values()), ""))
    return " | ".join(dict.fromkeys(each for each in found if each))


def near_words(near: Query | Neighbour, classes: tuple[str, ...], split: str) -> str:
    """What a query or a neighbour is: its class, and its place."""
    name = class_name(near.code, classes)
    cosine = f", cosine {near.cosine:.3f}" if isinstance(near, Neighbour) else ""
    return f"{name or 'sample'}{cosine} ({split} {near.row})"


def class_name(code: int | None, classes: tuple[str, ...]) -> str:
    """The name of a class; empty where it is not known."""
    return classes[code] if code is not None and 0 <= code < len(classes) else ""
