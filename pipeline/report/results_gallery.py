"""What the stage gallery leaves, as far as the report reads it: maps, neighbours, lists, and sheets of thumbnails.

Whatever points to something else (a cell, a class) is held to be there when it is read, so the page can rely on it.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field, model_validator

from pipeline.report.results import Part


class Sheet(Part):
    """A sheet of equal cells, from left to right, then down; sizes in pixels."""

    columns: int
    width: int
    height: int
    count: int

    @property
    def rows(self) -> int:
        """Rows of cells."""
        return -(-self.count // max(1, self.columns))


class Placed(Part):
    """Places of the samples on a map, in [-1, 1]; ``shares`` of variance, or a perplexity."""

    points: tuple[tuple[float, float], ...]
    shares: tuple[float, float] | None = None
    perplexity: float | None = None


class Labelled(Part):
    """One label column of the samples on a map: classes and codes, or numbers."""

    classes: tuple[str, ...] = ()
    codes: tuple[int, ...] = ()
    values: tuple[float | None, ...] = ()


class Map(Part):
    """Both maps of a sample of a split; ``note`` says why there is none."""

    layer: str
    split: str
    of: int
    column: str | None
    rows: tuple[int, ...]
    principal: Placed | None
    nearby: Placed | None
    labels: dict[str, Labelled]
    note: str = ""

    @model_validator(mode="after")
    def _fits(self) -> Map:
        for placed in (self.principal, self.nearby):
            if placed is not None and len(placed.points) != len(self.rows):
                raise ValueError("a map does not have a place for each sample")
        for name, column in self.labels.items():
            if len(column.codes or column.values) != len(self.rows):
                raise ValueError(f"{name} does not have a label for each sample")
            if column.codes and not 0 <= min(column.codes) <= max(column.codes) < len(column.classes):
                raise ValueError(f"{name} holds other codes than those of its classes")
        return self


class Neighbour(Part):
    """One training sample next to a query."""

    cell: int
    row: int
    code: int | None
    cosine: float


class Query(Part):
    """One test sample, and what lies nearest on each layer."""

    cell: int
    row: int
    code: int | None
    layers: dict[str, tuple[Neighbour, ...]]


class Nearest(Part):
    """The queries; ``column`` tells who is of their class."""

    column: str | None
    classes: tuple[str, ...]
    among: int
    queries: tuple[Query, ...]
    note: str = ""


class Sample(Part):
    """One sample of a list."""

    cell: int
    split: str
    row: int
    name: str = ""
    labels: dict[str, str] = Field(default_factory=dict)


class Entry(Part):
    """One entry of a list: a sample or a pair, with its figures."""

    figures: dict[str, float]
    samples: tuple[Sample, ...]
    column: str = ""
    label: str = ""
    voted: str = ""


class Sheets(Part):
    """The sheet of the maps' samples, and that of all others."""

    map: Sheet
    pictures: Sheet


class Gallery(Part):
    """gallery/NAME/gallery.json."""

    map: Map
    nearest: Nearest
    lists: dict[str, tuple[Entry, ...]]
    sheets: Sheets

    @model_validator(mode="after")
    def _cells(self) -> Gallery:
        dots, pictures = self.sheets.map, self.sheets.pictures
        if len(self.map.rows) != dots.count or any(not 0 <= cell < pictures.count for cell in self._shown()):
            raise ValueError("a picture is not on its sheet")
        if not all(each.count == 0 or min(each.columns, each.width, each.height) > 0 for each in (dots, pictures)):
            raise ValueError("a sheet has no size")
        classes = len(self.nearest.classes)
        if any(query.code is not None and not 0 <= query.code < classes for query in self.nearest.queries):
            raise ValueError("a query is of a class that there is not")
        return self

    def _shown(self) -> Iterator[int]:
        for query in self.nearest.queries:
            yield query.cell
            yield from (each.cell for found in query.layers.values() for each in found)
        for entries in self.lists.values():
            yield from (each.cell for entry in entries for each in entry.samples)
