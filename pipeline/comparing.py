"""Floor 2: two runs, or two files of vectors, side by side: whether they are one space, what differs, how they agree.

Vectors of two spaces are never compared row with row of another sample: both sides must hold the same test rows.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.agreement import linear_cka, neighbour_overlap, procrustes_distance
from pipeline.audit.estimate import Estimate, NotComputable, not_computable
from pipeline.embeddings import unusable

SAMPLES, NEIGHBOURS, SEED = 2000, 10, 0
"""Rows that are compared at most, neighbours of the overlap, and the seed of sample and shuffled control."""
SHUFFLED = "rows shuffled"

Rows = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Pair:
    """Two arrays of vectors of the same rows, and what they are."""

    first: str
    second: str
    a: Rows
    b: Rows


def agreement(pairs: list[Pair]) -> Iterator[dict[str, Any]]:
    """Yield the three figures of each pair, and of the first pair with its rows shuffled, as what chance would give.

    Args:
        pairs: all of the same rows.
    """
    chosen = sample(len(pairs[0].a))
    for pair in pairs:
        yield _compared(pair.first, pair.second, pair.a[chosen], pair.b[chosen])
    first = pairs[0]
    other = chosen[np.random.default_rng(SEED).permutation(len(chosen))]
    yield _compared(first.first, f"{first.second}, {SHUFFLED}", first.a[chosen], first.b[other])


def sample(count: int) -> npt.NDArray[np.int64]:
    """At most SAMPLES of ``count`` rows, rising; the same ones for every call."""
    if count <= SAMPLES:
        return np.arange(count)
    return np.sort(np.random.default_rng(SEED).permutation(count)[:SAMPLES])


def _compared(first: str, second: str, a: Rows, b: Rows) -> dict[str, Any]:
    def plain(measure: Callable[[], float], cosine: bool = False) -> dict[str, Any]:
        return asdict(_tried(lambda: Estimate(measure(), None, None, len(a)), a, b, cosine))

    return {
        "first": first,
        "second": second,
        "cka": plain(lambda: linear_cka(a, b)),
        "cka_unbiased": plain(lambda: linear_cka(a, b, unbiased=True)),
        "procrustes": plain(lambda: procrustes_distance(a, b)),
        "neighbours": asdict(_tried(lambda: neighbour_overlap(a, b, NEIGHBOURS), a, b, True)),
    }


def _tried(measure: Callable[[], Estimate], a: Rows, b: Rows, cosine: bool) -> Estimate:
    reason = unusable(a, cosine) or unusable(b, cosine)
    if reason is not None:
        return not_computable(reason, len(a))
    try:
        return measure()
    except NotComputable as fault:
        return not_computable(fault, len(a))


def sameness(first: Mapping[str, str], second: Mapping[str, str]) -> tuple[bool, str]:
    """Whether two spaces are one, and why: what makes h what it is, by name and hash, of each.

    Args:
        first, second: the same names (declaration, network, weights) with their hashes.
    """
    other = [name for name, value in first.items() if second[name] != value]
    if not other:
        return True, f"the same space: equal {_listed(list(first))}"
    equal = [name for name in first if name not in other]
    beside = f" (equal {_listed(equal)})" if equal else ""
    return False, f"different spaces: other {_listed(other)}{beside}; their vectors must not be mixed"


def differences(first: str, second: str, names: tuple[str, str]) -> list[str]:
    """The lines in which two YAML texts differ, as a unified diff with one hunk or more a section, named by it."""
    a, b = _sections(first), _sections(second)
    lines: list[str] = []
    for name in dict.fromkeys((*a, *b)):
        changed = list(difflib.unified_diff(a.get(name, []), b.get(name, []), lineterm="", n=1))
        lines += [f"@@ {name} @@" if line.startswith("@@") else line for line in changed[2:]]
    return [f"--- {names[0]}", f"+++ {names[1]}", *lines] if lines else []


def _sections(text: str) -> dict[str, list[str]]:
    """The lines of a YAML mapping by its top-level keys."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line[:1] not in (" ", "-", ""):
            found[line.partition(":")[0]] = []
        next(reversed(found.values())).append(line)
    return found


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The figures as lines for a terminal."""
    width = max(len(f"{row['first']} | {row['second']}") for row in rows)
    yield f"{'':<{width}}  {'CKA':>6} {'unbiased':>8} {'Procrustes':>10}  neighbours in common"
    for row in rows:
        cells = [_number(row[name]) for name in ("cka", "cka_unbiased", "procrustes")]
        near = row["neighbours"]
        told = near["note"]
        if near["value"] is not None:
            told = f"{near['value']:.1%} ({near['low']:.1%} to {near['high']:.1%}; {near['note']})"
        yield f"{row['first']} | {row['second']}".ljust(width) + "  {:>6} {:>8} {:>10}  ".format(*cells) + told
    notes = (row[name]["note"] for row in rows for name in ("cka", "cka_unbiased", "procrustes"))
    yield from dict.fromkeys(note for note in notes if note)


def _number(figure: Mapping[str, Any]) -> str:
    return "-" if figure["value"] is None else f"{figure['value']:.3f}"


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
