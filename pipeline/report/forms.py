"""How numbers are written for readers: shares in percent, counts in groups of three, bytes in binary units.

What rounds to zero has no sign (``z`` in the formats)."""

from __future__ import annotations

from collections.abc import Callable


def percent(value: float) -> str:
    """A share in percent."""
    return f"{100 * value:z.1f} %"


def points(value: float) -> str:
    """A difference of shares in percentage points, with its sign."""
    return f"{100 * value:+z.1f}".replace("-", "−")


def distance(value: float) -> str:
    """The same without its sign."""
    return f"{100 * abs(value):.1f}"


def number(value: float) -> str:
    """Four significant digits; whole numbers whole."""
    if isinstance(value, int):
        return count(value)
    text = f"{value:.4g}" if abs(value) < 1e4 else f"{value:.4e}"
    return text.replace("-", "−")


def short(value: float) -> str:
    """Three decimals, for figures in running text."""
    return f"{value:z.3f}".replace("-", "−")


def hundredths(value: float) -> str:
    """Two decimals."""
    return f"{value:z.2f}".replace("-", "−")


def significant(value: float) -> str:
    """Three significant digits, for numbers of any size."""
    size = abs(value)
    if 100 <= size < 1e5:
        return count(value)
    if size == 0:
        return "0"
    if size < 1e-3 or size >= 1e5:
        digits, _, exponent = f"{value:.2e}".partition("e")
        return f"{digits}e{int(exponent)}".replace("-", "−")
    return f"{value:#.3g}".rstrip(".").replace("-", "−")


def count(value: float) -> str:
    """A whole number in groups of three."""
    return f"{value:,.0f}".replace(",", "\u202f").replace("-", "−")


def size(value: float) -> str:
    """Bytes in the largest binary unit that leaves at least one."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.4g} {unit}"


FORMS: dict[str, Callable[[float], str]] = {
    "percent": percent,
    "confidence": lambda value: f"{100 * value:g} %",
    "points": points,
    "distance": distance,
    "number": number,
    "short": short,
    "hundredths": hundredths,
    "significant": significant,
    "count": count,
    "size": size,
}


SHARES = (
    "probe",
    "neighbour_purity",
    "dimensions_99",
    "overlap",
    "nearer_negatives",
    "false_negatives",
    "antihubs",
    "retrieval",
    "label_kept",
    "matching",
)
"""Measures that are shares."""


def measured(measure: str) -> str:
    """How a measure's values are written: shares in percent, everything else as numbers."""
    of_numbers = measure.removesuffix(".view0").split(".")[-2:-1] in (["r2"], ["mae"])
    return "percent" if measure.partition(".")[0] in SHARES and not of_numbers else "number"
