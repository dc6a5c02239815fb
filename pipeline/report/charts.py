"""Charts as inline SVG: small, transparent, without ids that clash, in the page's own colours (light and dark).

Matplotlib draws them in placeholder colours that become CSS variables. Only fixed words stand in a chart; names from
users stay in the page, where they are escaped. The same arguments give the same bytes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipeline.report.results import ProbeRow

INK, MUTED, LINE, BLUE, ORANGE = "#0a0b01", "#0a0b02", "#0a0b03", "#0a0b04", "#0a0b05"
COLOURS = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    LINE: "var(--line)",
    BLUE: "var(--blue)",
    ORANGE: "var(--orange)",
}
POINTS = 400
"""A longer curve is drawn as this many means."""
SIZE = (4.1, 2.6)
"""Inches, at 72 points: drawn at about its printed size on a phone and in a column of a wide page."""


def thinned(values: Sequence[float], points: int = POINTS) -> list[float]:
    """At most ``points`` values: each the mean of an equal run of neighbours (the last run may be shorter)."""
    run = -(-len(values) // points)
    parts = [values[start : start + run] for start in range(0, len(values), run)]
    return [sum(part) / len(part) for part in parts]


def loss_chart(curve: Mapping[str, Sequence[float]]) -> str:
    """The loss of every step beside that of an encoder that tells nothing apart, where there is such a number."""

    def draw(axes: Any) -> None:
        steps = thinned(curve["step"])
        losses, chance = thinned(curve["loss"]), curve.get("starts_at", [])
        axes.plot(steps, losses, color=BLUE, linewidth=1.6)
        if chance:
            axes.plot(steps, thinned(chance), color=MUTED, linestyle=(0, (4, 3)), linewidth=1.2)
            axes.annotate("nothing told apart", (steps[-1], chance[-1]), (0, 5), **ABOVE, color=MUTED)
        axes.set_ylim(min(0.0, 1.15 * min(losses)), 1.15 * max([*chance, *losses, 1e-9]))
        name_axes(axes, "step", "loss, nats")

    return as_svg(draw, "Loss of every step")


def similarity_chart(curve: Mapping[str, Sequence[float]]) -> str:
    """The mean similarity of positives and of negatives, a point a step."""

    def draw(axes: Any) -> None:
        steps = thinned(curve["step"])
        for name, word, colour, style in (
            ("positive_similarity", "positives", BLUE, "-"),
            ("negative_similarity", "negatives", ORANGE, (0, (5, 1.5))),
        ):
            values = thinned(curve[name])
            axes.plot(steps, values, color=colour, linestyle=style, linewidth=1.6)
            axes.annotate(word, (steps[-1], values[-1]), (0, 5), **ABOVE, color=colour)
        low = min(thinned(curve["negative_similarity"]))
        axes.set_ylim(min(-0.1, low - 0.1), 1.15)
        name_axes(axes, "step", "mean similarity")

    return as_svg(draw, "Mean similarity of positives and of negatives at every step")


def course_chart(curve: Mapping[str, Sequence[float]], column: str, words: str, title: str) -> str:
    """One column of the curve that is at least 0."""

    def draw(axes: Any) -> None:
        values = thinned(curve[column])
        axes.plot(thinned(curve["step"]), values, color=BLUE, linewidth=1.6)
        axes.set_ylim(0, 1.15 * max([*values, 1e-9]))
        name_axes(axes, "step", words)

    return as_svg(draw, title)


def histogram_chart(counts: Mapping[str, Sequence[int]], low: float, high: float) -> str:
    """The distributions of the similarities of positives and of negatives, each scaled to its own peak."""

    def draw(axes: Any) -> None:
        for name, word, colour, height in (
            ("negative_similarity", "negatives", ORANGE, 3),
            ("positive_similarity", "positives", BLUE, 17),  # one line higher: the peaks may stand side by side
        ):
            heights = [count / max(1, *counts[name]) for count in counts[name]]
            edges = [low + (high - low) * edge / len(heights) for edge in range(len(heights) + 1)]
            axes.stairs(heights, edges, fill=True, color=colour, alpha=0.2, linewidth=0)
            axes.stairs(heights, edges, color=colour, linewidth=1.4)
            peak = edges[heights.index(max(heights))]
            centre = min(max(peak, low + 0.12 * (high - low)), high - 0.1 * (high - low))
            axes.annotate(word, (centre, 1), (0, height), **{**ABOVE, "ha": "center"}, color=colour)
        axes.set_ylim(0, 1.32)
        axes.set_xlim(low, high)
        axes.set_yticks([])
        axes.set_xticks([low, (low + high) / 2, high])
        axes.xaxis.set_major_formatter("{x:g}")
        name_axes(axes, "similarity", "share, scaled to its peak")

    return as_svg(draw, "Distributions of the similarities of positives and of negatives")


def spectrum_chart(spectra: Mapping[str, Sequence[float]]) -> str:
    """How much of the variance the first n directions of h and of z hold."""

    def draw(axes: Any) -> None:
        for layer, colour, style in (("h", BLUE, "-"), ("z", ORANGE, (0, (5, 1.5)))):
            if layer not in spectra:
                continue
            total, held = 0.0, []
            for share in spectra[layer]:
                total += share
                held.append(100 * total)
            axes.plot(range(1, len(held) + 1), held, color=colour, linestyle=style, linewidth=1.6)
            middle = next((n for n, value in enumerate(held) if value >= 60), len(held) - 1)
            axes.annotate(layer, (middle + 1, held[middle]), (7, -9), **{**ABOVE, "ha": "left"}, color=colour)
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:.0f}")
        axes.set_ylim(0, 108)
        name_axes(axes, "directions, largest first", "variance held, %")

    return as_svg(draw, "Cumulative spectrum of h and z")


def probe_chart(rows: Mapping[tuple[str, str], ProbeRow], chance: float | None) -> str:
    """Accuracy by layer: a ring for samples as they are, a disc for moved ones, with their intervals.

    Args:
        rows: (layer, split) to its row; layers h, z, raw, untrained, splits test and view0.
    """
    layers = [("h", "h"), ("z", "z"), ("raw", "raw input"), ("untrained", "untrained")]

    def draw(axes: Any) -> None:
        for position, (layer, _) in enumerate(layers):
            colour = BLUE if layer in ("h", "z") else MUTED
            for split, shift, face in (("test", 0.16, "none"), ("view0", -0.16, colour)):
                row = rows.get((layer, split))
                if row is None or row.accuracy is None:
                    continue
                height = -position + shift
                if row.low is not None and row.high is not None:
                    axes.plot([100 * row.low, 100 * row.high], [height] * 2, color=colour, linewidth=1.4)
                axes.plot(100 * row.accuracy, height, "o", color=colour, markerfacecolor=face, markersize=6)
        if chance is not None:
            axes.axvline(100 * chance, color=MUTED, linestyle=(0, (2, 3)), linewidth=1)
        axes.set_yticks([-position for position in range(len(layers))], [word for _, word in layers])
        axes.tick_params(axis="y", labelcolor=INK, labelsize=10)
        axes.set_ylim(-len(layers) + 0.45, 0.55)
        axes.set_xlim(0, 102)
        axes.grid(axis="y", visible=False)
        name_axes(axes, "accuracy, %", "")

    return as_svg(draw, "Accuracy by layer, on samples as they are and moved")


ABOVE = {"textcoords": "offset points", "ha": "right", "va": "bottom", "fontsize": 10}


def name_axes(axes: Any, below: str, left: str) -> None:
    """Words below and left of the axes."""
    axes.set_xlabel(below, color=MUTED)
    axes.set_ylabel(left, color=MUTED)


def as_svg(draw: Callable[[Any], None], words: str) -> str:
    """What ``draw`` puts on axes, as an element of a page; ``words`` say what it shows."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # whatever the user's own style
        matplotlib.rcParams.update({"svg.hashsalt": words, "svg.fonttype": "none", "text.parse_math": False})
        matplotlib.rcParams.update({"font.size": 9.5})
        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.add_subplot()
        axes.grid(axis="both", color=LINE, linewidth=0.6)
        axes.set_axisbelow(True)
        for side, spine in axes.spines.items():
            spine.set_visible(side == "bottom")
            spine.set_color(LINE)
        axes.tick_params(length=0, labelcolor=MUTED, labelsize=9)
        draw(axes)
        drawn = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(drawn, format="svg", transparent=True, metadata=nothing)
    return _inline(drawn.getvalue(), words)


def _inline(svg: str, words: str) -> str:
    """Matplotlib's file as an element of a page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r' id="(?!p[0-9a-f]{10}"|m[0-9a-f]{10}")[^"]*"', "", svg)  # ids that nothing refers to
    svg = re.sub(r"xlink:href", "href", svg)
    svg = re.sub(r" font-family: [^;\"]*;?| transform=\"rotate\(-0 [^\"]*\"", "", svg)
    svg = re.sub(r"(\d\.\d\d)\d+", r"\1", svg)
    box = re.search(r'viewBox="[^"]*"', svg)
    head = f'<svg class="chart" role="img" aria-label="{words}" {box.group() if box else ""}>'
    svg = re.sub(r"<svg[^>]*>", head, svg, count=1)
    for placeholder, colour in COLOURS.items():
        svg = svg.replace(placeholder, colour)
    return re.sub(r"\s*\n\s*", "\n", svg).strip()


def with_ids(svg: str, prefix: str) -> str:
    """The same chart with ``prefix`` before its ids, so that two charts of one page never share one."""
    return re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{prefix}", svg)
