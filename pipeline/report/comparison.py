"""Which keys of the specs' YAML differ, and where in them: what is to be looked at when two results differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Part:
    """One value, or one element of a list."""

    value: Any
    odd: bool
    """Not what most specs have (a scalar), or not in every spec's list."""


@dataclass(frozen=True)
class Difference:
    """One dotted key, and what every spec has there; no parts where it has no such key."""

    path: str
    cells: tuple[tuple[Part, ...], ...]


def differences(contents: Sequence[Mapping[str, Any]]) -> list[Difference]:
    """The keys in which parsed specs differ, in the order of the files; a list is one value."""
    flat = [dict(_flat(content)) for content in contents]
    paths = dict.fromkeys(path for each in flat for path in each)
    found = []
    for path in paths:
        held = [each.get(path, ABSENT) for each in flat]
        if len({_key(value) for value in held}) > 1:
            found.append(Difference(path, tuple(_cells(held))))
    return found


ABSENT = object()


def _flat(content: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(content, Mapping) and content:
        for key, value in content.items():
            yield from _flat(value, f"{path}.{key}" if path else str(key))
    elif path:
        yield path, content


def _cells(held: Sequence[Any]) -> Iterator[tuple[Part, ...]]:
    lists = [{_key(each) for each in value} for value in held if isinstance(value, list)]
    in_all = set.intersection(*lists) if lists else set()
    usual = Counter(map(_key, held)).most_common(2)
    common = usual[0][0] if usual[0][1] > usual[1][1] else None  # they differ, so there are two at least
    for value in held:
        if value is ABSENT:
            yield ()
        elif isinstance(value, list) and value:
            yield tuple(Part(each, _key(each) not in in_all) for each in value)
        else:
            yield (Part(value, _key(value) != common),)


def _key(value: Any) -> str:
    """Equal for equal values: 15 and 15.0 are one number, true is none."""
    if isinstance(value, Mapping):
        return repr({str(key): _key(each) for key, each in value.items()})
    if isinstance(value, list):
        return repr([_key(each) for each in value])
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 53:
        return repr(float(value))
    return repr(value)
