"""The chart of what each invariance leaves of a label, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.check.findings import Finding
from pipeline.check.pictures import INK, MUTED, figure_of, save

LINE, BLUE, ORANGE = "#dfe0e3", "#0068ab", "#c05000"
MARKS = {"erased": ("o", 0.24), "merged": ("s", 0.0), "transported": ("^", -0.24)}
"""Mark and place in its row of each finding."""


def draw_kept(findings: Sequence[Finding], label: str, words: str, file: Path) -> None:
    """Write the chart of one label as PNG: a row an invariance, 100 % where nothing is lost.

    Args:
        words: how the label is called.
    """
    rows = [
        (each, each.figure, each.low, each.high)
        for each in findings
        if each.preserved == label and each.finding in MARKS and each.figure is not None
    ]
    kinds = list(dict.fromkeys((each.position, each.invariance) for each, *_ in rows))
    figure, axes = figure_of(6.4, 1.1 + 0.62 * len(kinds), 1, 1)
    place, left, right = axes[0][0], 0.0, 1.03
    for each, value, low, high in rows:
        mark, shift = MARKS[each.finding]
        height = shift - kinds.index((each.position, each.invariance))
        colour = ORANGE if each.verdict in ("fail", "warn", "accepted") else BLUE
        ends = value if low is None else low, value if high is None else high
        place.plot([100 * end for end in ends], [height] * 2, color=colour, linewidth=1.4)
        place.plot(100 * value, height, mark, color=colour, markersize=5)
        left, right = min(left, ends[0]), max(right, ends[1])
    for name, (mark, _) in MARKS.items():
        place.plot([], [], mark, color=MUTED, markersize=5, label=name)
    place.axvline(100, color=MUTED, linewidth=1, linestyle=(0, (2, 3)))
    place.set_yticks([-number for number in range(len(kinds))], [kind for _, kind in kinds])
    place.set_ylim(0.4 - len(kinds), 0.6)
    place.set_xlim(100 * left - 3, 100 * right + 2)
    place.set_xlabel(
        f"of what is known of {words}, above chance: % that is left", color=MUTED, fontsize=8.5, parse_math=False
    )
    place.tick_params(length=0, labelsize=8.5, labelcolor=INK)
    place.grid(axis="x", color=LINE, linewidth=0.6)
    for spine in place.spines.values():
        spine.set_visible(False)
    place.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, fontsize=8)
    save(figure, file)
