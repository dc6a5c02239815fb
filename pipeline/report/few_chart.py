"""Accuracy over the share of labels: what a linear probe of each layer reads when few samples have one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.report import charts
from pipeline.report.charts import BLUE, INK, MUTED
from pipeline.report.results import ProbeRow

LINES = {"h": (BLUE, "-", "o"), "raw": (MUTED, "-", "s"), "untrained": (INK, (0, (2, 2)), "^")}
"""Colour, dashes and sign of each layer, which tell it without colour too."""


def few_chart(rows: Mapping[str, Sequence[tuple[float, ProbeRow]]], chance: float | None) -> str:
    """One line a layer, with intervals.

    Args:
        rows: layer to (share of the labels in percent, row), of at least two shares.
    """

    def draw(axes: Any) -> None:
        shares = sorted({share for found in rows.values() for share, _ in found})
        ends = []
        for layer, found in rows.items():
            colour, style, marker = LINES[layer]
            known = [(share, row) for share, row in sorted(found, key=lambda pair: pair[0]) if row.accuracy is not None]
            places = [share for share, _ in known]
            heights = [100 * row.accuracy for _, row in known if row.accuracy is not None]
            axes.plot(places, heights, color=colour, linestyle=style, marker=marker, markersize=4.5, linewidth=1.5)
            for share, row in known:
                if row.low is not None and row.high is not None:
                    axes.plot([share] * 2, [100 * row.low, 100 * row.high], color=colour, linewidth=1, alpha=0.6)
            if heights:
                ends.append((heights[0], places[0], layer, colour))
        for place, (height, share, layer, colour) in enumerate(sorted(ends)):
            apart = 9 * (place - (len(ends) - 1) / 2)
            axes.annotate(layer, (share, height), (-7, apart), **BESIDE, color=colour)
        if chance is not None:
            axes.axhline(100 * chance, color=MUTED, linestyle=(0, (1, 3)), linewidth=1)
        axes.set_xscale("log")
        axes.minorticks_off()
        axes.set_xticks(shares)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_xlim(shares[0] / (shares[-1] / shares[0]) ** 0.36, shares[-1] * 1.15)
        axes.set_ylim(0, 104)
        charts.name_axes(axes, "labels given, %", "accuracy, %")

    return charts.as_svg(draw, "Accuracy of a linear probe by the share of labels that it is given")


BESIDE = {"textcoords": "offset points", "ha": "right", "va": "center", "fontsize": 10}
