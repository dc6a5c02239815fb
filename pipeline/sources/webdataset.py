"""Your own webdataset shards: tars of ``KEY.EXT`` members, the picture beside its labels (``KEY.json``, ``KEY.cls``).

webdataset itself splits a name at its first dot and joins neighbours only, so that keys with dots are merged and mixed
orders fall apart. Here the last dot splits, and the members of a key may lie some way apart; a sample that lacks a part
is told. Nothing is ever unpickled: any other member is not opened.
"""

from __future__ import annotations

import json
import math
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from pipeline.sources.archive import members
from pipeline.sources.names import existing, leaves
from pipeline.sources.record import ColumnKind, Item, Record, Refused, Split
from pipeline.spec import Refusal, Rule, Spec, nearest

WINDOW = 64
"""samples whose parts are waited for"""

CLASS = "cls"
"""the member that holds a class's number, by webdataset's convention"""

LABELS = frozenset({"json", CLASS, "txt", "id", "index"})
"""extensions that are no pictures"""


@dataclass
class _Sample:
    """The members of one key so far."""

    pictures: list[Record] = field(default_factory=list)
    texts: dict[str, bytes] = field(default_factory=dict)


class WebDataset(Spec):
    """Pictures in webdataset shards."""

    kind: Literal["webdataset"]
    train: str = Field(min_length=1)
    """shards under the raw path, as train-*.tar"""
    test: str | None = Field(min_length=1)
    """shards under the raw path, as val-*.tar; null: a share of train is kept for testing (``split``)"""
    classes: tuple[str, ...]
    """label columns of classes: cls is the member of that name (a whole number), others are keys of the json"""
    numbers: tuple[str, ...]
    """label columns of numbers, keys of the json"""
    embedded: ClassVar[bool] = False

    @property
    def splits_itself(self) -> bool:
        """Whether the source says what is for testing."""
        return self.test is not None

    def rules(self) -> Iterator[Rule]:
        if self.train == self.test:
            yield "test", "must be other shards than train; null keeps a share of train for testing"
        for position, name in enumerate(self.numbers):
            if name in self.classes:
                yield f"numbers[{position}]", "is among the classes already"
        for name, pattern in (("train", self.train), ("test", self.test)):
            if pattern is not None and leaves(pattern):
                yield name, "must lie under the raw path: neither absolute nor with '..'"

    def columns(self) -> dict[str, ColumnKind]:
        """Name and kind of every label column."""
        return {**dict.fromkeys(self.classes, "class"), **dict.fromkeys(self.numbers, "number")}

    def count(self) -> int | None:
        """How many pictures there are: not known before the shards are read."""
        return None

    def records(self, raw: Path | None) -> Iterator[Item]:
        """Yield every sample of the shards, named SHARD/KEY.EXT: a record, or why it is none.

        Raises:
            Refusal: no shard, or one that is no tar.
        """
        for pattern, split in ((self.train, None if self.test is None else "train"), (self.test, "test")):
            for shard in [] if pattern is None else _shards(raw, pattern):
                yield from self._samples(shard, split)

    def _samples(self, shard: Path, split: Any) -> Iterator[Item]:
        waiting: OrderedDict[str, _Sample] = OrderedDict()
        seen: set[str] = set()
        for item in members(shard):
            if isinstance(item, Refused):
                yield Refused(f"{shard.name}/{item.name}", item.reason, item.detail)
                continue
            if not isinstance(item, Record):
                yield item
                continue
            key, extension = split_name(item.name)
            if item.name in seen:
                yield Refused(f"{shard.name}/{item.name}", "repeated name", "the first of that name was kept")
                continue
            seen.add(item.name)
            sample = waiting.setdefault(key, _Sample())
            if extension in LABELS:
                assert isinstance(item.content, bytes)
                sample.texts[extension] = item.content
            else:
                sample.pictures.append(item)
            while len(waiting) > WINDOW:
                yield self._sample(shard, split, *waiting.popitem(last=False))
        while waiting:
            yield self._sample(shard, split, *waiting.popitem(last=False))

    def _sample(self, shard: Path, split: Split | None, key: str, sample: _Sample) -> Record | Refused:
        if len(sample.pictures) != 1:
            name = sample.pictures[0].name if sample.pictures else f"{key}.{min(sample.texts)}"
            several = ", ".join(split_name(picture.name)[1] for picture in sample.pictures)
            reason = "several pictures of one key" if sample.pictures else "no picture"
            return Refused(f"{shard.name}/{name}", reason, several or "labels without a picture beside them")
        picture = sample.pictures[0]
        labels = dict(_labels(sample.texts, self.columns()))
        return Record(f"{shard.name}/{picture.name}", picture.content, labels, split)


def split_name(name: str) -> tuple[str, str]:
    """A member's key and its extension in small letters: split at the last dot of its last part."""
    folder, slash, last = name.rpartition("/")
    key, dot, extension = last.rpartition(".")
    return (folder + slash + key, extension.lower()) if dot and key else (name, "")


def label_of(value: Any, kind: ColumnKind) -> str | float | None:
    """A raw value as a class's name or a finite number; None where it is neither."""
    if kind == "class":
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        return str(value).strip() or None if isinstance(value, (str, int)) else None
    try:
        number = float(value) if isinstance(value, (str, int, float)) else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _labels(texts: Mapping[str, bytes], columns: Mapping[str, ColumnKind]) -> Iterator[tuple[str, str | float]]:
    """(column, value) of every label that is there and of its kind."""
    try:
        described = json.loads(texts.get("json", b"{}"))
    except (ValueError, RecursionError):
        described = {}
    for name, kind in columns.items():
        value = described.get(name) if isinstance(described, dict) else None
        if name == CLASS:
            text = texts.get(CLASS, b"").strip()
            value = int(text) if re.fullmatch(rb"-?\d{1,18}", text) else None
        label = label_of(value, kind)
        if label is not None:
            yield name, label


def _shards(raw: Path | None, pattern: str) -> list[Path]:
    if raw is None:
        raise Refusal("webdataset shards need a raw path; give it in specs/index.yaml")
    root = existing(raw)
    if root.is_file():
        return [root]
    inside = sorted(str(path.relative_to(root)) for path in root.rglob("*.tar*") if path.is_file())
    found = [root / name for name in inside if fnmatch(name, pattern)]
    if not found:
        raise Refusal(f"{raw}/{pattern}: no such shards; {nearest(pattern, inside)}")
    return found
