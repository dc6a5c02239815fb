"""When a data set as a whole cannot be used: what is wanting to train on, test on or tell apart, and what helps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.data import DataSpec
from pipeline.first_pass import Row
from pipeline.samples import Size, modality
from pipeline.sources import Archive, Episodes, Folder, Source
from pipeline.spec import Refusal

LEAST = 3
"""samples of a data set: two to train on, one to test"""
NAMED = 3
"""values that a line names"""


def too_few(count: int, source: Source, size: Size) -> str:
    """What to say of fewer samples than any split can part.

    Args:
        count: samples.
        source: theirs.
        size: of the canvas; its type tells the modality.
    """
    told = f"only {count} sample{'s' if count > 1 else ''}, at least {LEAST} are needed, 2 to train on and 1 to test"
    what = "episode" if isinstance(source, Episodes) else "file" if isinstance(source, Folder | Archive) else None
    if what is None or modality(size) == "image":
        return f"{told}; add samples"
    return f"{told}; every {what} is one sample: add some, or cut a long one into several"


def refuse_unusable(
    spec: DataSpec, name: str, rows: Sequence[Row], digests: npt.NDArray[Any], editable: bool = True
) -> None:
    """Hold that there is something to train on, to test on, and to tell apart.

    Args:
        spec: the data set's.
        name: of the data set.
        rows: all kept samples, their splits known.
        digests: of each row's raw bytes (N,).
        editable: whether a user wrote the spec, so that a remedy may name its keys.

    Raises:
        Refusal: one line says what is wanting, and what helps.
    """
    fault = _of_sides(spec, rows, digests, editable) or next(
        filter(None, (_of_column(spec, label, rows, place, editable) for place, label in enumerate(spec.columns()))),
        None,
    )
    if fault is not None:
        raise Refusal(f"data set {name}: {fault}")


def _of_sides(spec: DataSpec, rows: Sequence[Row], digests: npt.NDArray[Any], editable: bool) -> str | None:
    """Why the two splits cannot be used."""
    counts = Counter(row.split for row in rows)
    if counts["train"] >= LEAST - 1 and counts["test"]:
        return None
    if not rows:
        return "no sample is left" + (
            "; see that the raw path in specs/index.yaml is the right one" if editable else ""
        )
    if len(rows) < LEAST:
        return too_few(len(rows), spec.source, spec.input.size)
    hashed = spec.split is not None and spec.split.test is not None
    group = None if spec.split is None else spec.split.group
    if hashed and group is not None and len({row.labels[list(spec.columns()).index(group)] for row in rows}) == 1:
        return (
            f"all {len(rows)} samples are of one {group}, which is never parted; add others, or set split.group: null"
        )
    if hashed and group is None and len(np.unique(digests)) == 1:
        return f"all {len(rows)} samples are copies of one, which are never parted; add others"
    if counts["train"] < LEAST - 1:
        wanting = f"{counts['train']} sample(s) to train on, at least {LEAST - 1} are needed; add samples"
        return wanting + (", lower split.test, or take another split.seed" if hashed and editable else "")
    return "the test split is empty; " + ("raise split.test or add samples" if hashed and editable else "add samples")


def _of_column(spec: DataSpec, label: str, rows: Sequence[Row], place: int, editable: bool) -> str | None:
    """Why a label column cannot be used: nothing to tell apart in it."""
    trained = {row.labels[place] for row in rows if row.split == "train"}
    if len(trained) > 1:
        return None
    what = "class" if spec.columns()[label] == "class" else "value"
    only = f"column '{label}' has only the one {what} {next(iter(trained))!r} to train on"
    tested = Counter(row.labels[place] for row in rows if row.labels[place] not in trained)
    if not tested and editable:
        return f"{only}; take it out of labels, or mend the data"
    if not tested:
        return f"{only}; add samples of another, or give the folder of this one alone"
    named = ", ".join(repr(value) for value in sorted(tested, key=str)[:NAMED])
    more = f" and {len(tested) - NAMED} more" if len(tested) > NAMED else ""
    alone = f"{only}: all {tested.total()} sample(s) of {named}{more} went to test"
    if spec.split is None or spec.split.test is None:
        return f"{only}: {named}{more} is in test alone; add samples of it to train, or take it out of labels"
    if not editable:
        return f"{alone}; add others"
    return f"{alone}; take another split.seed, lower split.test, or add others (copies share a side)"
