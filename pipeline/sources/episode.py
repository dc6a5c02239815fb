"""One episode of a long table: its rows as they come, their order in time, and what is told of all episodes together.

Legend: T rows of an episode, C channels.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.samples import Unreadable
from pipeline.series.decoding import VALUES
from pipeline.sources.record import Note
from pipeline.sources.steps import Steps


@dataclass
class Begun:
    """An episode that has begun: its rows so far."""

    columns: Sequence[str]
    values: list[npt.NDArray[np.floating[Any]]] = field(default_factory=list)
    times: list[npt.NDArray[Any]] = field(default_factory=list)
    labels: dict[str, set[Any]] = field(default_factory=dict)
    """different values of each label column, a few at most"""
    count: int = 0
    width: int = 0

    @property
    def too_large(self) -> bool:
        """Whether it is longer than a series may be; then its values are no longer held."""
        return self.count * max(1, self.width) > VALUES

    def add(self, steps: Steps, rows: npt.NDArray[np.int64]) -> None:
        """Its rows of a batch."""
        self.count += len(rows)
        self.width = steps.values.shape[1]
        if not self.too_large:
            self.values.append(steps.values[rows])
            if steps.times is not None:
                self.times.append(steps.times[rows])
        for column in self.columns:
            found = self.labels.setdefault(column, set())
            values = steps.labels[column]
            for value in {values[row] for row in rows.tolist()} if len(found) < 3 else ():
                found.add(None if value is None or value != value else value)


@dataclass
class Told:
    """What is told of the table once it was read."""

    sorted: list[str] = field(default_factory=list)
    least: tuple[float, str] | None = None
    most: tuple[float, str] | None = None
    """median step of time, and the episode that has it"""

    def step(self, name: str, times: npt.NDArray[Any], was_sorted: bool) -> None:
        """The times of an episode, in order."""
        if was_sorted:
            self.sorted.append(name)
        if len(times) > 1:
            usual = float(np.median(np.diff(times)))
            self.least = min(self.least or (usual, name), (usual, name))
            self.most = max(self.most or (usual, name), (usual, name))

    def notes(self, episode: str, time: str | None, uneven: float | None, nameless: int) -> Iterator[Note]:
        """Yield what a user should know; ``nameless`` rows are of no episode."""
        if nameless:
            yield Note(f"{nameless} row(s) have nothing in column '{episode}' and belong to no episode")
        if self.sorted:
            first = ", ".join(self.sorted[:3])
            told = f"{len(self.sorted)} episode(s) were out of the order of {time} and were sorted by it: {first}"
            yield Note(told, damage=False)
        if uneven is not None and self.least and self.most:
            (least, slow), (most, fast) = self.least, self.most
            if most - least > uneven * least:
                told = f"{least:g} in {slow}, {most:g} in {fast}"
                yield Note(f"episodes differ in their step of {time}: {told}; input.rate is one for all")


def in_order(times: npt.NDArray[Any], time: str, uneven: float | None) -> npt.NDArray[np.int64] | Unreadable | None:
    """The order of an episode's rows (T,) by time; None where they are in order; or why they have none."""
    if not np.isfinite(times).all():
        row = int(np.flatnonzero(~np.isfinite(times))[0])
        return Unreadable("missing time", f"nothing usable in {time}, row {row} of the episode")
    order: npt.NDArray[np.int64] | None = None
    steps = np.diff(times)
    if (steps < 0).any():
        order = np.argsort(times, kind="stable")
        times = times[order]
        steps = np.diff(times)
    if (steps == 0).any():
        return Unreadable("repeated time", f"two rows at {time} = {times[int(np.flatnonzero(steps == 0)[0])]}")
    if uneven is not None and len(steps):
        usual = float(np.median(steps))
        off = np.abs(steps - usual)
        worst = int(off.argmax())
        if off[worst] > uneven * usual:
            where = f"from {time} = {times[worst]} to {times[worst + 1]}, usually {usual:g}"
            return Unreadable("uneven steps", f"{where}; resample it, or set source.uneven: null")
    return order


def npy(values: npt.NDArray[np.float32]) -> bytes:
    """Values (T, C) as the bytes of an .npy."""
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(values), allow_pickle=False)
    return buffer.getvalue()
