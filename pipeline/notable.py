"""What a user should know of a data set before training on it, though nothing is wrong with any single file."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from pipeline.samples import several
from pipeline.shards import Column

NAMED = 5
"""classes that a note names"""


def oddities(odd: Mapping[str, tuple[int, str]], word: str) -> Iterator[str]:
    """Yield a sentence for each thing that is odd about some samples.

    Args:
        odd: what it is -> how many have it, and the first one's name.
        word: what a sample is called.
    """
    for what, (count, first) in odd.items():
        yield f"{count} {word if count == 1 else several(word)} {what}, as {first}"


def notable(names: Sequence[str], columns: dict[str, Column]) -> Iterator[str]:
    """Yield a sentence for each: names that some disks cannot tell apart, classes of one picture, on one side only."""
    forms: dict[str, str] = {}
    alike = []
    for name in names:
        first = forms.setdefault(unicodedata.normalize("NFC", name).casefold(), name)
        if first != name:
            alike.append(f"{first} and {name}")
    if alike:
        yield f"{len(alike)} name(s) differ only in case or Unicode form: {alike[0]}; some disks hold but one"
    for label, column in columns.items():
        if column.kind != "class":
            continue
        train, test = (dict(zip(column.classes, column.counts[split], strict=True)) for split in ("train", "test"))
        for what, found in (
            ("only in test", [name for name, count in train.items() if not count]),
            ("only in train", [name for name, count in test.items() if not count]),
            ("with one sample to train on", [name for name, count in train.items() if count == 1]),
        ):
            if found:
                more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
                yield f"column '{label}': {len(found)} class(es) {what}: {', '.join(found[:NAMED])}{more}"
