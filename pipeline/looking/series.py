"""Series among files: arrays (.npy, .npz) and tables (CSV, Parquet) of numbers, and the contract that suits them.

What is guessed, as which side of an array is time, is told with its reason.
"""

from __future__ import annotations

import csv
import io
import math
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.looking.clocks import CLOCKS, EPISODES, SECONDS, clock_of, is_number, rate_of
from pipeline.samples import Unreadable
from pipeline.series import Series
from pipeline.series.columns import is_numeric, usual_width
from pipeline.series.decoding import NUMPY, PARQUET, ZIP, decode
from pipeline.spec import Refusal

LONGEST = 1024
"""steps of a first recipe, at most"""
FIXED = 0.9
"""of the arrays, that are of one size along the side of their channels, at least"""
SLENDER = 4
"""how many times as long as wide an array must be, to be no picture"""


@dataclass(frozen=True)
class Measured:
    """One file: a table's steps, or an array's two sides."""

    sides: tuple[int, int]
    """(steps, channels) of a table; as they are of an array"""
    names: tuple[str, ...] = ()
    """columns of a table that are channels; the array of an .npz"""
    others: tuple[str, ...] = ()
    """columns of a table that are none; further arrays of an .npz"""
    widths: tuple[int, ...] = ()
    """channels of each of these columns"""
    still: frozenset[str] = frozenset()
    """of them, those that do not change, as the number of the file"""
    table: bool = False
    clock: tuple[str, float] | None = None
    """a column of seconds, and its usual step"""


def measured(name: str, content: bytes, array: bool) -> Measured | None:
    """What a file (or, with ``array``, a row of an array) is as a series; None where it is something else.

    Raises:
        Unreadable: it should be one by its form, and is none.
    """
    try:
        if content.startswith(NUMPY):
            return _array(np.load(io.BytesIO(content), allow_pickle=False), array)
        if content.startswith(ZIP):
            return _arrays(content)
        if content.startswith(PARQUET):
            return _parquet(content)
        if name.lower().endswith((".csv", ".tsv")):
            return _cells(content)
    except ModuleNotFoundError:
        raise Refusal("reading Parquet needs pyarrow; pip install pyarrow, or save it as CSV or .npz") from None
    except (ValueError, EOFError, OSError, zipfile.BadZipFile, IndexError, csv.Error):
        decode(content, None, time_first=True)  # tells what is amiss
        raise Unreadable("no series", "damaged; copy it again") from None
    return None


def contract_of(found: Sequence[Measured]) -> tuple[Series, list[str]]:
    """The contract that suits these files, and what was guessed.

    Raises:
        Refusal: their numbers of channels differ.
    """
    tables, arrays = [each for each in found if each.table], [each for each in found if not each.table]
    several = [name for each in tables for name in each.names if name.lower() in EPISODES and name not in each.still]
    if several:
        raise Refusal(
            f"tables that hold several episodes each ({several[0]}); declare them as source: {{kind: episodes, file: "
            '"*.parquet", …}, as specs/examples/data/pendulum.yaml is'
        )
    time_first, guess = _layout([each.sides for each in arrays])
    remarks = [guess] if guess else []
    sides = [each.sides if each.table or time_first else each.sides[::-1] for each in found]
    names, channels = _names(tables, arrays)
    if channels is None:
        counts = Counter(width for _, width in sides)
        if len(counts) > 1 and counts.most_common(1)[0][1] < 0.9 * len(sides):
            told = ", ".join(map(str, sorted(counts)))
            raise Refusal(f"series of {told} channels; give files that all have the same, or name them in input.names")
        channels = counts.most_common(1)[0][0]
    others = dict.fromkeys(name for each in tables for name in (*each.others, *each.names))
    left = [name for name in others if names is not None and name not in names]
    if tables and left:
        remarks.append(f"no channels, by their names or because they never change: {', '.join(left)}")
    stray = len(sides) - sum(width == channels for _, width in sides)
    if stray and not tables:
        remarks.append(
            f"{stray} of {len(sides)} arrays have another number of channels than {channels}, and are refused"
        )
    steps, about = window([length for length, _ in sides])
    rate, pace = rate_of([each.clock for each in tables if each.clock is not None])
    series = Series(
        kind="series",
        channels=channels,
        steps=steps,
        rate=rate,
        names=names,
        layout="time_first" if time_first else "channels_first",
        longer="centre",
        shorter="hold",
    )
    return series, [*remarks, *pace, *about]


def window(lengths: Sequence[int]) -> tuple[int, list[str]]:
    """Steps of a series, that three in four samples have, and what is told of the others."""
    usual = int(np.quantile(lengths, 0.25, method="lower"))
    steps = max(1, min(LONGEST, usual))
    if min(lengths) == max(lengths) == steps:
        return steps, []
    told = f"lengths are {min(lengths)} to {max(lengths)} steps, a series is {steps}: of longer ones the middle"
    return steps, [f"{told} (any part stands for the whole? begin invariances with {{kind: window}}), shorter are held"]


def _layout(sides: Sequence[tuple[int, int]]) -> tuple[bool, str | None]:
    """Whether arrays are (steps, channels), and what is guessed of them."""
    if not sides:
        return True, None
    first, second = (Counter(side[place] for side in sides) for place in (0, 1))
    fixed = [most.most_common(1)[0][1] >= FIXED * len(sides) for most in (first, second)]
    if set(second) == {1}:
        return True, None
    if fixed[0] == fixed[1]:
        time_first, why = sum(side[0] >= side[1] for side in sides) * 2 >= len(sides), "the longer side being time"
    else:
        time_first, why = fixed[1], "the side that differs being time"
        if len(second if time_first else first) == 1:
            return time_first, None
    order = "(steps, channels)" if time_first else "(channels, steps)"
    return time_first, f"arrays were taken for {order}, {why}; input.layout says it"


def _names(tables: Sequence[Measured], arrays: Sequence[Measured]) -> tuple[tuple[str, ...] | None, int | None]:
    """``names`` of the contract, and how many channels these are (None: by the sides)."""
    packed = Counter(each.names for each in arrays if each.others)
    if packed:
        return packed.most_common(1)[0][0], None
    if not tables:
        return None, None
    (names, widths), _ = Counter((each.names, each.widths) for each in tables).most_common(1)[0]
    still = frozenset.intersection(*(each.still for each in tables))
    kept = {name: width for name, width in zip(names, widths, strict=True) if name not in still or still >= {*names}}
    whole = all(not each.others and each.names == tuple(kept) for each in tables)
    return (None if whole else tuple(kept)), sum(kept.values())


def _array(values: Any, row: bool) -> Measured | None:
    sides = values.shape[:2] if row and values.ndim == 3 and values.shape[2] == 1 else values.shape
    if values.dtype.kind not in "buif" or len(sides) not in (1, 2) or 0 in sides:
        return None
    sides = (sides[0], 1) if len(sides) == 1 else sides
    if row and max(sides) < SLENDER * min(sides):
        return None
    return Measured((int(sides[0]), int(sides[1])))


def _arrays(content: bytes) -> Measured | None:
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        if not all(name.endswith(".npy") for name in packed.namelist()):
            return None
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        found = {name: _array(archive[name], False) for name in archive.files}
    known = {name: each for name, each in found.items() if each is not None}
    if not known:
        return None
    name = max(known, key=lambda name: math.prod(known[name].sides))
    return Measured(known[name].sides, (name,), tuple(other for other in found if other != name))


def _parquet(content: bytes) -> Measured | None:
    from pyarrow import BufferReader
    from pyarrow.parquet import ParquetFile

    table = ParquetFile(BufferReader(content))
    kinds = {field.name: field.type for field in table.schema_arrow}
    names = [name for name, kind in kinds.items() if is_numeric(kind) and name.lower() not in CLOCKS]
    columns = {name: table.read(columns=[name])[name].combine_chunks() for name in names}
    widths = tuple(usual_width(column) or 1 for column in columns.values())
    still = frozenset(name for name, width in zip(names, widths, strict=True) if width == 1 and _still(columns[name]))
    others = tuple(name for name in kinds if name not in names)
    clocks = [name for name in others if name.lower() in SECONDS]
    clock = clock_of(table.read(columns=clocks).to_pydict()) if clocks else None
    return _of_table(table.metadata.num_rows, names, widths, still, others, clock)


def _still(column: Any) -> bool:
    from pyarrow.types import is_nested

    return not is_nested(column.type) and len(column.unique()) == 1


def _of_table(
    steps: int,
    names: Sequence[str],
    widths: Sequence[int],
    still: frozenset[str],
    others: tuple[str, ...],
    clock: tuple[str, float] | None,
) -> Measured | None:
    return Measured((steps, sum(widths)), tuple(names), others, tuple(widths), still, True, clock) if names else None


def _cells(content: bytes) -> Measured | None:
    text = content.decode("utf-8-sig")
    first = text.partition("\n")[0]
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=max(",;\t", key=first.count)) if row]
    if len(rows) < 2:
        return None
    header = [cell.strip() for cell in rows[0]]
    if all(map(is_number, header)):
        raise Unreadable("no table", "a CSV must begin with the names of its columns")
    names = [
        name
        for place, name in enumerate(header)
        if name.lower() not in CLOCKS and 2 * sum(map(is_number, (row[place] for row in rows[1:]))) > len(rows) - 1
    ]
    still = frozenset(name for name in names if len({row[header.index(name)] for row in rows[1:]}) == 1)
    others = tuple(name for name in header if name not in names)
    clock = clock_of({name: [row[header.index(name)] for row in rows[1:]] for name in others})
    return _of_table(len(rows) - 1, names, [1] * len(names), still, others, clock)
