"""The page: one HTML file without scripts or requests, written by jinja with everything escaped.

Every figure that stands in metrics.json is written by ``figure`` from that very mapping, in a ``data`` element with its
name and full value, so that page and file cannot differ.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from pipeline.report.collect import STAGES, Result
from pipeline.report.drawings import drawings
from pipeline.report.figures import (
    LAYERS,
    MOVED,
    UNMOVED,
    Figures,
    compared,
    gain_key,
    knn,
    labels,
    measure_key,
    probe_key,
    verdict,
)
from pipeline.report.forms import FORMS, count, measured
from pipeline.report.method import method
from pipeline.report.results import Finding

DASH = "–"
CHECKED = ("fail", "accepted", "warn", "inconclusive")
"""Verdicts of check that are told one by one, worst first."""
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
MEASURES = {
    "positive_similarity": "mean similarity of two views of one image",
    "negative_similarity": "mean similarity of views of different images",
    "alignment": "mean squared distance of two views of one image; 0 is perfect",
    "uniformity": "how evenly the sphere is covered; lower is more even",
    "effective_rank": "exponential of the spectrum's entropy: directions in use",
    "participation_ratio": "directions in use, dominated by the largest",
    "dimensions_99": "share of directions that hold 99 % of the variance",
    "neighbour_purity": "share of nearest neighbours with the same label",
    "loss_below_log_k": "log K minus the loss, nats",
}


def page(results: Sequence[Result], metrics: Mapping[str, Figures]) -> str:
    """The whole page as text.

    Args:
        results: the specs in the order of the page.
        metrics: name of a spec to its flat figures, as metrics.json holds them.
    """
    environment = Environment(
        loader=PackageLoader("pipeline.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(count=count, shown=shown, measured=measured, method=method)
    environment.globals.update(
        figure=lambda name, key, form="number": figure(metrics[name], key, form),
        data=data,
        badge=badge,
        knn=knn,
        labels=labels,
        compared=compared,
        verdict=verdict,
        probe_key=probe_key,
        measure_key=measure_key,
        gain_key=gain_key,
        section=section,
        listed=listed,
        strip=strip,
        refusals=refusals,
        alarms=alarms,
        coded=lambda picture: base64.b64encode(picture).decode(),
        unfinished=lambda result: [stage for stage in STAGES if result.stages[stage].state == "missing"],
        meaning=lambda measure: MEASURES.get(measure.partition(".")[0], ""),
        LAYERS=LAYERS,
        LAYER_WORDS={"h": "h", "z": "z", "raw": "raw pixels", "untrained": "untrained"},
        MOVED=MOVED,
        UNMOVED=UNMOVED,
        STAGES=STAGES,
        DASH=DASH,
    )
    drawn = [drawings(result, f"s{number}-") for number, result in enumerate(results)]
    views = [base64.b64encode(result.views).decode() for result in results]
    return environment.get_template("page.html").render(specs=list(zip(results, drawn, views, strict=True)))


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


def badge(word: str) -> Markup:
    """A verdict as a sign and a word."""
    sign, words = BADGES.get(word, ("", word))
    return Markup('<span class="badge {}"><span aria-hidden="true">{}</span> {}</span>').format(word, sign, words)


def strip(result: Result, label: str) -> Markup:
    """A row's picture: kNN on moved images from 0 to 100 %, h with its interval, raw pixels, chance."""
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
    words = "kNN on moved images: chance, raw pixels and h on a line from 0 to 100 %"
    return Markup('<svg class="strip" role="img" aria-label="{}">{}</svg>').format(words, Markup("").join(parts))


def refusals(result: Result) -> list[tuple[str, str, str]]:
    """Who was not allowed to run, by whom, and why: (stages, refusing stage, reason), each reason once."""
    found: dict[tuple[str, str], list[str]] = {}
    for stage in STAGES:
        status = result.stages[stage]
        if status.state == "refused":
            found.setdefault((status.by, status.reason), []).append(stage)
    return [(", ".join(stages), by, reason) for (by, reason), stages in found.items()]


def alarms(result: Result) -> list[Finding]:
    """What check did not pass, worst first."""
    rows = result.findings.rows if result.findings is not None else ()
    return [row for verdict in CHECKED for row in rows if row.verdict == verdict]


def section(content: Mapping[str, Any], *path: str) -> Any:
    """What stands at a path of a parsed spec, whatever the file's form; None where nothing does."""
    here: Any = content
    for step in path:
        here = here.get(step) if isinstance(here, Mapping) else None
    return here


def listed(content: Mapping[str, Any], *path: str) -> list[Any]:
    """The list at a path of a parsed spec; empty where there is none."""
    found = section(content, *path)
    return found if isinstance(found, list) else []


def shown(value: Any) -> str:
    """A declared variant in words: its kind, and its parameters behind it."""
    if not isinstance(value, Mapping):
        return str(value)
    rest = ", ".join(f"{key} {_plain(each)}" for key, each in value.items() if key != "kind")
    kind = str(value.get("kind", "")).replace("_", " ")
    return f"{kind} ({rest})" if rest and kind else kind or rest


def _plain(value: Any) -> str:
    return " to ".join(map(str, value)) if isinstance(value, list) and len(value) == 2 else str(value)
