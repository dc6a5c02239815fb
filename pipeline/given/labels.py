"""Labels that somebody has already: a table beside vectors or pictures, in the order of the rows or by their names.

Legend: N rows.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.given import read_array
from pipeline.sources import ColumnKind
from pipeline.spec import Refusal, nearest

FEW = 100
"""whole numbers of at most this many different values, or of half as many as rows, are classes"""
NAMES = ("id", "name", "file", "path", "filename", "image", "index", "row", "key", "")
"""headers of a column that names rows"""


@dataclass(frozen=True)
class Labels:
    """Label columns of N rows, as text; a missing one is an empty text."""

    file: Path
    columns: dict[str, list[str]]
    names: list[str] = field(default_factory=list)
    """of the rows, where the table has a column of them"""

    def kind(self, column: str) -> ColumnKind:
        """Whether a column holds classes or numbers."""
        texts = [text for text in self.columns[column] if text]
        try:
            numbers = [float(text) for text in texts]
        except ValueError:
            return "class"
        whole = all(number.is_integer() for number in numbers)
        return "class" if whole and len(set(texts)) <= max(FEW, len(texts) // 2) else "number"


def read_labels(file: Path, count: int | None, of: object) -> Labels:
    """A table of labels: CSV (comma, semicolon or tab), with or without a header, one column or names and columns.

    A column that names rows is told by its header, or (without one) is a first column of different words. An .npy or
    .npz of N values is a table of one column.

    Args:
        count: how many rows ``of`` has; None: they are matched by name.

    Raises:
        Refusal: no such file, no table, another number of rows, or rows of other lengths.
    """
    if file.suffix in (".npy", ".npz"):
        values = read_array(file, dimensions=1)
        values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
        if values.ndim != 1 or values.dtype.kind not in "biufU":
            raise Refusal(f"{file}: {values.dtype} of {values.ndim} dimensions, not one label a row")
        texts = ["" if text == "nan" else text for text in map(str, values.tolist())]
        return _counted(Labels(file, {"label": texts}), len(values), count, of)
    lines = _lines(file)
    width = len(lines[0])
    for number, line in enumerate(lines, start=1):
        if len(line) != width:
            raise Refusal(f"{file}: row {number} has {len(line)} column(s), row 1 has {width}")
    header = _header(file, lines, count)
    body = lines[1:] if header is not None else lines
    names = header or (["name"] if width > 1 else []) + (["label"] if width <= 2 else _numbered(width - 1))
    if len(set(names)) < len(names):
        raise Refusal(f"{file}: two columns are called {next(name for name in names if names.count(name) > 1)!r}")
    columns = {name: [line[place] for line in body] for place, name in enumerate(names)}
    first = names[0]
    named = width > 1 and len(set(columns[first])) == len(body) and (header is None or _names_rows(first, body))
    rows = columns.pop(first) if named else []
    if header is None and width > 1 and not named:  # no names after all
        columns = {name: [line[place] for line in body] for place, name in enumerate(_numbered(width))}
    return _counted(Labels(file, columns, rows), len(body), count, of)


def matched(labels: Labels, names: list[str]) -> dict[str, list[str]]:
    """The label columns in the order of ``names``, by name, or by the end of a path; what is not named is empty.

    Raises:
        Refusal: the table names no rows, or none of these.
    """
    if not labels.names:
        raise Refusal(f"{labels.file}: its rows have no names, and files no order; add a first column with their names")
    place = {_plain(name): row for row, name in enumerate(labels.names)}
    ends = Counter(name.rpartition("/")[2] for name in names)
    found = []
    for name in names:
        end = name.rpartition("/")[2]
        found.append(place.get(_plain(name), place.get(_plain(end), -1) if ends[end] == 1 else -1))
    if all(row < 0 for row in found):
        near = nearest(names[0], labels.names[:1000])
        raise Refusal(f"{labels.file}: names none of the {len(names)} samples, as {names[0]}; {near}")
    return {column: ["" if row < 0 else texts[row] for row in found] for column, texts in labels.columns.items()}


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", name.replace("\\", "/").removeprefix("./"))


def _counted(labels: Labels, found: int, count: int | None, of: object) -> Labels:
    if count is not None and found != count:
        raise Refusal(f"{labels.file}: {found} labels, but {of} has {count} rows; there must be one a row, in order")
    return labels


def _lines(file: Path) -> list[list[str]]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise Refusal(f"{file}: no such file") from None
    except IsADirectoryError:
        raise Refusal(f"{file}: is a folder; name a CSV file") from None
    except UnicodeDecodeError:
        raise Refusal(f"{file}: is no UTF-8 text; save the table as CSV in UTF-8") from None
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    try:
        lines = [[cell.strip() for cell in line] for line in csv.reader(io.StringIO(text), delimiter=delimiter)]
    except csv.Error as error:
        raise Refusal(f"{file}: is no CSV: {error}") from None
    while lines and not lines[-1]:
        lines.pop()
    if max(map(len, lines), default=0) == 1:  # in a table of one column an empty line is a missing label
        lines = [line or [""] for line in lines]
    lines = [line for line in lines if line]
    if not lines:
        raise Refusal(f"{file}: is empty")
    return lines


def _header(file: Path, lines: list[list[str]], count: int | None) -> list[str] | None:
    """The first line, where it is a header: the number of rows says so; where that says nothing, its words do."""
    below = [set(column) for column in zip(*lines[1:], strict=True)]
    if count is not None:
        if len(lines) != count + 1:
            return None
        again = [cell for cell, column in zip(lines[0], below, strict=True) if cell in column]
        if again:
            raise Refusal(f"{file}: {len(lines)} rows for {count}, and the first is no header: {again[0]!r} is a value")
        return lines[0]
    known = {name.lower() for name in lines[0]} & {*NAMES, "label", "labels", "class", "target", "y"}
    fresh = below and not any(cell in column for cell, column in zip(lines[0], below, strict=True))
    return lines[0] if known or (fresh and not any(map(_number, lines[0])) and any(map(_number, lines[-1]))) else None


def _names_rows(header: str, body: list[list[str]]) -> bool:
    """Whether a first column of different values names its rows: by its header, or because it is text."""
    return header.lower() in NAMES or not all(_number(line[0]) for line in body)


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbered(count: int) -> list[str]:
    return [f"label{number}" for number in range(1, count + 1)]
