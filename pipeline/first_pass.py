"""The first pass over the raw data: decode, account, measure; bytes go to a spool, measurements to a file of facts.

What is kept in memory of a picture is its name, labels and place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from sys import intern
from typing import Any, BinaryIO

import numpy as np

from pipeline.data import DataSpec
from pipeline.intake import Kept, taken
from pipeline.ledger import Ledger
from pipeline.sources import Item, Note, Record, Refused


@dataclass(slots=True)
class Row:
    """What is remembered of a kept record; all else is in the spool and the facts."""

    name: str
    split: str | None
    labels: tuple[str | float, ...]
    extension: str
    fact: int
    """its place in the facts"""


def facts_type(channels: int) -> np.dtype[Any]:
    """What the first pass measures of a picture."""
    sums = (np.float64, (2, channels))
    shape = (np.int32, (2,))
    return np.dtype(
        [("offset", np.int64), ("size", np.int64), ("shape", *shape), ("digest", "S32"), ("moments", *sums)]
    )


def keep(
    spec: DataSpec, items: Iterable[Item], spool: BinaryIO, measured: BinaryIO, ledger: Ledger, workers: int
) -> Iterator[Row]:
    """Yield a row for every picture that is kept; tell the ledger of all others.

    Args:
        spec: what is kept and how.
        items: the raw files.
        spool: what is stored is appended here.
        measured: one entry of ``facts_type`` a row is appended here.
        ledger: is told of what is kept and refused, of what is odd, and of notes.
        workers: processes that decode.
    """
    kinds = spec.columns()
    facts = facts_type(spec.input.channels)
    offset = count = 0
    for item, outcome in taken(_once_named(items), spec.input, workers):
        if isinstance(item, Note):
            ledger.notes.append(item.text)
            if item.damage:
                ledger.damage.append(item.text)
        elif isinstance(item, Refused):
            ledger.refused.append(item)
        elif not isinstance(outcome, Kept):
            assert outcome is not None
            ledger.refused.append(Refused(item.name, outcome.reason, outcome.detail, item.split))
        elif missing := [label for label in kinds if label not in item.labels]:
            ledger.refused.append(
                Refused(item.name, "no label", f"nothing usable in column '{missing[0]}'", item.split)
            )
        else:
            content = item.content if outcome.content is None else outcome.content
            assert isinstance(content, bytes)
            spool.write(content)
            moments = np.frombuffer(outcome.moments, np.float64).reshape(2, -1)
            measured.write(
                np.array([(offset, outcome.size, outcome.shape, outcome.digest.hex(), moments)], facts).tobytes()
            )
            labels = tuple(_interned(item.labels[label]) for label in kinds)
            ledger.kept += 1
            for odd in outcome.odd:
                others, first = ledger.odd.get(odd, (0, item.name))
                ledger.odd[odd] = others + 1, first
            yield Row(item.name, item.split, labels, outcome.extension, count)
            offset, count = offset + outcome.size, count + 1


def _once_named(items: Iterable[Item]) -> Iterator[Item]:
    """The items, but a second record of one name in one split is refused undecoded."""
    names: set[tuple[str | None, str]] = set()
    for item in items:
        if not isinstance(item, Record):
            yield item
        elif (item.split, item.name) in names:
            yield Refused(item.name, "repeated name", "the first of that name was kept", item.split)
        else:
            names.add((item.split, item.name))
            yield item


def _interned(value: str | float) -> str | float:
    return intern(value) if isinstance(value, str) else value
