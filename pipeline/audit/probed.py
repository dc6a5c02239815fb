"""Names of what the probes read, ``probe.COLUMN.PROBE.LAYER``, and the ranges in which their values lie.

PROBE is knn, linear or few_N (the linear probe with N % of the labels) for a column of classes, r2 or mae for a column
of numbers. LAYER is h, z, raw or untrained. ``.view0`` behind it: of the test images moved by the declared invariances.
"""

from __future__ import annotations

import re
from typing import NamedTuple

LAYERS = ("h", "z", "raw", "untrained")
OF_CLASSES, OF_NUMBERS = ("knn", "linear"), ("r2", "mae")
FEW = re.compile(r"few_([1-9][0-9]?)")


class Probed(NamedTuple):
    """What a name says: its label column (whose own name may hold dots) and its probe."""

    column: str
    probe: str

    @property
    def kind(self) -> str:
        """The kind of column that such a probe reads."""
        return "number" if self.probe in OF_NUMBERS else "class"

    @property
    def percent(self) -> int | None:
        """% of the labels that the probe is given; None: all."""
        few = FEW.fullmatch(self.probe)
        return int(few[1]) if few else None


def probed(measure: str) -> Probed | None:
    """The column and probe in a measure's name, or None if it is no such name."""
    first, *column = measure.removesuffix(".view0").split(".")
    if first != "probe" or len(column) < 3 or column.pop() not in LAYERS:
        return None
    found = Probed(".".join(column[:-1]), column[-1])
    known = found.probe in OF_CLASSES + OF_NUMBERS or found.percent is not None
    return found if known and found.column else None


def range_of(measure: str) -> tuple[float, float] | None:
    """The range of a measure of these names, or None if it is none of them."""
    found = probed(measure)
    ranges = {"r2": (float("-inf"), 1.0), "mae": (0.0, float("inf"))}
    return None if found is None else ranges.get(found.probe, (0.0, 1.0))


def examples(column: str) -> list[str]:
    """Every name of a column, with the usual few labels."""
    probes = (*OF_CLASSES, "few_1", "few_10", *OF_NUMBERS)
    names = [f"probe.{column}.{probe}.{layer}" for probe in probes for layer in LAYERS]
    return [*names, *(f"{name}.view0" for name in names)]
