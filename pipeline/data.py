"""A data set as it is declared: specs/data/NAME.yaml. Many spaces may share one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field

from pipeline.modalities import Contract
from pipeline.series import Series
from pipeline.sources import ColumnKind, Episodes, Item, Manifest, Source
from pipeline.spec import Rule, Spec, nearest


class HashSplit(Spec):
    """Which records are kept for testing, where the source does not say: a function of each record's name and the seed,
    so that no record changes sides when others are added. Exact copies are on one side. Where the source says it,
    ``{test: null, seed: null, group: COLUMN}`` has its split examined for groups on both sides."""

    test: float | None = Field(gt=0, lt=1)
    """share of the records (or groups), on average; null where the source or the manifest has its own split"""
    seed: int | None = Field(ge=0, lt=2**63)
    """null where test is"""
    group: str | None = None
    """column whose equal values are never on both sides, as a patient; null: every record for itself. Of a split of the
    source's own it is told which are, and ``ledger.strict`` refuses it"""


class LedgerRules(Spec):
    """What may be amiss with the raw data before sharding refuses it; the ledger tells all of it in any case."""

    strict: bool = False
    """whether one refused file, damage or exact copy fails the stage (hidden and system files do not count)"""
    budget: float | None = Field(default=None, ge=0, le=1)
    """largest share of files that may be refused (hidden and system files do not count); null: any"""
    repeated: Literal["keep", "once", "refuse"] = "keep"
    """exact copies of a picture. keep: kept and told; once: the first is kept (one in test before one in train), and
    none where their labels differ; refuse: they fail the stage"""


class DataSpec(Spec):
    """One data set: where its samples come from, their canvas, their split, and the labels that are kept."""

    source: Source
    manifest: Manifest | None = None
    """a table of labels beside the pictures; null: there is none"""
    input: Contract
    split: HashSplit | None
    """null (or a group alone) exactly where the source or the manifest has its own"""
    labels: tuple[str, ...]
    """the label columns that are kept, of those that the source and the manifest have"""
    ledger: LedgerRules = LedgerRules()
    """what may be amiss with the raw data"""

    def rules(self) -> Iterator[Rule]:
        known = self._known()
        for position, name in enumerate(self.labels):
            if name not in known:
                yield f"labels[{position}]", f"no such column; {nearest(name, known)}" if known else "must be []"
            elif name in self.labels[:position]:
                yield f"labels[{position}]", "named twice"
        if isinstance(self.source, Episodes):
            yield from _of_episodes(self.source, self.input)
        if self.manifest is not None:
            if self.source.embedded:
                yield "manifest", "must be null: the source is embedded"
            for name in self.manifest.columns():
                if name in self.source.columns():
                    yield (
                        "manifest.classes",
                        f"the source has a column '{name}'; rename it, or set source.classes: null",
                    )
            if self.manifest.split is not None and self.source.splits_itself:
                yield "manifest.split", "must be null: the source has its own split, so this would be silently unused"
        own, split = self._splits_itself(), self.split
        if own and split is not None and (split.test, split.seed) != (None, None):
            remedy = "must be null, or {test: null, seed: null, group: COLUMN}: the source has its own split"
            yield "split", f"{remedy}, so this would be silently unused"
        if own and split is not None and (split.test, split.seed, split.group) == (None, None, None):
            yield "split", "must be null, or name a group: the source has its own split"
        if not own and (split is None or split.test is None or split.seed is None):
            yield "split", "must be given, as {test: 0.2, seed: 0}: the source has no split of its own"
        if self.split is not None and self.split.group is not None and known.get(self.split.group) != "class":
            classes = [name for name, kind in known.items() if kind == "class"]
            yield "split.group", f"no such column of classes; {nearest(self.split.group, classes)}"

    def columns(self) -> dict[str, ColumnKind]:
        """Name and kind of every label column that is kept (the group's too); known before any data is read."""
        known = self._known()
        group = [] if self.split is None or self.split.group is None else [self.split.group]
        return {name: known[name] for name in dict.fromkeys([*self.labels, *group])}

    def records(self, raw: Path | None) -> Iterator[Item]:
        """Every raw file: a record with its labels, or why it is none. Raises Refusal."""
        source = self.source
        if isinstance(source, Episodes):
            assert isinstance(self.input, Series)  # by the rules
            items = source.records(raw, self.input.names)
        else:
            items = source.records(raw)
        return iter(items) if self.manifest is None else self.manifest.joined(items, raw)

    def _known(self) -> dict[str, ColumnKind]:
        return {**self.source.columns(), **(self.manifest.columns() if self.manifest else {})}

    def _splits_itself(self) -> bool:
        return self.source.splits_itself or (self.manifest is not None and self.manifest.split is not None)


def _of_episodes(source: Episodes, canvas: Contract) -> Iterator[Rule]:
    """The rules between a long table and the contract that names its channels."""
    if not isinstance(canvas, Series):
        yield "input.kind", "must be series: the source is a table of time steps"
        return
    if canvas.layout != "time_first":
        yield "input.layout", "must be time_first: the source has a row a step, so this would be silently unused"
    taken = source.taken()
    for position, name in enumerate(canvas.names or ()):
        if name in taken:
            yield f"input.names[{position}]", f"is no channel: it is {taken[name]} of the source"
