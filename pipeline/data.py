"""A data set as it is declared: specs/data/NAME.yaml. Many spaces may share one."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from pipeline.images import Input
from pipeline.sources import ColumnKind, Source
from pipeline.spec import Rule, Spec, nearest


class HashSplit(Spec):
    """Which records are kept for testing, where the source does not say: a function of each record's name and the seed,
    so that no record changes sides when others are added."""

    test: float = Field(gt=0, lt=1)
    """share of the records, on average"""
    seed: int = Field(ge=0, lt=2**63)


class DataSpec(Spec):
    """One data set: where its pictures come from, their canvas, their split, and the labels that are kept."""

    source: Source
    input: Input
    split: HashSplit | None
    """null exactly where the source has its own"""
    labels: tuple[str, ...]
    """the label columns that are kept, of those that the source has"""

    def rules(self) -> Iterator[Rule]:
        known = self.source.columns()
        for position, name in enumerate(self.labels):
            if name not in known:
                yield f"labels[{position}]", f"no such column; {nearest(name, known)}" if known else "must be []"
            elif name in self.labels[:position]:
                yield f"labels[{position}]", "named twice"
        if self.source.splits_itself and self.split is not None:
            yield "split", "must be null: the source has its own split, so this would be silently unused"
        if not self.source.splits_itself and self.split is None:
            yield "split", "must be given, as {test: 0.2, seed: 0}: the source has no split of its own"

    def columns(self) -> dict[str, ColumnKind]:
        """Name and kind of every label column that is kept; known before any data is read."""
        known = self.source.columns()
        return {name: known[name] for name in self.labels}
