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
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from pipeline.carding import SPLITS, codes, counted_column, example_rows, grouped, mean_std, sizes
from pipeline.data import DataSpec
from pipeline.examples import save_examples
from pipeline.first_pass import Row, facts_type, keep
from pipeline.images import Pixels
from pipeline.ledger import Ledger, accounted
from pipeline.notable import notable, oddities
from pipeline.repeats import repeats, sides
from pipeline.shards import CARD, EXAMPLES, INDEX, LEDGER, DataCard, Grouped, ShardFile, sha256
from pipeline.sources import Item, Refused
from pipeline.spec import Refusal, digest
from pipeline.tars import SAMPLES, Sample, write_split
from pipeline.unusable import refuse_unusable


def shard(
    spec: DataSpec,
    name: str,
    raw: Path | None,
    folder: Path,
    progress: Callable[[Iterable[Item]], Iterable[Item]] = iter,
    most: int = SAMPLES,
    workers: int = 1,
    editable: bool = True,
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
        editable: whether a user wrote the spec, so that a remedy may name its keys.

    Raises:
        Unsharded: the raw data cannot be used as a whole, or breaks the spec's ledger rules; one line says why, names
            the first files that were refused, and the ledger goes with it.
    """
    ledger = Ledger()
    spool_path, facts_path = folder / "spool.partial", folder / "facts.partial"
    with accounted(ledger), spool_path.open("w+b") as spool:
        with facts_path.open("wb") as measured:
            rows = list(keep(spec, progress(spec.records(raw)), spool, measured, ledger, workers))
        spool.flush()
        facts = np.fromfile(facts_path, facts_type(spec.input.channels))
        facts_path.unlink()
        ledger.notes += oddities(ledger.odd, spec.input.word)
        ledger.held(spec.ledger, name)
        splits = _sides(spec, rows, facts)
        rows = _without_copies(spec, name, rows, splits, facts, ledger)
        refuse_unusable(spec, name, rows, facts["digest"][[row.fact for row in rows]], editable)
        rows.sort(key=lambda row: (_hash(f"order/{row.name}"), row.name))
        kinds = spec.columns()
        columns = {label: counted_column(kind, rows, position) for position, (label, kind) in enumerate(kinds.items())}
        group = _group(spec, name, rows, ledger)
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
                arrays[f"{split}.label.{label}"] = codes(column, [row.labels[position] for row in inside])
        train = [row for row in rows if row.split == "train"]
        save_examples(example_rows(train, columns), lambda row: _picture(spec, row, facts, spool), folder / EXAMPLES)
    spool_path.unlink()
    np.savez(folder / INDEX, **arrays)  # type: ignore[arg-type]
    area = math.prod(spec.input.shape[1:])
    mean, std = mean_std(facts["moments"][[row.fact for row in train]], area, spec.input)
    plain = {label: {"kind": column.kind, "classes": column.classes} for label, column in columns.items()}
    card = DataCard(
        name=name,
        input=spec.input,
        splits={split: sum(row.split == split for row in rows) for split in SPLITS},
        columns=columns,
        group=group,
        mean=mean,
        std=std,
        sizes=sizes(facts["shape"][[row.fact for row in rows]], spec.input.sides),
        shards=tuple(shards),
        index_sha256=sha256(folder / INDEX),
        fingerprint=digest(
            {"shards": [file.sha256 for file in shards], "columns": plain, "input": spec.input.model_dump(mode="json")}
        ),
    )
    _write_json(folder / LEDGER, ledger.plain())
    _write_json(folder / CARD, card.model_dump(mode="json"))
    return card, ledger


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _sides(spec: DataSpec, rows: list[Row], facts: npt.NDArray[Any]) -> list[str]:
    """The split of every row, written into it too: its own, or by the hash of its group or name."""
    if spec.split is not None and spec.split.test is not None and rows:
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
    spec: DataSpec, name: str, rows: list[Row], splits: list[str], facts: npt.NDArray[Any], ledger: Ledger
) -> list[Row]:
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


def _group(spec: DataSpec, name: str, rows: list[Row], ledger: Ledger) -> Grouped | None:
    """Where the groups lie; those on both sides of a split that was given are told, or refused (by hash: none)."""
    column = None if spec.split is None else spec.split.group
    if column is None:
        return None
    found = grouped(column, rows, list(spec.columns()).index(column))
    if found.both:
        told = (
            f"column '{column}': {found.both} of {found.groups} values have samples on both sides of the given split "
            f"({found.pictures['train']} in train, {found.pictures['test']} in test), so test figures are too good; "
            f"split: {{test: 0.2, seed: 0, group: {column}}} keeps them apart, where source and manifest name no split"
        )
        if spec.ledger.strict:
            raise Refusal(f"data set {name}: {told}; or set ledger.strict: false")
        ledger.notes.append(told)
    return found


def _samples(rows: list[Row], facts: npt.NDArray[Any], spool: BinaryIO, labels: Iterable[str]) -> Iterator[Sample]:
    for row in rows:
        yield Sample(
            _content(row, facts, spool), row.extension, {"name": row.name, **dict(zip(labels, row.labels, strict=True))}
        )


def _content(row: Row, facts: npt.NDArray[Any], spool: BinaryIO) -> bytes:
    return os.pread(spool.fileno(), int(facts["size"][row.fact]), int(facts["offset"][row.fact]))


def _picture(spec: DataSpec, row: Row, facts: npt.NDArray[Any], spool: BinaryIO) -> Pixels:
    return spec.input.picture(spec.input.read(_content(row, facts, spool)))


def _write_json(path: Path, content: Any) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)  # the order of splits and columns counts
    path.write_text(text + "\n", encoding="utf-8")
