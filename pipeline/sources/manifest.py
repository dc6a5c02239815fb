"""A table beside the pictures: one row a file, with labels, groups (a patient, a scene) and perhaps the split.

CSV (comma, semicolon or tab; UTF-8) or Parquet. Names are compared in one Unicode form, since systems write the same
letter in two ways. A picture without a row and a row without a picture are told, each by its name.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import Field

from pipeline.sources.names import existing, leaves
from pipeline.sources.record import ColumnKind, Item, Record, Refused, Split
from pipeline.sources.webdataset import label_of
from pipeline.spec import Refusal, Rule, Spec, nearest

FIELD = re.compile(r"\{(?P<column>[^{}:]+)(?::0(?P<digits>\d{1,2})d)?\}")
"""a column in a pattern of names, and to how many digits its number is filled up"""

WORDS: dict[str, Split] = {"train": "train", "training": "train", "test": "test", "testing": "test"}


class Manifest(Spec):
    """A table of labels, by the name of the file."""

    file: str = Field(min_length=1)
    """CSV or Parquet under the raw path (a folder)"""
    path: str = Field(min_length=1)
    """its column with each picture's path under the raw path, or name in the archive; or a pattern of its columns that
    gives it, as data/episode_{episode_index:06d}.parquet"""
    classes: tuple[str, ...]
    """its columns that are label columns of classes; groups too"""
    numbers: tuple[str, ...]
    """its columns that are label columns of numbers"""
    split: str | None = Field(min_length=1)
    """its column that says train or test; null: the source or ``split`` says it"""

    def rules(self) -> Iterator[Rule]:
        if leaves(self.file):
            yield "file", "must lie under the raw path: neither absolute nor with '..'"
        for position, name in enumerate(self.numbers):
            if name in self.classes:
                yield f"numbers[{position}]", "is among the classes already"

    def columns(self) -> dict[str, ColumnKind]:
        """Name and kind of every label column."""
        return {**dict.fromkeys(self.classes, "class"), **dict.fromkeys(self.numbers, "number")}

    def joined(self, items: Iterable[Item], raw: Path | None) -> Iterator[Item]:
        """Add each picture's row to its record; refuse what has no row, and rows that have no picture.

        Raises:
            Refusal: the table cannot be read, or lacks a column.
        """
        table = self.read(raw)
        for item in items:
            name = "" if not isinstance(item, (Record, Refused)) else _key(item.name)
            if name == _key(self.file):
                continue
            row = table.get(name)
            if row is not None:
                row.met = True
            if not isinstance(item, Record):
                yield item
            elif row is None:
                yield Refused(item.name, "not in the manifest", f"no row of {self.file} names it")
            elif row.fault:
                yield Refused(item.name, row.fault, self.file)
            else:
                yield replace(item, labels={**item.labels, **row.labels}, split=row.split or item.split)
        for row in table.values():
            if not row.met:
                yield Refused(row.name, "named by the manifest, but not there", self.file)

    def read(self, raw: Path | None) -> dict[str, _Row]:
        """The rows by name. Raises Refusal."""
        if raw is None or raw.is_file():
            raise Refusal(f"{raw}: must be the folder that holds the manifest {self.file} and the samples")
        path = existing(existing(raw) / self.file)
        wanted = [*self._named_by(), *self.classes, *self.numbers, *([self.split] if self.split else [])]
        rows: dict[str, _Row] = {}
        for values in table_rows(path, wanted):
            name = self._name(values)
            row = _Row(name, dict(self._labels(values)))
            if self.split is not None:
                word = str(values[self.split] or "").strip().lower()
                row.split = WORDS.get(word)
                row.fault = "" if row.split else "neither train nor test in the manifest"
            before = rows.setdefault(_key(name, raw), row)
            if (before.labels, before.split) != (row.labels, row.split):
                before.fault = "two different rows in the manifest"
        return rows

    def _named_by(self) -> list[str]:
        """The columns that name a file."""
        return [found["column"] for found in FIELD.finditer(self.path)] or [self.path]

    def _name(self, values: dict[str, Any]) -> str:
        """The file that a row names, "" where it names none."""
        if not FIELD.search(self.path):
            return _text(values[self.path])
        parts = {found[0]: _text(values[found["column"]]) for found in FIELD.finditer(self.path)}
        return FIELD.sub(lambda found: parts[found[0]].zfill(int(found["digits"] or 0)), self.path)

    def _labels(self, values: dict[str, Any]) -> Iterator[tuple[str, str | float]]:
        for name, kind in self.columns().items():
            label = label_of(values[name], kind)
            if label is not None:
                yield name, label


def _text(value: Any) -> str:
    """A cell that names a file, or a part of its name."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else str(value).strip()


@dataclass
class _Row:
    """One picture's row."""

    name: str
    labels: dict[str, str | float] = field(default_factory=dict)
    split: Split | None = None
    fault: str = ""
    met: bool = False


def _key(name: str, raw: Path | None = None) -> str:
    """A name to compare by: one Unicode form, ``/`` between folders, relative to the raw path."""
    name = unicodedata.normalize("NFC", name)
    if "/" not in name:
        name = name.replace("\\", "/")
    if raw is not None and name.startswith("/"):
        name = name.removeprefix(f"{raw.absolute()}/").removeprefix(f"{raw}/")
    while name.startswith("./"):
        name = name[2:]
    return name


def header_of(path: Path) -> list[str]:
    """The names of a table's columns, one at least. Raises Refusal."""
    if path.suffix.lower() in (".parquet", ".pq"):
        names = list(parquet_file(path).schema_arrow.names)
    else:
        with path.open(encoding="utf-8-sig", newline="") as file:
            try:
                names = next(csv.reader(file, delimiter=_delimiter(path)), [])
            except (UnicodeDecodeError, csv.Error) as error:
                raise Refusal(f"{path}: no table ({error}); save it as CSV in UTF-8") from None
    if not names:
        raise Refusal(f"{path}: no table ({path.stat().st_size} bytes, no columns in its first line); copy it again")
    return names


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """Every row of a table, by its columns. Raises Refusal."""
    yield from table_rows(path, header_of(path))


def table_rows(path: Path, wanted: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the wanted columns of every row."""
    known = header_of(path)
    for name in wanted:
        if name not in known:
            raise Refusal(f"{path}: no column '{name}'; {nearest(name, known)}")
    if path.suffix.lower() in (".parquet", ".pq"):
        for batch in parquet_file(path).iter_batches(columns=list(dict.fromkeys(wanted))):
            yield from batch.to_pylist()
        return
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=_delimiter(path), strict=True)
        try:
            next(reader)
            for cells in reader:
                if cells and len(cells) != len(known):
                    raise Refusal(f"{path}: line {reader.line_num} has {len(cells)} cells, the header {len(known)}")
                if cells:
                    yield dict(zip(known, cells, strict=True))
        except (UnicodeDecodeError, csv.Error) as error:
            raise Refusal(f"{path}: after line {reader.line_num}: {error}; save it as CSV in UTF-8") from None


def _delimiter(path: Path) -> str:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        line = file.readline(2**16)
    return max(",;\t", key=line.count)


def parquet_file(path: Path) -> Any:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ModuleNotFoundError:
        raise Refusal(f"{path}: reading Parquet needs pyarrow; pip install pyarrow, or save it as CSV") from None
    try:
        return ParquetFile(path, pre_buffer=False)  # else the whole of a row group is held
    except (ArrowException, OSError) as error:
        raise Refusal(f"{path}: no Parquet file ({str(error).splitlines()[0]})") from None
