"""Floor 1: measures of a space's geometry, and the thresholds that were declared for them before the run.

A measure is a pure function of arrays, one idea a file; ``judge`` compares measures with thresholds and computes none.
The names that a threshold may use are closed: MEASURES, ``MEASURE.COLUMN.LAYER`` for a measure of BY_COLUMN,
``probe.COLUMN.PROBE.LAYER`` (with ``.view0`` for the test images moved by the declared invariances), and those of
``achieved``, about what a space does with transformations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from pipeline.audit import achieved
from pipeline.audit import probed as probes
from pipeline.spec import Rule, Spec, digest, nearest

LAYERS = ("h", "z")
GEOMETRY = {
    "positive_similarity": (-1.0, 1.0),
    "negative_similarity": (-1.0, 1.0),
    "overlap": (0.0, 1.0),
    "d_prime": (float("-inf"), float("inf")),
    "nearer_negatives": (0.0, 1.0),
    "alignment": (0.0, 4.0),
    "uniformity": (-8.0, 0.0),
    "info_nce_bound": (float("-inf"), float("inf")),
    "effective_rank": (1.0, float("inf")),
    "participation_ratio": (1.0, float("inf")),
    "dimensions_99": (0.0, 1.0),
    "rankme": (1.0, float("inf")),
    "anisotropy": (-1.0, 1.0),
    "hubness": (float("-inf"), float("inf")),
    "antihubs": (0.0, 1.0),
    "local_dimensions": (0.0, float("inf")),
    "local_dimensions_low": (0.0, float("inf")),
}
"""Measures of one layer, with the range in which their values lie."""
LOSS = "loss_below_log_k"
PURITY = "neighbour_purity"
BY_COLUMN = {
    PURITY: (0.0, 1.0),
    "false_negatives": (0.0, 1.0),
    "cluster_nmi": (0.0, 1.0),
    "cluster_ari": (-1.0, 1.0),
    "class_effective_rank": (1.0, float("inf")),
}
"""Measures of one layer for each column of classes, with the range in which their values lie."""
MEASURES = (*(f"{measure}.{layer}" for measure in GEOMETRY for layer in LAYERS), LOSS)


def column_of(measure: str) -> str | None:
    """The label column in a measure's name (a column's own name may hold dots), or None if the name has none."""
    read = probes.probed(measure)
    if read is not None:
        return read.column
    parts = measure.split(".")
    if parts[0] in BY_COLUMN and len(parts) >= 3 and parts[-1] in LAYERS:
        return ".".join(parts[1:-1]) or None
    return achieved.column_of(measure)


def range_of(measure: str) -> tuple[float, float] | None:
    """The range in which a measure's values lie, or None if there is no measure of that name."""
    if measure == LOSS:
        return float("-inf"), float("inf")
    if measure in MEASURES:
        return GEOMETRY[measure.rpartition(".")[0]]
    within = achieved.range_of(measure) or probes.range_of(measure)
    if within is not None:
        return within
    return BY_COLUMN.get(measure.partition(".")[0]) if column_of(measure) else None


def nearest_measure(name: str) -> str:
    """The clause that offers the nearest name of a measure."""
    parts = name.split(".")
    column = parts[1] if len(parts) > 2 else "COLUMN"
    labelled = [f"{measure}.{column}.{layer}" for measure in BY_COLUMN for layer in LAYERS]
    others = achieved.examples(column, parts[2] if len(parts) > 3 else column)
    return nearest(name, [*MEASURES, *labelled, *probes.examples(column), *others])


class Threshold(Spec):
    """What one measure must reach; exactly one of the two bounds is given."""

    measure: str
    at_least: float | None = None
    """Passed if the whole interval lies at or above it."""
    at_most: float | None = None
    """Passed if the whole interval lies at or below it."""

    def rules(self) -> Iterator[Rule]:
        within = range_of(self.measure)
        if within is None:
            yield "measure", f"unknown measure; {nearest_measure(self.measure)}"
        if (self.at_least is None) == (self.at_most is None):
            yield "", "needs exactly one of at_least and at_most"
        elif within is not None:
            side = "at_least" if self.at_most is None else "at_most"
            bound = self.at_least if self.at_most is None else self.at_most
            if bound is not None and not within[0] <= bound <= within[1]:
                yield side, f"{self.measure} lies between {within[0]:g} and {within[1]:g}; give a value in that range"


class Acceptance(Spec):
    """A threshold whose failure is accepted; export then goes on and the card carries the reason."""

    measure: str
    reason: Annotated[str, Field(min_length=1)]


class Audit(Spec):
    """The section ``audit`` of a spec: how much is measured, and what the measures must reach."""

    samples: Annotated[int, Field(ge=2)]
    """Test rows whose pairs of views are measured, at most; the time of all measures of pairs grows with its square."""
    neighbours: Annotated[int, Field(ge=1)]
    """Nearest rows of the test split that neighbour purity, as a threshold may name it, and hubness look at."""
    purity_at: Annotated[tuple[Annotated[int, Field(ge=1, le=1000)], ...], Field(min_length=1)]
    """Further numbers of nearest rows at which purity is told; the largest is the neighbourhood of local dimensions."""
    thresholds: tuple[Threshold, ...]
    accept: tuple[Acceptance, ...]

    def rules(self) -> Iterator[Rule]:
        if list(self.purity_at) != sorted(set(self.purity_at)):
            yield "purity_at", f"must rise; write {sorted(set(self.purity_at))}"
        seen: dict[tuple[str, bool], int] = {}
        for position, threshold in enumerate(self.thresholds):
            first = seen.setdefault((threshold.measure, threshold.at_most is None), position)
            if first != position:
                yield f"thresholds[{position}].measure", f"has the same bound in thresholds[{first}]; delete one"
        for measure in {threshold.measure for threshold in self.thresholds}:
            bounds = [threshold for threshold in self.thresholds if threshold.measure == measure]
            low = max((each.at_least for each in bounds if each.at_least is not None), default=float("-inf"))
            high = min((each.at_most for each in bounds if each.at_most is not None), default=float("inf"))
            if low > high:
                yield "thresholds", f"{measure} cannot be at least {low:g} and at most {high:g}"
        for position, acceptance in enumerate(self.accept):
            names = [threshold.measure for threshold in self.thresholds]
            if acceptance.measure not in names:
                remedy = f"no threshold has this measure; {nearest(acceptance.measure, names)}"
                yield f"accept[{position}].measure", remedy
            if acceptance.measure in [earlier.measure for earlier in self.accept[:position]]:
                yield f"accept[{position}].measure", "accepted twice; delete one"

    def columns(self) -> Iterator[tuple[str, str]]:
        """Yield (dotted path, label column) of every threshold whose measure names a column."""
        for position, threshold in enumerate(self.thresholds):
            column = column_of(threshold.measure)
            if column is not None:
                yield f"thresholds[{position}].measure", column

    def probed(self) -> Iterator[tuple[str, probes.Probed]]:
        """Yield (dotted path, column and probe) of every threshold on what a probe reads."""
        for position, threshold in enumerate(self.thresholds):
            read = probes.probed(threshold.measure)
            if read is not None:
                yield f"thresholds[{position}].measure", read

    def transformations(self) -> Iterator[tuple[str, str]]:
        """Yield (dotted path, transformation) of every threshold whose measure names one."""
        for position, threshold in enumerate(self.thresholds):
            name = achieved.transformation_of(threshold.measure)
            if name is not None:
                yield f"thresholds[{position}].measure", name

    def preserved(self) -> Iterator[tuple[str, str]]:
        """Yield (dotted path, name) of every threshold on how well something that is preserved is read."""
        for position, threshold in enumerate(self.thresholds):
            name = achieved.readable_of(threshold.measure)
            if name is not None and threshold.measure.startswith(f"{achieved.PRESERVED}."):
                yield f"thresholds[{position}].measure", name

    def fingerprint(self) -> str:
        """SHA-256 of the thresholds alone: what was demanded, before any of it was measured."""
        return digest([threshold.model_dump(mode="json") for threshold in self.thresholds])
