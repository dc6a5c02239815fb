"""The map of a space as SVG: a sign and a colour for each class, to be read without colour and without a script.

``map.js`` makes it answer: it draws with the same signs, from the data that stand beside the picture.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from markupsafe import Markup

from pipeline.report.result import Result
from pipeline.report.results_gallery import Labelled, Map, Placed

SIGNS = (  # paths around a point: disc, square, triangle, diamond, cross
    "m-17,0a17,17 0 1 0 34,0a17,17 0 1 0 -34,0",
    "m-15,-15h30v30h-30z",
    "m0,-19l18,32h-36z",
    "m0,-22l19,22l-19,22l-19,-22z",
    "m-18,-10l8,-8l10,10l10,-10l8,8l-10,10l10,10l-8,8l-10,-10l-10,10l-8,-8l10,-10z",
)
COLOURS, SHOWN = 8, 40
"""Colours, and classes that differ in sign or colour; later ones are small grey discs."""
UNIT, EDGE, LEAST = 1000, 80, 400
"""Units of the picture from its centre to an edge, beyond which there is a rim; and from its centre up, at least."""
KINDS = {"nearby": "neighbourhoods", "principal": "directions"}


def maps(found: Map) -> dict[str, Placed]:
    """The maps that there are, in the order in which they are offered."""
    held = {"nearby": found.nearby, "principal": found.principal}
    return {name: placed for name, placed in held.items() if placed is not None}


def class_columns(found: Map) -> dict[str, Labelled]:
    """The columns that a map can be coloured by, the one that tells who belongs together first."""
    held = {name: each for name, each in found.labels.items() if each.classes}
    first = {found.column: held[found.column]} if found.column in held else {}
    return {**first, **held}


def view_box(found: Map) -> str:
    """What the picture shows: the whole width, and as much height as the taller map needs."""
    heights = [abs(whole(point)[1]) for placed in maps(found).values() for point in placed.points]
    wide, tall = UNIT + EDGE, max(LEAST, *heights) + EDGE
    return f"{-wide} {-tall} {2 * wide} {2 * tall}"


def dots(found: Map) -> Markup:
    """The first map's samples, a path a class of the first column."""
    placed = next(iter(maps(found).values()))
    column = next(iter(class_columns(found).values()), None)
    codes = column.codes if column is not None else (0,) * len(found.rows)
    paths = []
    for code in sorted(set(codes)):
        own = [whole(point) for point, each in zip(placed.points, codes, strict=True) if each == code]
        line = "".join(f"M{x},{y}{sign_of(code)}" for x, y in own)
        paths.append(Markup('<path class="{}" d="{}"/>').format(colour_of(code), line))
    return Markup("").join(paths)


def sign(code: int) -> Markup:
    """One class's sign by itself, for the legend."""
    shape = '<svg class="sign" aria-hidden="true" viewBox="-26 -26 52 52"><path class="{}" d="M0,0{}"/></svg>'
    return Markup(shape).format(colour_of(code), sign_of(code))


def sign_of(code: int) -> str:
    """The path of a class's sign."""
    return SIGNS[code % len(SIGNS)] if code < SHOWN else SIGNS[0]


def colour_of(code: int) -> str:
    """The style class of a class's colour."""
    return f"k{code % COLOURS}" if code < SHOWN else "kx"


def whole(point: Sequence[float]) -> tuple[int, int]:
    """A place in units of the picture."""
    return round(UNIT * point[0]), round(UNIT * point[1])


def told(result: Result) -> str:
    """All that ``map.js`` reads of a map, as JSON."""
    assert result.gallery is not None
    found, sheet = result.gallery.map, result.gallery.sheets.map
    coloured = class_columns(found)
    places = {name: [each for point in placed.points for each in whole(point)] for name, placed in maps(found).items()}
    numbers = {name: each for name, each in found.labels.items() if not each.classes}
    content = {
        "sheet": [sheet.columns, sheet.width, sheet.height],
        "maps": places,
        "columns": [{"name": name, "classes": each.classes, "codes": each.codes} for name, each in coloured.items()],
        "numbers": [{"name": name, "values": each.values} for name, each in numbers.items()],
        "rows": found.rows,
        "split": found.split,
        "signs": SIGNS,
        "colours": COLOURS,
        "shown": SHOWN,
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
