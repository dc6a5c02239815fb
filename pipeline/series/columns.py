"""Columns of a table as channels: one of numbers is one channel, one of lists (as robots' logs have) one an element.

``NAME`` is all of a column, ``NAME[3]`` the element 3 of its lists, ``NAME[7:14]`` the elements 7 to 13. What is
missing in a column is NaN here, for others to tell. Legend: T rows, W elements of a list (1 of a column of numbers).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.samples import Unreadable
from pipeline.series.narrowing import whole

Rows = npt.NDArray[np.float64]
PART = re.compile(r"(?P<column>.+)\[(?P<first>\d+)(?::(?P<end>\d+))?\]")


@dataclass(frozen=True)
class Named:
    """What one entry of ``names`` names: a column, and which elements of its lists (None: all)."""

    name: str
    column: str
    part: tuple[int, int] | None = None

    def channels(self, rows: Rows) -> Rows:
        """The elements that are named, of all (T, W). Raises Unreadable."""
        if self.part is None:
            return rows
        first, end = self.part
        if not first < end <= rows.shape[1]:
            raise Unreadable("no such column", f"{self.name}; {self.column} has {rows.shape[1]} element(s) a row")
        return rows[:, first:end]


def named(names: Sequence[str], known: Sequence[str]) -> list[Named]:
    """What the names name, of the columns that are known. Raises Unreadable."""
    found = []
    for name in names:
        part = PART.fullmatch(name)
        if name in known:
            found.append(Named(name, name))
        elif part is not None and part["column"] in known:
            first = int(part["first"])
            found.append(Named(name, part["column"], (first, first + 1 if part["end"] is None else int(part["end"]))))
        else:
            raise Unreadable("no such column", f"{name}; it has {', '.join(known)}")
    return found


def is_numeric(kind: Any) -> bool:
    """Whether a column of this Arrow type can be channels: numbers, truths, or lists of them."""
    from pyarrow import types

    kind = kind.value_type if _is_list(kind) else kind
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def numbers(column: Any, name: str, width: int | None = None) -> Rows:
    """An Arrow column as numbers (T, W); NaN where a row lacks them, or (given ``width``) has another number of them.

    Raises:
        Unreadable: it holds something else, whole numbers beyond float64, or, without ``width``, lists of several
            lengths.
    """
    from pyarrow import compute

    if not is_numeric(column.type):
        raise Unreadable("no numbers", f"column {name} holds {column.type}; name the channels in input.names")
    if not _is_list(column.type):
        return _plain(column, name)[:, None]
    lengths = _lengths(column)
    there = lengths[lengths >= 0]
    if width is None:
        if len(set(there.tolist())) > 1:
            told = f"{there.min()} to {there.max()}"
            raise Unreadable("lists of several lengths", f"column {name}: {told} values a row; channels are fixed")
        width = int(there[0]) if len(there) else 1
    values = _plain(compute.list_flatten(column), name)
    fits = lengths == width
    rows = np.full((len(lengths), width), np.nan)
    rows[fits] = values[np.repeat(fits, lengths.clip(min=0))].reshape(-1, width)
    return rows


def usual_width(column: Any) -> int | None:
    """How many numbers most rows of an Arrow column hold; None where no row holds any."""
    lengths = _lengths(column) if _is_list(column.type) else np.ones(len(column), np.int64)
    found = np.bincount(lengths[lengths > 0])
    return int(found.argmax()) if len(found) else None


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _lengths(column: Any) -> npt.NDArray[np.int64]:
    """Values of each row of a column of lists; -1 where there is none."""
    from pyarrow import compute

    lengths = compute.fill_null(compute.list_value_length(column), -1)
    found: npt.NDArray[np.int64] = lengths.to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _plain(values: Any, name: str) -> npt.NDArray[np.float64]:
    from pyarrow import compute, float64, types

    if types.is_integer(values.type) and values.type.bit_width == 64 and len(values) > values.null_count:
        extent = compute.min_max(values).as_py()
        whole(extent["min"], extent["max"], name)
    if types.is_boolean(values.type) or types.is_decimal(values.type):
        values = compute.cast(values, float64())
    found: npt.NDArray[np.float64] = np.asarray(values.to_numpy(zero_copy_only=False), np.float64)
    return found
