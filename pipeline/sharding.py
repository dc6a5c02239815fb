"""Raw data to shards: every raw file is decoded once and accounted for; kept + refused = seen.

Two passes keep memory flat. The first decodes each record (on several processes) and appends its bytes to a spool and
what was measured to a file of facts; the second writes the shards in the order of a hash of the names, so that no shard
holds one class only. Everything written is a function of the raw data and the spec, not of the number of processes.

Legend: N kept pictures, C channels of the canvas.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from sys import intern
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from pipeline.data import DataSpec
from pipeline.examples import save_examples
from pipeline.images import Pixels, fit_image, read_image
from pipeline.intake import Kept, taken
from pipeline.ledger import Ledger
from pipeline.notable import notable
from pipeline.repeats import repeats, sides
from pipeline.shards import CARD, EXAMPLES, INDEX, LEDGER, Column, DataCard, ShardFile, sha256
from pipeline.sources import ColumnKind, Item, Note, Record, Refused
from pipeline.spec import Refusal, digest
from pipeline.tars import SAMPLES, Sample, write_split

SPLITS = ("train", "test")


@dataclass(slots=True)
class _Row:
    """What is remembered of a kept record; all else is in the spool and the facts."""

    name: str
    split: str | None
    labels: tuple[str | float, ...]
    extension: str
    fact: int
    """its place in the facts"""


def facts_type(channels: int) -> np.dtype[Any]:
    """What the first pass measures of a picture."""
    sums = (np.int64, (2, channels))
    shape = (np.int32, (2,))
    return np.dtype(
        [("offset", np.int64), ("size", np.int64), ("shape", *shape), ("digest", "S32"), ("moments", *sums)]
    )


def shard(
    spec: DataSpec,
    name: str,
    raw: Path | None,
    folder: Path,
    progress: Callable[[Iterable[Item]], Iterable[Item]] = iter,
    most: int = SAMPLES,
    workers: int = 1,
) -> tuple[DataCard, Ledger]:
    """Write a data set as shards, card, index, ledger and example picture into ``folder``, which exists and is empty.

    Args:
        spec: what to read and how.
        name: of the data set, for the card.
        raw: raw path, for sources that are not embedded.
        folder: where to write.
        progress: wraps the raw files as they pass.
        most: pictures in a shard.
        workers: processes that decode.

    Raises:
        Refusal: the raw data cannot be used as a whole, or breaks the spec's ledger rules; one line says why.
    """
    ledger = Ledger()
    spool_path, facts_path = folder / "spool.partial", folder / "facts.partial"
    with spool_path.open("w+b") as spool:
        with facts_path.open("wb") as measured:
            rows = list(_keep(spec, progress(spec.records(raw)), spool, measured, ledger, workers))
        spool.flush()
        facts = np.fromfile(facts_path, facts_type(spec.input.channels))
        facts_path.unlink()
        ledger.kept = len(rows)
        ledger.held(spec.ledger, name)
        splits = _sides(spec, rows, facts)
        rows = _without_copies(spec, name, rows, splits, facts, ledger)
        _refuse_unusable(name, rows, ledger)
        rows.sort(key=lambda row: (_hash(f"order/{row.name}"), row.name))
        kinds = spec.columns()
        columns = {
            label: _column(name, label, kind, rows, position) for position, (label, kind) in enumerate(kinds.items())
        }
        ledger.notes += notable([row.name for row in rows], columns)
        shards: list[ShardFile] = []
        arrays: dict[str, npt.NDArray[Any]] = {}
        for split in SPLITS:
            inside = [row for row in rows if row.split == split]
            files, places = write_split(folder, split, _samples(inside, facts, spool, kinds), len(shards), most)
            shards += files
            arrays |= {f"{split}.{what}": values for what, values in places.items()}
            arrays[f"{split}.shape"] = facts["shape"][[row.fact for row in inside]].reshape(-1, 2)
            for position, (label, column) in enumerate(columns.items()):
                arrays[f"{split}.label.{label}"] = _codes(column, [row.labels[position] for row in inside])
        train = [row for row in rows if row.split == "train"]
        save_examples(_example_rows(train, columns), lambda row: _picture(spec, row, facts, spool), folder / EXAMPLES)
    spool_path.unlink()
    np.savez(folder / INDEX, **arrays)  # type: ignore[arg-type]
    area = spec.input.height * spec.input.width
    mean, std = _mean_std(facts["moments"][[row.fact for row in train]], area)
    plain = {label: {"kind": column.kind, "classes": column.classes} for label, column in columns.items()}
    card = DataCard(
        name=name,
        input=spec.input,
        splits={split: sum(row.split == split for row in rows) for split in SPLITS},
        columns=columns,
        mean=mean,
        std=std,
        sizes=_sizes(facts["shape"][[row.fact for row in rows]]),
        shards=tuple(shards),
        index_sha256=sha256(folder / INDEX),
        fingerprint=digest(
            {"shards": [file.sha256 for file in shards], "columns": plain, "input": spec.input.model_dump(mode="json")}
        ),
    )
    _write_json(folder / LEDGER, ledger.plain())
    _write_json(folder / CARD, card.model_dump(mode="json"))
    return card, ledger


def _keep(
    spec: DataSpec, items: Iterable[Item], spool: BinaryIO, measured: BinaryIO, ledger: Ledger, workers: int
) -> Iterator[_Row]:
    """The first pass: decode, account, measure, spool."""
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
            ledger.refused.append(Refused(item.name, outcome.reason, outcome.detail))
        elif missing := [label for label in kinds if label not in item.labels]:
            ledger.refused.append(Refused(item.name, "no label", f"nothing usable in column '{missing[0]}'"))
        else:
            content = item.content if outcome.content is None else outcome.content
            assert isinstance(content, bytes)
            spool.write(content)
            moments = np.frombuffer(outcome.moments, np.int64).reshape(2, -1)
            measured.write(
                np.array([(offset, outcome.size, outcome.shape, outcome.digest.hex(), moments)], facts).tobytes()
            )
            labels = tuple(_interned(item.labels[label]) for label in kinds)
            yield _Row(item.name, item.split, labels, outcome.extension, count)
            offset, count = offset + outcome.size, count + 1


def _once_named(items: Iterable[Item]) -> Iterator[Item]:
    """The items, but a second record of one name in one split is refused undecoded."""
    names: set[tuple[str | None, str]] = set()
    for item in items:
        if not isinstance(item, Record):
            yield item
        elif (item.split, item.name) in names:
            yield Refused(item.name, "repeated name", "the first of that name was kept")
        else:
            names.add((item.split, item.name))
            yield item


def _interned(value: str | float) -> str | float:
    return intern(value) if isinstance(value, str) else value


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _sides(spec: DataSpec, rows: list[_Row], facts: npt.NDArray[Any]) -> list[str]:
    """The split of every row, written into it too: its own, or by the hash of its group or name."""
    if spec.split is not None and rows:
        group = spec.split.group
        place = None if group is None else list(spec.columns()).index(group)
        keys = [row.name if place is None else f"{group}/{row.labels[place]}" for row in rows]
        hashes = (_hash(f"split/{spec.split.seed}/{key}")[:8] for key in keys)
        parts = np.array([int.from_bytes(value, "big") / 2**64 for value in hashes])
        alone = facts["digest"] if place is None else np.arange(len(rows))
        for row, side in zip(rows, sides(parts, alone, spec.split.test), strict=True):
            row.split = side
    return [str(row.split) for row in rows]


def _without_copies(
    spec: DataSpec, name: str, rows: list[_Row], splits: list[str], facts: npt.NDArray[Any], ledger: Ledger
) -> list[_Row]:
    """Tell exact copies, and take away or refuse them where the spec says so."""
    places = [place for place, label in enumerate(spec.labels) if spec.columns()[label] == "class"]  # labels come first
    classes = [tuple(row.labels[place] for place in places) for row in rows]
    found = repeats(facts["digest"], splits, classes)
    if not found.sets:
        return rows
    names = [row.name for row in rows]
    ledger.repeated = found.plain(names, splits)
    ledger.copies = found.summary()
    if spec.ledger.strict or spec.ledger.repeated == "refuse":
        first = " = ".join(place["name"] for place in ledger.repeated["files"][0][:3])
        setting = "ledger.repeated: once" if spec.ledger.repeated == "refuse" else "ledger.strict: false"
        raise Refusal(f"data set {name}: {found.summary()}, as {first}; remove them, or set {setting}")
    if spec.ledger.repeated == "keep":
        return rows
    gone = found.surplus(splits)
    ledger.refused += [Refused(names[row], reason, "ledger.repeated is once") for row, reason in sorted(gone.items())]
    ledger.kept -= len(gone)
    return [row for number, row in enumerate(rows) if number not in gone]


def _refuse_unusable(name: str, rows: list[_Row], ledger: Ledger) -> None:
    counts = Counter(row.split for row in rows)
    if not rows:
        fault = "no picture is left; see that the raw path in specs/index.yaml is the right one"
    elif counts["train"] < 2:
        fault = f"{counts['train']} picture(s) to train on, at least 2 are needed; add pictures, or lower split.test"
    elif not counts["test"]:
        fault = "the test split is empty; raise split.test or add pictures"
    else:
        return
    first = f": {ledger.first()}" if ledger.counted() else ""
    raise Refusal(f"data set {name}: {fault} ({ledger.summary()}{first})")


def _column(name: str, label: str, kind: ColumnKind, rows: list[_Row], position: int) -> Column:
    values = {row.labels[position] for row in rows}
    trained = {row.labels[position] for row in rows if row.split == "train"}
    if len(trained) < 2:
        only = f"the one {'class' if kind == 'class' else 'value'} {next(iter(trained))!r} to train on"
        raise Refusal(f"data set {name}: column '{label}' has only {only}; take it out of labels, or mend the data")
    if kind == "number":
        return Column(kind=kind, classes=(), counts={}, agreement=None)
    classes = tuple(sorted(str(value) for value in values))
    counts = {split: Counter(row.labels[position] for row in rows if row.split == split) for split in SPLITS}
    total = counts["train"].total()
    return Column(
        kind=kind,
        classes=classes,
        counts={split: tuple(counted[value] for value in classes) for split, counted in counts.items()},
        agreement=sum(count * count for count in counts["train"].values()) / total**2,
    )


def _codes(column: Column, values: list[str | float]) -> npt.NDArray[Any]:
    if column.kind == "number":
        return np.array(values, dtype=np.float64)
    code = {value: number for number, value in enumerate(column.classes)}
    return np.array([code[str(value)] for value in values], dtype=np.int64)


def _samples(rows: list[_Row], facts: npt.NDArray[Any], spool: BinaryIO, labels: Iterable[str]) -> Iterator[Sample]:
    for row in rows:
        yield Sample(
            _content(row, facts, spool), row.extension, {"name": row.name, **dict(zip(labels, row.labels, strict=True))}
        )


def _content(row: _Row, facts: npt.NDArray[Any], spool: BinaryIO) -> bytes:
    return os.pread(spool.fileno(), int(facts["size"][row.fact]), int(facts["offset"][row.fact]))


def _picture(spec: DataSpec, row: _Row, facts: npt.NDArray[Any], spool: BinaryIO) -> Pixels:
    return fit_image(read_image(_content(row, facts, spool), spec.input), spec.input)


def _example_rows(train: list[_Row], columns: dict[str, Column]) -> list[list[_Row]]:
    """A line of pictures for each class of the first column of classes; one line where there is none."""
    for position, column in enumerate(columns.values()):
        if column.kind == "class":
            lines: dict[str | float, list[_Row]] = {name: [] for name in column.classes}
            for row in train:
                lines[row.labels[position]].append(row)
            return [line for line in lines.values() if line]
    return [train]


def _mean_std(moments: npt.NDArray[np.int64], area: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Of each channel over the canvas, in [0, 1], from exact sums (N, 2, C), and so the same in any order."""
    n = len(moments) * area
    totals = [[sum(values) for values in moments[:, power].T.tolist()] for power in range(2)]  # Python's whole numbers
    mean = tuple(total / (255 * n) for total in totals[0])
    return mean, tuple(math.sqrt(n * q - s * s) / (255 * n) for s, q in zip(*totals, strict=True))


def _sizes(shapes: npt.NDArray[np.int32]) -> dict[str, tuple[int, int, int]]:
    ordered = np.sort(shapes, axis=0)
    middle = (len(ordered) - 1) // 2
    return {
        side: (int(ordered[0, place]), int(ordered[middle, place]), int(ordered[-1, place]))
        for place, side in enumerate(("height", "width"))
    }


def _write_json(path: Path, content: Any) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)  # the order of splits and columns counts
    path.write_text(text + "\n", encoding="utf-8")
