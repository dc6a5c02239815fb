"""What the audit leaves beside its measures, as far as the report reads it: geometry, transformations, curation lists.

Files that are not there, as of an earlier version, are told as such; what is there must have the form below.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from pipeline.report.results import Part


class Interval(Part):
    """A value with its 95 % interval; None where it could not be computed."""

    value: float | None
    low: float | None
    high: float | None


class Estimated(Interval):
    """The same with what it is of; ``note`` says why there is no value."""

    count: int | None = None
    note: str = ""
    chance: float | None = None


class Weighed(Part):
    """Gradient mass at one temperature."""

    temperature: float
    negatives: int
    effective_negatives: Estimated
    repulsion: Estimated
    same_label: dict[str, Estimated]


class AmongNearest(Part):
    """False negatives of one label column among an anchor's nearest negatives."""

    nearest: int
    chance: float | None
    among_nearest: Estimated


class Pairs(Part):
    """What was measured of pairs of views."""

    count: int
    note: str = ""
    false_negatives: dict[str, AmongNearest] = Field(default_factory=dict)
    temperatures: tuple[Weighed, ...] = ()


class ClassRank(Part):
    """What the rows of one class span."""

    name: str = Field(alias="class")
    count: int
    effective_rank: float | None
    participation_ratio: float | None
    note: str = ""


class Neighbourhoods(Part):
    """Dimensions of neighbourhoods, by quantile, beside those of rows drawn anywhere."""

    neighbours: int
    asked: int
    quantiles: dict[str, float] | None
    anywhere: float | None
    note: str = ""


class Near(Estimated):
    """Neighbour purity at one number of neighbours."""

    neighbours: int


class Purity(Part):
    """Neighbour purity of one label column, by the number of neighbours."""

    chance: float | None
    at: tuple[Near, ...]


class LayerGeometry(Part):
    """The structures of one layer."""

    purity: dict[str, Purity] = Field(default_factory=dict)
    pairs: Pairs | None = None
    classes: dict[str, tuple[ClassRank, ...]] = Field(default_factory=dict)
    neighbourhoods: Neighbourhoods | None = None


class Geometry(Part):
    """audit/NAME/geometry.json."""

    layers: dict[str, LayerGeometry]


class Kept(Interval):
    """How much of a label is read from transformed pictures, of what is read from untransformed ones."""

    before: float
    after: float
    chance: float


class Answer(Part):
    """How a layer answers to a transformation at one strength."""

    movement: Interval | None = None
    retrieval: Interval | None = None
    labels: dict[str, Kept] = Field(default_factory=dict)
    note: str = ""


class Point(Part):
    """One strength, as a share of the whole one; ``changed`` pictures were changed by it at all."""

    strength: float
    changed: int
    layers: dict[str, Answer] = Field(default_factory=dict)

    def movement(self, layer: str) -> float | None:
        """How far a layer moved, where it could be measured."""
        answer = self.layers.get(layer)
        return None if answer is None or answer.movement is None else answer.movement.value


class Transformation(Part):
    """One transformation at each of its strengths, weakest first; ``reason`` says why there is none."""

    name: str
    declared: bool
    transformation: dict[str, Any]
    points: tuple[Point, ...]
    reason: str | None


class LeftOut(Part):
    """A transformation that is no control."""

    name: str
    reason: str


class Parameter(Part):
    """What of a transformation is read from each layer: a skill, 0 nothing and 1 all."""

    parameter: str
    count: int
    skill: dict[str, Interval]
    gone: Interval


class Boundary(Part):
    """What of a declared transformation is readable from h, and no longer from z."""

    name: str
    parameters: tuple[Parameter, ...]
    reason: str | None
    sentence: str


class Readable(Part):
    """The skill at which one name is read from each layer; ``reason`` says why it is not."""

    name: str
    how: str
    layers: dict[str, Interval]
    reason: str | None


class Achieved(Part):
    """audit/NAME/achieved.json."""

    transformations: tuple[Transformation, ...]
    left_out: tuple[LeftOut, ...] = ()
    boundary: tuple[Boundary, ...] = ()
    preserved: tuple[Readable, ...] = ()
    detail: tuple[Readable, ...] = ()
    sentences: tuple[str, ...] = ()
    samples: dict[str, int] = Field(default_factory=dict)


class Listed(Part):
    """One curation list: how many entries it has, and what it is of or why there is none."""

    entries: int | None
    note: str


class Curation(Part):
    """audit/NAME/curation/lists.json."""

    lists: dict[str, Listed]
