"""The relation matrix of a small batch as SVG: a sign of its own for each relation, told without colour too."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from pipeline.report.relations import Relation

CELL, EDGE = 14, 22
"""Units of a cell's side, and of the margin that holds the samples' numbers."""
SIGNS: dict[Relation, tuple[str, str]] = {  # path within a cell from its top left corner, class of its stroke and fill
    "self": ("m2,2h10v10h-10z", "self"),
    "positive": ("m2,7a5,5 0 1 0 10,0a5,5 0 1 0 -10,0z", "positive"),
    "false negative": ("m3,3l8,8m0,-8l-8,8", "false"),
    "negative": ("m6,7h2", "negative"),
}


def matrix(drawn: Sequence[Sequence[Relation]]) -> Markup:
    """Anchors downwards, candidates to the right; numbers are of samples, whose two views stand side by side."""
    side = EDGE + CELL * len(drawn)
    parts = [
        Markup('<svg class="matrix" role="img" viewBox="0 0 {0} {0}" aria-label="{1}">').format(side, _words(drawn))
    ]
    for sample in range(len(drawn) // 2):
        middle = EDGE + CELL * (2 * sample + 1)
        word = '<text x="{}" y="{}">{}</text>'
        parts.append(Markup(word).format(middle, EDGE - 7, sample + 1))
        parts.append(Markup(word).format(EDGE / 2, middle + 4, sample + 1))
    lines = "".join(
        f"M{EDGE},{EDGE + CELL * at}H{side}M{EDGE + CELL * at},{EDGE}V{side}" for at in range(0, len(drawn) + 1, 2)
    )
    parts.append(Markup('<path class="lines" d="{}"/>').format(lines))
    for relation, (sign, name) in SIGNS.items():
        cells = [
            f"M{EDGE + CELL * column},{EDGE + CELL * row}{sign}"
            for row, line in enumerate(drawn)
            for column, each in enumerate(line)
            if each == relation
        ]
        if cells:
            parts.append(Markup('<path class="{}" d="{}"/>').format(name, "".join(cells)))
    return Markup("").join([*parts, Markup("</svg>")])


def sign(relation: Relation) -> Markup:
    """One sign by itself, for a legend."""
    path, name = SIGNS[relation]
    shape = '<svg class="matrix sign" aria-hidden="true" viewBox="0 0 {0} {0}"><path class="{1}" d="M0,0{2}"/></svg>'
    return Markup(shape).format(CELL, name, path)


def _words(drawn: Sequence[Sequence[Relation]]) -> str:
    count = {name: sum(line.count(name) for line in drawn) for name in SIGNS}
    return (
        f"{len(drawn)} anchors by {len(drawn)} candidates: {count['positive']} positives, "
        f"{count['negative']} negatives, {count['false negative']} false negatives"
    )
