"""Whether a table is a long one, a row a time step: which column tells the episodes apart, which is time, what is left.

Columns are guessed by their names and then held to the rows: an episode has several rows, and within it no time comes
twice. What does not change within an episode is a label; what does, and is a number, is a channel.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.looking.clocks import CLOCKS, EPISODES, clock_of, is_number, rate_of
from pipeline.looking.sample import TRIED, Seen
from pipeline.looking.series import window
from pipeline.looking.tables import COUNTED, GROUPS, SPLITS, kind_of, splits
from pipeline.samples import Unreadable
from pipeline.series import Series
from pipeline.series.decoding import DECIMAL_COMMA
from pipeline.series.narrowing import cells, narrowed
from pipeline.sources import Episodes
from pipeline.sources.manifest import header_of, rows_of
from pipeline.sources.steps import Table, times_of
from pipeline.spec import Refusal

ROWS = 20_000
"""rows that are looked at"""
EVEN = 0.01

Row = dict[str, Any]


def long_table(path: Path, raw: Path) -> Seen:
    """What a table of time steps holds; ``raw`` is the path itself or its folder.

    Raises:
        Refusal: no columns of episodes and times are found; the line names the remedy.
    """
    rows = list(itertools.islice(rows_of(path), ROWS))
    found = _columns(rows, header_of(path))
    if found is None:
        raise Refusal(
            f"--data {path}: no column of it names files in {path.parent} (give their folder), and it is no table of "
            "time steps: no column as episode_id, within which one as t or time has no repeats; rename them, or write "
            "specs/data as specs/examples/data/pendulum.yaml is"
        )
    episode, time = found
    parts = _by(rows, episode)
    if len(rows) == ROWS and len(parts) > 1:
        parts.popitem()  # its end was not read
    labels, split, channels, left = _roles([name for name in rows[0] if name not in found], parts)
    if not channels:
        commas = [row[name] for row in rows for name in row if DECIMAL_COMMA.fullmatch(str(row[name]))]
        told = f"; {commas[0]!r} has a decimal comma, write numbers with a point" if commas else "; nothing to learn"
        raise Refusal(f"--data {path}: no column of numbers changes within an episode of {episode}{told}")
    uneven = EVEN if all(_even(times_of([row[time] for row in part])) for part in parts.values()) else None
    source = Episodes(
        kind="episodes",
        file=None if raw == path else path.name,
        episode=episode,
        time=time,
        uneven=uneven,
        classes=tuple(name for name, kind in labels.items() if kind == "class"),
        numbers=tuple(name for name, kind in labels.items() if kind == "number"),
        split=split,
    )
    steps, about = window([len(part) for part in parts.values()])
    others = [name for name in header_of(path) if name not in (*found, *labels, *channels, split)]
    clocks = [clock_of({time: [row[time] for row in part]}) for part in parts.values()]
    rate, pace = rate_of([clock for clock in clocks if clock is not None] if uneven is not None else [])
    widths = [len(rows[0][name]) if isinstance(rows[0][name], list) else 1 for name in channels]
    canvas = Series(
        kind="series",
        channels=sum(widths),
        steps=steps,
        rate=rate,
        names=tuple(channels),
        layout="time_first",
        longer="centre",
        shorter="hold",
    )
    names = Table(source.files(raw), episode, time, (), canvas.names).episodes()
    remarks = [
        f"episodes are told apart by {episode} and put in order by {time}: named so, and no {time} comes twice in one",
        f"channels are the numbers that change within an episode: {', '.join(channels)}",
        *([f"left out: {', '.join(others)}"] if others else []),
        *(["steps of time are uneven; resample the episodes where the pace matters"] if uneven is None else []),
        *pace,
        *_lost(list(parts.values())[:TRIED], [name for name in channels if not isinstance(rows[0][name], list)]),
        *about,
        *left,
    ]
    seen = Seen(raw, source, f"a long table, {path.name}", canvas=canvas, count=len(names), remarks=remarks)
    sides = [] if split is None else [str(part[0][split]).lower() for part in parts.values()]
    seen.train = len(names) if split is None else round(len(names) * sum(map("train".__eq__, sides)) / len(sides))
    seen.group = next((name for name in source.classes if name.lower() in GROUPS), None)
    return seen


def _lost(parts: Sequence[Sequence[Row]], channels: Sequence[str]) -> Iterator[str]:
    """What would be refused of some episodes, since float32 cannot hold it."""
    reasons = Counter[str]()
    for part in parts:
        try:
            values = np.array([cells([str(row[name]) for row in part], name) for name in channels])
            if np.isfinite(values).all():
                narrowed(values, channels.__getitem__)
        except Unreadable as fault:
            reasons[str(fault)] += 1
    if reasons:
        told = f"of {len(parts)} episodes that were tried {reasons.total()} would be refused"
        yield f"{told}: {reasons.most_common(1)[0][0]}"


def _columns(rows: Sequence[Row], known: Sequence[str]) -> tuple[str, str] | None:
    """The columns of episodes and of time, if there are such."""
    small = {name.lower(): name for name in reversed(known)}
    clocks = [name for name in known if name.lower() in CLOCKS]
    for episode in (small[name] for name in EPISODES if name in small):
        parts = list(_by(rows, episode).values())
        if not parts or len(rows) < 2 * len(parts):
            continue
        for time in clocks:
            values = [times_of([row[time] for row in part]) for part in parts]
            distinct = [len(np.unique(each)) == len(each) and bool(np.isfinite(each).all()) for each in values]
            if sum(distinct) >= 0.9 * len(distinct):
                return episode, time
    return None


def _by(rows: Sequence[Row], episode: str) -> dict[Any, list[Row]]:
    """The rows of each episode."""
    parts: dict[Any, list[Row]] = {}
    for row in rows:
        if row[episode] is not None and row[episode] == row[episode]:
            parts.setdefault(row[episode], []).append(row)
    return parts


def _roles(
    names: Sequence[str], parts: dict[Any, list[Row]]
) -> tuple[dict[str, str], str | None, list[str], list[str]]:
    """Labels with their kinds, the column of the split, the channels, and what is told of the others."""
    labels: dict[str, str] = {}
    split, channels, told = None, [], []
    for name in names:
        columns = [[row[name] for row in part] for part in parts.values()]
        widths = {len(value) if isinstance(value, list) else 0 for column in columns for value in column}
        nested = any(isinstance(value, (list, dict)) for column in columns for value in column)
        constant = [len({_hashable(value) for value in column}) == 1 for column in columns]
        if nested and (len(widths) > 1 or not all(_numbers(value) for column in columns for value in column)):
            told.append(f"{name} holds no numbers, as many in each row, so it is no channel")
        elif nested and all(constant):
            told.append(f"{name} holds lists and does not change within an episode, so it is neither label nor channel")
        elif all(constant):
            firsts = [column[0] for column in columns]
            if name.lower() in SPLITS and splits([{name: value} for value in firsts], name):
                split = name
            elif kind := kind_of(firsts):
                labels[name] = kind
        elif name.lower() in CLOCKS or name.lower() in COUNTED:
            continue
        elif all(isinstance(value, list) or is_number(value) for column in columns for value in column[:50]):
            channels.append(name)
        elif sum(constant) >= 0.9 * len(constant):
            told.append(f"{name} changes within {len(constant) - sum(constant)} episode(s), so it is no label")
    return labels, split, channels, told


def _hashable(value: Any) -> Any:
    return repr(value) if isinstance(value, (list, dict)) else value


def _numbers(value: Any) -> bool:
    """Whether a cell is a list of numbers."""
    return isinstance(value, list) and all(isinstance(each, (int, float)) for each in value)


def _even(times: np.ndarray) -> bool:
    steps = np.diff(np.sort(times))
    usual = float(np.median(steps)) if len(steps) else 0.0
    return not len(steps) or bool((np.abs(steps - usual) <= EVEN * usual).all())
