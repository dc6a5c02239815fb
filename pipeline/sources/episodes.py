"""Long tables: a row a time step, many episodes in one Parquet or CSV file (or several), and a sample an episode.

An episode is handed over whole, so that no window crosses from one into another, and its two sides are one split. The
table is read twice: first which row is each episode's last, then the values, so that episodes may lie in any order and
mixed row by row, and what is held is a batch of rows and the episodes that have begun and not ended. Every episode is a
record or is refused with its reason; nothing is filled, and nothing is read out of the order of time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from pipeline.samples import Unreadable
from pipeline.series.decoding import VALUES
from pipeline.series.narrowing import narrowed
from pipeline.sources.episode import Begun, Told, in_order, npy
from pipeline.sources.manifest import WORDS
from pipeline.sources.names import existing, leaves, printable
from pipeline.sources.record import ColumnKind, Item, Record, Refused, Split
from pipeline.sources.steps import Table
from pipeline.sources.webdataset import label_of
from pipeline.spec import Refusal, Rule, Spec, nearest


class Episodes(Spec):
    """Series in a long table. Its channels are ``input.names``: columns, of Parquet also columns of lists."""

    kind: Literal["episodes"]
    file: str | None = Field(min_length=1)
    """Parquet or CSV under the raw path, or a pattern as data/*.parquet of one table's files; null: the raw path"""
    episode: str = Field(min_length=1)
    """the column that tells the episodes apart; it names the samples"""
    time: str | None = Field(min_length=1)
    """the column of times (numbers or dates), by which an episode's rows are put in order; null: they are in order"""
    uneven: float | None = Field(ge=0)
    """an episode is refused where a step of time differs from its median step by more than this share of it; null: none
    is, as where ``time`` is"""
    classes: tuple[str, ...]
    """label columns of classes, each of one value within an episode; groups too"""
    numbers: tuple[str, ...]
    """label columns of numbers, likewise"""
    split: str | None = Field(min_length=1)
    """the column that says train or test; null: a share is kept for testing (``split``)"""
    embedded: ClassVar[bool] = False

    @property
    def splits_itself(self) -> bool:
        """Whether the source says what is for testing."""
        return self.split is not None

    def rules(self) -> Iterator[Rule]:
        if self.file is not None and leaves(self.file):
            yield "file", "must lie under the raw path: neither absolute nor with '..'"
        if self.time is None and self.uneven is not None:
            yield "uneven", "must be null, since time is: no step has a length"
        seen = {self.episode: "episode"}
        for place, name in (("time", self.time), ("split", self.split)):
            if name is not None and name in seen:
                yield place, f"is the column of {seen[name]} already"
            seen.setdefault(name or "", place)
        for place, names in (("classes", self.classes), ("numbers", self.numbers)):
            for position, name in enumerate(names):
                if name in seen:
                    yield f"{place}[{position}]", f"is the column of {seen[name]} already"
                seen.setdefault(name, place)

    def columns(self) -> dict[str, ColumnKind]:
        """Name and kind of every label column."""
        return {**dict.fromkeys(self.classes, "class"), **dict.fromkeys(self.numbers, "number")}

    def taken(self) -> dict[str, str]:
        """The columns that cannot be channels: what each is. A label among the channels would be read off."""
        named = {"episode": self.episode, "split": self.split}
        return {
            **{name: place for place, name in named.items() if name is not None},
            **{name: f"a label ({kind})" for name, kind in self.columns().items()},
        }

    def count(self) -> int | None:
        """How many episodes there are: not known before the table is read."""
        return None

    def records(self, raw: Path | None, names: Sequence[str] | None = None) -> Iterator[Item]:
        """Yield every episode, named as its column says, as an .npy of (steps, channels), in the order of their ends.

        Args:
            raw: the raw path.
            names: the channels; None: every column that is nothing else.

        Raises:
            Refusal: no such file or column, a damaged file, or channels that are no numbers.
        """
        labels = (*self.columns(), *([self.split] if self.split else []))
        table = Table(self.files(raw), self.episode, self.time, labels, None if names is None else tuple(names))
        ends, nameless = _ends(table)
        begun: dict[str, Begun] = {}
        told = Told()
        row = 0
        for steps in table.steps():
            for name, rows in _by_episode(steps.episodes):
                begun.setdefault(name, Begun(labels)).add(steps, np.array(rows))
            row += len(steps.episodes)
            for name in sorted((name for name in begun if ends[name] < row), key=ends.__getitem__):
                yield self._item(name, begun.pop(name), table, told)
        yield from told.notes(self.episode, self.time, self.uneven, nameless)

    def files(self, raw: Path | None) -> list[Path]:
        """The files of the table. Raises Refusal."""
        if raw is None:
            raise Refusal("a table of episodes needs a raw path; give it in specs/index.yaml")
        root = existing(raw)
        if self.file is None and root.is_file():
            return [root]
        if self.file is None:
            raise Refusal(f"{raw}: is a folder; name its table in source.file, as episodes.parquet or *.parquet")
        if root.is_file():
            raise Refusal(f"{raw}: is a file; set source.file to null, or give the folder that holds '{self.file}'")
        if (root / self.file).is_file():
            return [root / self.file]
        inside = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
        found = [root / name for name in inside if fnmatch(name, self.file)]
        if not found:
            raise Refusal(f"{raw}/{self.file}: no such file; {nearest(self.file, inside)}")
        return found

    def _item(self, name: str, episode: Begun, table: Table, told: Told) -> Record | Refused:
        """An episode that is whole: a record, or why it is none."""
        for column, found in episode.labels.items():
            if len(found) > 1:
                shown = " and ".join(sorted("nothing" if value is None else str(value) for value in found)[:3])
                what = "split changes" if column == self.split else "label changes"
                return Refused(name, f"{what} inside the episode", f"{column}: {shown}")
        split: Split | None = None
        if self.split is not None:
            (word,) = episode.labels[self.split]
            split = WORDS.get(str(word).strip().lower())
            if split is None:
                return Refused(name, "neither train nor test in the table", f"{self.split}: {word}")
        if episode.too_large:
            return Refused(name, "too large", f"{episode.count} steps of {episode.width}, limit {VALUES} values", split)
        values, times = np.concatenate(episode.values), None
        if self.time is not None:
            times = np.concatenate(episode.times)
            order = in_order(times, self.time, self.uneven)
            if isinstance(order, Unreadable):
                return Refused(name, order.reason, order.detail, split)
            if order is not None:
                values, times = values[order], times[order]
            told.step(name, times, order is not None)
        if not np.isfinite(values).all():
            return Refused(name, *_hole(values, table, self.time, times), split)
        try:
            kept = narrowed(values.T, table.channel).T
        except Unreadable as fault:
            return Refused(name, fault.reason, fault.detail, split)
        kinds = self.columns()
        labels = {column: label_of(next(iter(episode.labels[column])), kind) for column, kind in kinds.items()}
        known = {column: label for column, label in labels.items() if label is not None}
        return Record(name, npy(kept), known, split, array=True)


def _ends(table: Table) -> tuple[dict[str, int], int]:
    """The last row of each episode, and how many rows are of none."""
    ends: dict[str, int] = {}
    nameless = start = 0
    for episodes in table.named_rows():
        for name, rows in _by_episode(episodes):
            ends[name] = start + rows[-1]
            nameless -= len(rows)
        nameless, start = nameless + len(episodes), start + len(episodes)
    return ends, nameless


def _by_episode(episodes: Sequence[Any]) -> Iterator[tuple[str, list[int]]]:
    """Yield (episode, its rows in rising order); rows of none are left out."""
    names: dict[Any, str | None] = {}
    found: dict[str, list[int]] = {}
    for row, value in enumerate(episodes):
        if value not in names:
            name = label_of(value, "class")
            names[value] = printable(name) if isinstance(name, str) else None
        told = names[value]
        if told is not None:
            found.setdefault(told, []).append(row)
    yield from found.items()


def _hole(
    values: npt.NDArray[np.floating[Any]], table: Table, time: str | None, times: npt.NDArray[Any] | None
) -> tuple[str, str]:
    """The first value that is missing or infinite (reason, detail)."""
    step, channel = (int(place) for place in np.argwhere(~np.isfinite(values))[0])
    where = f"step {step}" if times is None else f"{time} = {times[step]}"
    missing = bool(np.isnan(values[step, channel]))
    return "missing value" if missing else "not finite", f"{table.channel(channel)} at {where}"
