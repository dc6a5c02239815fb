"""Roles: which views of a sample there are, and what each of them goes through.

Two views alike (SimCLR, Chen et al. 2020), two that differ (BYOL, Grill et al. 2020, appendix B), two of the whole and
several of small parts (multi-crop: Caron et al. 2020, arXiv:2006.09882, section 3.4), or one each of two rows that a
column makes partners (two slides of a patient, two photographs of a place).

Every view has a number, which is part of its key, so views of all roles are drawn independently.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from pipeline.keys import Keys
from pipeline.samples import Size
from pipeline.spec import Rule, Spec
from pipeline.views import Invariance
from pipeline.views.image_crop import ResizedCrop


@dataclass(frozen=True)
class Role:
    """Views that go through the same invariances."""

    name: str
    views: tuple[int, ...]
    """Their numbers."""
    invariances: tuple[Invariance, ...]
    """In order of application."""
    scale: float = 1.0
    """Side of the view, relative to the canvas."""

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Pixels of a view on a canvas of ``height`` x ``width``."""
        return max(1, round(height * self.scale)), max(1, round(width * self.scale))

    def of(self, size: Size) -> Size:
        """The size of a view of samples that fill ``size``."""
        return size if self.scale == 1.0 else self.size(*size)

    def called(self, view: int) -> str:
        """What one of its views is called: the role, and which of its views where there are several."""
        return self.name if len(self.views) == 1 else f"{self.name} {self.views.index(view) + 1}"


class Pair(Spec):
    """Two views alike."""

    kind: Literal["pair"]

    @property
    def reads(self) -> tuple[str, ...]:
        """The label columns that the views are made by: none."""
        return ()

    def roles(self, shared: tuple[Invariance, ...]) -> tuple[Role, ...]:
        """One role of two views."""
        return (Role("view", (0, 1), shared),)


class Asymmetric(Spec):
    """Two views that differ: each goes through the shared invariances, then its own."""

    kind: Literal["asymmetric"]
    first: tuple[Invariance, ...]
    """What the first view goes through after the shared ones."""
    second: tuple[Invariance, ...]
    """What the second view goes through after the shared ones."""

    def rules(self) -> Iterator[Rule]:
        if self.first == self.second:
            yield "second", "the same as first, so the views do not differ; use {kind: pair}"

    @property
    def reads(self) -> tuple[str, ...]:
        """The label columns that the views are made by: none."""
        return ()

    def roles(self, shared: tuple[Invariance, ...]) -> tuple[Role, ...]:
        """Two roles of one view each."""
        return Role("first", (0,), shared + self.first), Role("second", (1,), shared + self.second)


class MultiCrop(Spec):
    """Two global views, and smaller local ones of small parts. All are anchors; the global views are the candidates."""

    kind: Literal["multi_crop"]
    global_crop: ResizedCrop
    """What the global views are cut by, before the shared invariances."""
    local_crop: ResizedCrop
    """What the local views are cut by, before the shared invariances."""
    local_views: int = Field(ge=1, le=32)
    """Local views of a sample."""
    local_scale: float = Field(gt=0, lt=1)
    """Side of a local view, relative to the canvas (96 of 224 pixels in the paper: 0.4286)."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The label columns that the views are made by: none."""
        return ()

    def roles(self, shared: tuple[Invariance, ...]) -> tuple[Role, ...]:
        """The global views, then the local ones."""
        local = tuple(range(2, 2 + self.local_views))
        return (
            Role("global", (0, 1), (self.global_crop, *shared)),
            Role("local", local, (self.local_crop, *shared), self.local_scale),
        )


class Partners(Spec):
    """Two different rows with the same value in a column: the first view is of the row itself, the second of another.

    A row without a partner is left out. Other rows of the same value are no candidates, neither positive nor negative.
    """

    kind: Literal["partners"]
    column: str
    """The label column whose equality makes partners, such as a patient, a place, a product."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The label columns that the views are made by."""
        return (self.column,)

    def roles(self, shared: tuple[Invariance, ...]) -> tuple[Role, ...]:
        """One role of two views."""
        return (Role("view", (0, 1), shared),)


ViewPlan = Annotated[Pair | Asymmetric | MultiCrop | Partners, Field(discriminator="kind")]
"""Which views of a sample there are."""


def with_partners(codes: np.ndarray) -> np.ndarray:
    """The rows whose value another row has as well: codes (N,) → rows, rising."""
    _, place, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return np.flatnonzero(counts[place] > 1)


class PartnerTable:
    """Who may be whose partner: rows that have the same value in a column of a whole split, codes (N,)."""

    def __init__(self, codes: np.ndarray):
        self.order = np.argsort(codes, kind="stable")
        self.place = np.empty(len(codes), dtype=np.int64)
        self.place[self.order] = np.arange(len(codes))
        self.first = np.searchsorted(codes[self.order], codes)
        self.count = np.searchsorted(codes[self.order], codes, side="right") - self.first

    def of(self, rows: np.ndarray, seed: int, epoch: int) -> np.ndarray:
        """For each of ``rows`` (n,) another row of its value, all equally likely: a function of (seed, epoch, row).

        Raises:
            ValueError: a row has none.
        """
        first, count = self.first[rows], self.count[rows]
        if len(rows) and count.min() < 2:
            raise ValueError(f"row {rows[count.argmin()]} has no partner")
        lot = Keys.of(seed, epoch, rows).uniform("partner").double().numpy()
        step = 1 + np.minimum((lot * (count - 1)).astype(np.int64), count - 2)  # 1 ... count - 1: never the row itself
        chosen: np.ndarray = self.order[first + (self.place[rows] - first + step) % count]
        return chosen
