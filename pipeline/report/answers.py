"""How a space answers to transformations: a row's picture, and how far declared ones and controls move a sample."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from pipeline.report.results_audit import Achieved, Transformation

LAYERS = {"h": ("--blue", "34%"), "z": ("--orange", "72%")}
"""Colour and height of each layer's line; h is a disc and z a square."""


def reach(achieved: Achieved) -> float:
    """The scale of all pictures of a space: its largest movement, and at least a little more than another sample."""
    return max(1.2, *(value for each in achieved.transformations for _, _, value in _movements(each)), 0.0) * 1.04


def answer(transformation: Transformation, scale: float) -> Markup:
    """Movement at every strength from 0 to ``scale``, the full strength largest; a tick marks another sample."""
    at_one = 100 / scale
    parts = [
        Markup('<line x1="0" x2="100%" y1="53%" y2="53%" stroke="var(--line)" stroke-width="1"/>'),
        Markup('<line x1="{0:.1f}%" x2="{0:.1f}%" y1="8%" y2="98%" stroke="var(--muted)" stroke-width="2"/>').format(
            at_one
        ),
    ]
    for layer, (colour, height) in LAYERS.items():
        measured = (each for each in _movements(transformation) if each[1] == layer)
        found = [(strength, 100 * value / scale) for strength, _, value in measured]
        if found:
            line = '<line x1="{:.1f}%" x2="{:.1f}%" y1="{}" y2="{}" stroke="var({})" stroke-width="1.5"/>'
            places = [place for _, place in found]
            parts.append(Markup(line).format(min(places), max(places), height, height, colour))
        for strength, place in found:
            size = 1.5 + 2.5 * strength
            if layer == "h":
                shape = Markup('<circle cx="{:.1f}%" cy="{}" r="{:g}" fill="var({})"/>')
                parts.append(shape.format(place, height, size, colour))
            else:
                shape = Markup('<rect x="{:.1f}%" y="{}" width="{side:g}" height="{side:g}" fill="var({})" {turn}/>')
                turn = Markup('transform="translate({0:g},{0:g})"').format(-0.9 * size)
                parts.append(shape.format(place, height, colour, side=1.8 * size, turn=turn))
    words = "Movement of h (upper, discs) and z (lower, squares) at each strength; the tick is another sample"
    return Markup('<svg class="strip" role="img" aria-label="{}">{}</svg>').format(words, Markup("").join(parts))


def labels_read(achieved: Achieved) -> list[str]:
    """The label columns that are read from transformed samples."""
    points = (point for each in achieved.transformations for point in each.points)
    return list(dict.fromkeys(column for point in points for at in point.layers.values() for column in at.labels))


def span(achieved: Achieved, declared: bool, layer: str = "h") -> tuple[float, float] | None:
    """The least and the largest movement at full strength, of declared invariances or of controls."""
    found = [
        value
        for each in achieved.transformations
        if each.declared == declared and each.points
        for strength, name, value in _movements(each)
        if name == layer and strength == each.points[-1].strength
    ]
    return (min(found), max(found)) if found else None


def _movements(transformation: Transformation) -> Iterator[tuple[float, str, float]]:
    """(strength, layer, movement) of everything that was measured."""
    for point in transformation.points:
        for layer, found in point.layers.items():
            if found.movement is not None and found.movement.value is not None:
                yield point.strength, layer, found.movement.value
