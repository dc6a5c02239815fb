"""Who feels the gradient of a contrastive loss, temperature by temperature, as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.report import charts
from pipeline.report.charts import BLUE, MUTED, ORANGE
from pipeline.report.results_audit import Weighed


def mass_chart(rows: Sequence[Weighed], label: str | None, own: float | None) -> str:
    """Share of the negatives that are felt, and share of their weight that is on the anchor's own class.

    Args:
        label: the column that tells the class, or None.
        own: the temperature of training, or None.
    """
    felt = [(row.temperature, row.effective_negatives.value, row.negatives) for row in rows]

    def draw(axes: Any) -> None:
        points = [(temperature, 100 * value / of) for temperature, value, of in felt if value is not None]
        _line(axes, points, BLUE, "-")
        if points:
            axes.annotate("negatives felt", points[-1], (0, 5), **charts.ABOVE, color=BLUE)
        if label is not None:
            shares = [(row.temperature, row.same_label[label]) for row in rows if label in row.same_label]
            own_class = [(at, 100 * share.value) for at, share in shares if share.value is not None]
            _line(axes, own_class, ORANGE, (0, (5, 1.5)))
            if own_class:  # where the line is high: it falls with the temperature
                axes.annotate("on own class", own_class[0], (0, 5), **{**charts.ABOVE, "ha": "left"}, color=ORANGE)
            chance = next((share.chance for _, share in shares if share.chance is not None), None)
            if chance is not None:
                axes.axhline(100 * chance, color=MUTED, linestyle=(0, (2, 3)), linewidth=1)
        if own is not None:
            axes.axvline(own, color=MUTED, linewidth=1)
        axes.set_xscale("log")
        axes.minorticks_off()
        axes.set_xticks([row.temperature for row in rows][:: max(1, len(rows) // 4)])
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_ylim(0, 105)
        charts.name_axes(axes, "temperature", "%")

    return charts.as_svg(draw, "Negatives that are felt, and the weight on negatives of the own class, by temperature")


def _line(axes: Any, points: Sequence[tuple[float, float]], colour: str, style: Any) -> None:
    if points:
        places, heights = zip(*points, strict=True)
        axes.plot(places, heights, color=colour, linestyle=style, linewidth=1.6, marker="o", markersize=3)
