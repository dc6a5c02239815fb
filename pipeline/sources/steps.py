"""The rows of a long table, a batch at a time: which episode each is of, when it was, its channels and its labels.

Parquet is read page by page, CSV line by line; no more than a batch is held here. Several files are one table, in the
order of their names. What is missing in a channel is NaN, and in any other column None.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.samples import Unreadable
from pipeline.series.columns import Named, is_numeric, named, numbers, usual_width
from pipeline.series.narrowing import cells
from pipeline.sources.manifest import header_of, parquet_file, table_rows
from pipeline.spec import Refusal, nearest

BATCH = 2**14
"""rows that are held at a time"""
PARQUET = (".parquet", ".pq")


@dataclass(frozen=True)
class Steps:
    """Rows that follow one another: T of them."""

    episodes: list[Any]
    times: npt.NDArray[Any] | None
    """(T,) whole numbers, or floats with NaN where one is missing"""
    values: npt.NDArray[np.floating[Any]]
    """(T, C): float32 where that is exact, else float64, since only of whole episodes it is told what float32 loses"""
    labels: dict[str, list[Any]]


@dataclass
class Table:
    """A long table in one or several files, and which of its columns are wanted."""

    files: list[Path]
    episode: str
    time: str | None
    labels: tuple[str, ...]
    names: tuple[str, ...] | None
    """channels, as ``series.columns`` reads them; None: every other column"""

    def __post_init__(self) -> None:
        self.known = header_of(self.files[0])
        for name in (self.episode, *([self.time] if self.time else []), *self.labels):
            if name not in self.known:
                raise Refusal(f"{self.files[0]}: no column '{name}'; {nearest(name, self.known)}")
        taken = {self.episode, self.time, *self.labels}
        try:
            wanted = [name for name in self.known if name not in taken] if self.names is None else self.names
            self.channels: list[Named] = named(wanted, self.known)
        except Unreadable as fault:
            raise Refusal(f"{self.files[0]}: {fault}; name the channels in input.names") from None
        if not self.channels:
            raise Refusal(f"{self.files[0]}: no column is left to be a channel; name some in input.names")
        self.widths: dict[str, int] = {}
        """elements of a row of each column of channels, by the first batch"""

    def channel(self, number: int) -> str:
        """What channel ``number`` is called, once a batch was read."""
        called = [
            f"{each.column}[{element}]" if self.widths.get(each.column, 1) > 1 else each.column
            for each in self.channels
            for element in range(*(each.part or (0, self.widths.get(each.column, 1))))
        ]
        return called[number]

    def episodes(self) -> list[str]:
        """The names of all episodes, in the order in which they begin."""
        return list(dict.fromkeys(str(name) for batch in self.named_rows() for name in batch if name is not None))

    def named_rows(self) -> Iterator[list[Any]]:
        """Yield the episodes of all rows, a batch at a time."""
        for file in self.files:
            for batch in self._batches(file, [self.episode]):
                yield batch[self.episode]

    def steps(self) -> Iterator[Steps]:
        """Yield all rows, a batch at a time. Raises Refusal where a column of channels holds no numbers."""
        plain = list(dict.fromkeys([self.episode, *([self.time] if self.time else []), *self.labels]))
        of_channels = list(dict.fromkeys(each.column for each in self.channels))
        for file in self.files:
            try:
                for batch in self._batches(file, plain, of_channels):
                    values = [each.channels(batch[f"channel {each.column}"]) for each in self.channels]
                    yield Steps(
                        batch[self.episode],
                        None if self.time is None else times_of(batch[self.time]),
                        _held(np.concatenate(values, axis=1)),
                        {name: batch[name] for name in self.labels},
                    )
            except Unreadable as fault:
                raise Refusal(f"{file}: {fault}") from None

    def _batches(self, file: Path, plain: Sequence[str], of_channels: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        """Each batch's columns: lists of those that are plain, and (T, W) as "channel NAME"."""
        if file.suffix.lower() in PARQUET:
            yield from self._of_parquet(file, plain, of_channels)
            return
        rows: list[dict[str, str]] = []
        for row in table_rows(file, [*plain, *of_channels]):
            rows.append(row)
            if len(rows) == BATCH:
                yield self._of_cells(rows, plain, of_channels)
                rows = []
        if rows:
            yield self._of_cells(rows, plain, of_channels)

    def _of_parquet(self, file: Path, plain: Sequence[str], of_channels: Sequence[str]) -> Iterator[dict[str, Any]]:
        opened = parquet_file(file)  # refuses where pyarrow is not there
        from pyarrow.types import is_nested

        schema = opened.schema_arrow
        for name in (*plain, *of_channels):
            if name not in schema.names:
                raise Refusal(f"{file}: no column '{name}'; {nearest(name, schema.names)}")
        for name in plain:
            if is_nested(schema.field(name).type):
                raise Refusal(f"{file}: column {name} holds {schema.field(name).type}; only a channel may hold lists")
        for name in of_channels:
            if not is_numeric(schema.field(name).type):
                kind = schema.field(name).type
                raise Refusal(f"{file}: column {name} holds {kind}, no numbers; name the channels in input.names")
        for batch in _read(opened, file, list(dict.fromkeys([*plain, *of_channels]))):
            found: dict[str, Any] = {name: _plain(batch.column(name), name == self.time) for name in plain}
            for name in of_channels:
                width = self.widths.get(name) or usual_width(batch.column(name))
                if width is not None:
                    self.widths[name] = width
                found[f"channel {name}"] = numbers(batch.column(name), name, width or 1)
            yield found

    @staticmethod
    def _of_cells(rows: list[dict[str, str]], plain: Sequence[str], of_channels: Sequence[str]) -> dict[str, Any]:
        found: dict[str, Any] = {name: [row[name].strip() or None for row in rows] for name in plain}
        for name in of_channels:
            found[f"channel {name}"] = np.array(cells([row[name] for row in rows], name))[:, None]
        return found


def _held(values: npt.NDArray[np.float64]) -> npt.NDArray[np.floating[Any]]:
    """Values as they are held until their episode ends: in half the memory where nothing is lost by it."""
    with np.errstate(over="ignore", under="ignore"):
        half = values.astype(np.float32)
    return half if np.array_equal(half, values, equal_nan=True) else values


def _read(opened: Any, file: Path, columns: list[str]) -> Iterator[Any]:
    from pyarrow import ArrowException

    try:
        yield from opened.iter_batches(batch_size=BATCH, columns=columns)
    except (ArrowException, OSError) as error:
        raise Refusal(f"{file}: damaged ({str(error).splitlines()[0]}); copy it again") from None


def _plain(column: Any, time: bool) -> Any:
    """A column that is no channel: a list; a time of numbers an array."""
    from pyarrow import float64, int32, int64, types

    if types.is_temporal(column.type):  # in its own unit, as only order and evenness are read from it
        column = column.cast(int32() if column.type.bit_width == 32 else int64())
    if time and types.is_decimal(column.type):
        column = column.cast(float64())
    if time and (types.is_integer(column.type) or types.is_floating(column.type)):
        values = column.to_numpy(zero_copy_only=False)
        return values.astype(np.int64) if values.dtype.kind in "iu" else values  # of others, differences wrap around
    return column.to_pylist()


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan


def times_of(column: list[Any] | npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Whole numbers as they are, texts of dates in microseconds, all else as floats; NaN where one is missing."""
    if isinstance(column, np.ndarray):
        return column
    values = [_time(value) for value in column]
    whole = all(isinstance(value, int) and abs(value) < 2**63 for value in values)
    return np.array(values, np.int64 if whole else np.float64)


def _time(value: Any) -> int | float:
    if isinstance(value, str):
        return _time_of(value)
    return value if isinstance(value, (int, float)) else math.nan


def _time_of(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        number = _number(text)
    if not math.isnan(number):
        return number
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return math.nan
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86400 + since.seconds) * 10**6 + since.microseconds
