"""Which table beside the pictures names them, and what its columns are: classes, numbers, a group, the split."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from pipeline.sources import Manifest
from pipeline.sources.manifest import WORDS, rows_of
from pipeline.spec import Refusal

GROUPS = ("patient", "patient_id", "subject", "subject_id", "group", "case", "case_id", "slide", "scene", "site")
SPLITS = ("split", "set", "subset", "partition")
TABLES = (".csv", ".tsv", ".parquet", ".pq")
ROWS, FEW, FIRST = 5000, 20, 200
"""rows that are looked at; of more than a few tables, which are data for the most part, first so many for a name"""
COUNTED = ("id", "index", "row", "key", "number", "nr", "")
"""names of columns of numbers that count rows and say nothing of a picture"""


@dataclass
class Table:
    """A table and what its columns seem to be."""

    manifest: Manifest
    group: str | None
    rows: list[dict[str, Any]]

    def gaps(self, column: str) -> int:
        """Rows, of those looked at, that have nothing in a column."""
        return sum(row[column] is None or not str(row[column]).strip() for row in self.rows)

    def suited(self, names: Collection[str], taken: Collection[str], split_known: bool) -> Table | None:
        """This table for pictures of these names, if a column of it names them."""
        known = {unicodedata.normalize("NFC", name) for name in names}
        paths = [column for column in self.rows[0] if any(_named(row[column], known) for row in self.rows)]
        if not paths:
            return None
        columns = {
            name: kind_of([row[name] for row in self.rows]) for name in self.rows[0] if name not in (paths[0], *taken)
        }
        split = next((name for name in columns if name.lower() in SPLITS and splits(self.rows, name)), None)
        for name in list(columns):
            if name.lower() in SPLITS:
                del columns[name]
        group = next((name for name in columns if name.lower() in GROUPS), None)
        classes = tuple(name for name, kind in columns.items() if kind == "class" or name == group)
        numbers = tuple(
            name for name, kind in columns.items() if kind == "number" and name != group and name.lower() not in COUNTED
        )
        manifest = Manifest(
            file=self.manifest.file,
            path=paths[0],
            classes=classes,
            numbers=numbers,
            split=None if split_known else split,
        )
        return Table(manifest, group, self.rows)


def tables(folder: Path, names: list[str], known: Collection[str]) -> Iterator[Table]:
    """Yield the tables of a folder that can be read and name one of the known files in their first rows."""
    forms = {unicodedata.normalize("NFC", name) for name in known}
    for name in names:
        try:
            found = rows_of(folder / name)
            rows = list(islice(found, ROWS if len(names) <= FEW else FIRST))
            if not any(_named(value, forms) for row in rows for value in row.values()):
                continue
            rows += islice(found, ROWS - len(rows))
        except Refusal:
            continue
        yield Table(Manifest(file=name, path="?", classes=(), numbers=(), split=None), None, rows)


def _named(value: Any, known: set[str]) -> bool:
    return isinstance(value, str) and unicodedata.normalize("NFC", value.replace("\\", "/").removeprefix("./")) in known


def splits(rows: list[dict[str, Any]], name: str) -> bool:
    """Whether a column says train and test."""
    return {WORDS.get(str(row[name]).strip().lower()) for row in rows} >= {"train", "test"}


def kind_of(values: list[Any]) -> str | None:
    """class: few different values; number: all numbers; None: neither."""
    texts = [str(value).strip() for value in values if value is not None and str(value).strip()]
    different = set(texts)
    if len(different) < 2:
        return None
    try:
        numbers = [float(text) for text in texts]
    except ValueError:
        numbers = []
    if numbers and (len(different) > 20 or not all(number.is_integer() for number in numbers)):
        return "number"
    return "class" if len(different) <= max(2, len(texts) // 2) else None
