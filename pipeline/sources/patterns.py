"""Label columns that stand in file names: ``{digit}_{speaker}_{}.wav``, as data sets without a table have them.

A pattern is matched against the end of a path: its folders and name as far as the pattern goes, without the extension.
``{NAME}`` is a label column, ``{}`` anything that is none; either ends at the next letter of the pattern, and never
reaches over a ``/``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

FIELD = re.compile(r"\{([^{}]*)\}")
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def columns_of(pattern: str) -> list[str]:
    """The label columns that a pattern names, in their order."""
    return [name for name in FIELD.findall(pattern) if name]


def pattern_faults(pattern: str) -> Iterator[str]:
    """Yield what is wrong with a pattern, as a remedy."""
    names = columns_of(pattern)
    if not names:
        yield "names no column; write it as {digit}_{speaker}_{}, with {} for what is no label"
    for name in names:
        if not WORD.fullmatch(name):
            yield f"{{{name}}} is no name for a column; use letters, digits and _"
        elif names.count(name) > 1:
            yield f"{{{name}}} stands in it twice"
    if re.search(r"\}\{", pattern):
        yield "two fields without a letter between them; where does the one end?"
    if re.search(r"[{}]", FIELD.sub("", pattern)):
        yield "has a brace that is not closed"


def labels_in(pattern: str, name: str) -> dict[str, str] | None:
    """The labels that a path holds; None where it does not fit."""
    folder, slash, last = name.rpartition("/")
    stem = folder + slash + (last.rpartition(".")[0] or last)
    parts, end = [], 0
    for field in FIELD.finditer(pattern):
        parts.append(re.escape(pattern[end : field.start()]))
        parts.append(f"(?P<{field[1]}>[^/]+?)" if field[1] else "[^/]*?")
        end = field.end()
    parts.append(re.escape(pattern[end:]))
    found = re.fullmatch("(?:.*/)?" + "".join(parts), stem)
    return None if found is None else found.groupdict()
