"""Small pieces of the page as markup: figures, badges, and a row's picture."""

from __future__ import annotations

import base64
import io

from markupsafe import Markup, escape

from pipeline.report.figures import MOVED, Figures, knn
from pipeline.report.forms import FORMS
from pipeline.report.result import Result
from pipeline.report.results_audit import Interval

DASH = "–"
BADGES = {  # the sign tells without colour
    "fail": ("✕", "fails"),
    "warn": ("!", "warning"),
    "passed": ("✓", "passed"),
    "failed": ("✕", "failed"),
    "inconclusive": ("≈", "inconclusive"),
    "accepted": ("!", "failed, accepted"),
    "refused": ("✕", "refused"),
    "damaged": ("✕", "damaged"),
    "unfinished": ("…", "not finished"),
}


def figure(figures: Figures, key: str, form: str = "number") -> Markup:
    """A figure of metrics.json by its name, in one of the forms below; a dash where it has no value."""
    value = figures.get(key)
    if value is None or isinstance(value, str):
        return escape(DASH)
    return Markup('<data value="{}" data-figure="{}">{}</data>').format(repr(value), key, FORMS[form](value))


def data(value: float | None, form: str = "number") -> Markup:
    """Any other number of the stages' files, with its full value."""
    if value is None:
        return escape(DASH)
    return Markup('<data value="{}">{}</data>').format(repr(value), FORMS[form](value))


def interval(found: Interval | None, form: str = "number") -> Markup:
    """Both ends of an interval, or a dash where there is none."""
    if found is None or found.low is None or found.high is None:
        return escape(DASH)
    return Markup("{} to {}").format(data(found.low, form), data(found.high, form))


def badge(word: str) -> Markup:
    """A verdict as a sign and a word."""
    sign, words = BADGES.get(word, ("", word))
    return Markup('<span class="badge {}"><span aria-hidden="true">{}</span> {}</span>').format(word, sign, words)


LARGE, QUALITY = 40_000, 85
"""Bytes of a PNG above which the page holds it as WebP, and of which quality."""


def address(picture: bytes) -> str:
    """A PNG as an address that asks for nothing. A large one becomes WebP: the file of the stage stays as it is."""
    if len(picture) <= LARGE:
        return f"data:image/png;base64,{base64.b64encode(picture).decode()}"
    from PIL import Image

    small = io.BytesIO()
    Image.open(io.BytesIO(picture), formats=("PNG",)).convert("RGB").save(small, "WEBP", quality=QUALITY, method=4)
    return f"data:image/webp;base64,{base64.b64encode(small.getvalue()).decode()}"


def strip(result: Result, label: str) -> Markup:
    """A row's picture: kNN on moved samples from 0 to 100 %, h with its interval, raw input, chance."""
    h, raw = knn(result, label, "h", MOVED), knn(result, label, "raw", MOVED)
    parts = [Markup('<line x1="0" x2="100%" y1="50%" y2="50%" stroke="var(--line)" stroke-width="2"/>')]
    line = Markup('<line x1="{:.1f}%" x2="{:.1f}%" y1="{}" y2="{}" stroke="var({})" stroke-width="{}"/>')
    disc = Markup('<circle cx="{:.1f}%" cy="50%" r="5" fill="var({})" stroke="var({})" stroke-width="2"/>')
    if h is not None and h.chance is not None:
        parts.append(line.format(100 * h.chance, 100 * h.chance, "20%", "80%", "--muted", 2))
    if raw is not None and raw.accuracy is not None:
        parts.append(disc.format(100 * raw.accuracy, "--page", "--muted"))
    if h is not None and h.accuracy is not None:
        if h.low is not None and h.high is not None:
            parts.append(line.format(100 * h.low, 100 * h.high, "50%", "50%", "--blue", 4))
        parts.append(disc.format(100 * h.accuracy, "--blue", "--blue"))
    words = "kNN on moved samples: chance, raw input and h on a line from 0 to 100 %"
    return Markup('<svg class="strip" role="img" aria-label="{}">{}</svg>').format(words, Markup("").join(parts))
