"""Findings as sentences that a practitioner of the domain reads."""

from __future__ import annotations

from pipeline.check.erased import Left
from pipeline.check.interval import Figure
from pipeline.check.labels import Column


def percent(value: float) -> str:
    """A share as a whole percentage."""
    return f"{100 * value:.0f} %"


def span(figure: Figure) -> str:
    """A share and its interval: "17 % (13 to 21)"."""
    value, low, high = figure
    return f"{100 * value:.0f} % ({100 * low:.0f} to {100 * high:.0f})"


def lost(figure: Figure) -> Figure:
    """What is lost of what is known, from what is kept of it."""
    value, low, high = figure
    return max(0.0, 1 - value), max(0.0, 1 - high), max(0.0, 1 - low)


def known(column: Column, left: Left, after: str) -> str:
    """What a cheap probe reads before and after: "a cheap probe reads it 89 % of the time …"."""
    if column.kind == "number":
        return (
            f"a cheap probe explains {percent(left.before)} of its variance from the pictures and "
            f"{percent(max(left.after, 0.0))} {after}"
        )
    return (
        f"a cheap probe reads it {percent(left.before)} of the time from the pictures and "
        f"{percent(left.after)} {after} (chance {percent(left.chance)})"
    )


def listing(parts: list[str]) -> str:
    """Words in a row: "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
