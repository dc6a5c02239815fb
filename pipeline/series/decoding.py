"""A file of measurements to values: .npy, .npz, CSV or Parquet, by its bytes.

Only numbers are read: object arrays would be pickles, which can execute code. A cell that is empty or no number is
missing, and what is missing or not finite is told by its place, and never filled. Legend: C channels, T steps.
"""

from __future__ import annotations

import csv
import io
import math
import re
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.forms import form
from pipeline.samples import Unreadable
from pipeline.series.columns import named, numbers
from pipeline.series.narrowing import Numbers, cells, narrowed
from pipeline.spec import Refusal

VALUES = 2**27
"""most values of one file"""
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
NUMPY, ZIP, PARQUET = b"\x93NUMPY", b"PK\x03\x04", b"PAR1"


def decode(content: bytes, names: Sequence[str] | None, time_first: bool) -> Numbers:
    """Decode one file: (C, T) float32.

    Args:
        content: its bytes.
        names: of an .npz the one array; of a table the columns that are channels (``columns``: one of lists is one a
            value, and NAME[7:14] some of them); None: the only array, all columns.
        time_first: whether arrays are (T, C); tables always have a row a step.

    Raises:
        Unreadable: nothing of the kind, cut or damaged, too large, or values that are missing or lost in float32.
    """
    if not content:
        raise Unreadable("empty file", "0 bytes")
    if content.startswith((NUMPY, ZIP)):
        values = _array(content, names)
        values = values.T if time_first else values
    elif content.startswith(PARQUET):
        values = _parquet(content, names)
    else:
        values = _table(content, names)
    if not values.size:
        raise Unreadable("no values", f"shape {values.shape}")
    if not np.isfinite(values).all():
        channel, step = (int(place) for place in np.argwhere(~np.isfinite(values))[0])
        raise Unreadable("not finite", f"{values[channel, step]} in channel {channel} at step {step}")
    return narrowed(values)


def _array(content: bytes, names: Sequence[str] | None) -> npt.NDArray[Any]:
    try:
        if content.startswith(NUMPY):
            values = _loaded(io.BytesIO(content))
        else:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                known = [name.removesuffix(".npy") for name in archive.namelist()]
                wanted = list(names or known)
                if len(wanted) != 1 or wanted[0] not in known:
                    raise Unreadable("no such array", f"it holds {', '.join(known)}; name one in input.names")
                with archive.open(archive.namelist()[known.index(wanted[0])]) as member:
                    values = _loaded(io.BytesIO(member.read(8 * VALUES)))
    except (ValueError, EOFError, OSError, zipfile.BadZipFile, RuntimeError) as error:
        raise Unreadable("damaged array", str(error).splitlines()[0] if str(error) else type(error).__name__) from None
    if values.ndim == 3 and values.shape[2] == 1:  # as a source of arrays hands them over
        values = values[..., 0]
    if values.dtype.kind not in "buif" or values.ndim not in (1, 2):
        told = f"an array of {values.dtype} {values.shape}"
        raise Unreadable("no series", f"{told}; it must be real numbers (steps, channels)")
    return values[:, None] if values.ndim == 1 else values


def _loaded(file: io.BytesIO) -> npt.NDArray[Any]:
    version = np.lib.format.read_magic(file)
    reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = reader(file)
    if math.prod(shape) > VALUES:
        raise Unreadable("too large", f"shape {shape}, limit {VALUES} values")
    if dtype.hasobject:
        raise Unreadable("objects", "an array of Python objects, which could execute code; save it as numbers")
    file.seek(0)
    values: npt.NDArray[Any] = np.load(file, allow_pickle=False)
    return values


def _table(content: bytes, names: Sequence[str] | None) -> npt.NDArray[np.float64]:
    try:
        text = content.decode("utf-8-sig")
        first = text.partition("\n")[0]
        rows = list(csv.reader(io.StringIO(text), delimiter=max(",;\t", key=first.count), strict=True))
    except UnicodeDecodeError:
        raise Unreadable("no table", f"neither npy, npz, Parquet nor CSV in UTF-8, but {form(content)}") from None
    except csv.Error as error:
        raise Unreadable("damaged table", f"{error}; save it as CSV again") from None
    rows = [row for row in rows if row]
    header = [cell.strip() for cell in rows[0]] if rows else []
    if not rows or all(_number(cell) is not None for cell in header) or not any(header):
        raise Unreadable("no table", "a CSV must begin with the names of its columns")
    places = [_place(name, header) for name in names or header]
    found = np.empty((len(places), len(rows) - 1))
    for step, row in enumerate(rows[1:]):
        if len(row) != len(header):
            raise Unreadable("damaged table", f"row {step + 1} has {len(row)} cells, the header {len(header)}")
        for place in places:
            if _number(row[place]) is None:
                where = f"{row[place]!r} in column {header[place]}, row {step + 1}"
                if DECIMAL_COMMA.fullmatch(row[place].strip()):
                    raise Unreadable("decimal comma", f"{where}; write numbers with a point")
                raise Unreadable("missing value", where)
    for channel, place in enumerate(places):
        found[channel] = cells([row[place] for row in rows[1:]], header[place])
    return found


def _place(name: str, header: Sequence[str]) -> int:
    if name not in header:
        raise Unreadable("no such column", f"{name}; it has {', '.join(header)}")
    return list(header).index(name)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _parquet(content: bytes, names: Sequence[str] | None) -> npt.NDArray[np.float64]:
    try:
        from pyarrow import ArrowException, BufferReader
        from pyarrow.parquet import ParquetFile
    except ModuleNotFoundError:
        raise Refusal("reading Parquet needs pyarrow; pip install pyarrow, or save it as CSV or .npz") from None
    try:
        table = ParquetFile(BufferReader(content))
        known = list(table.schema_arrow.names)
        wanted = named(names or known, known)
        columns = table.read(columns=list(dict.fromkeys(each.column for each in wanted)))
        found = [each.channels(numbers(columns[each.column].combine_chunks(), each.column)) for each in wanted]
        return np.concatenate(found, axis=1).T
    except (ArrowException, OSError, ValueError, TypeError) as error:
        raise Unreadable("damaged table", str(error).splitlines()[0]) from None
