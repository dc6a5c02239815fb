"""Raw data to shards: every raw file is decoded once and accounted for; kept + refused = seen.

Two passes keep memory flat. The first decodes each record, measures it and appends its bytes to a spool; the second
writes the shards in the order of a hash of the names, so that no shard holds one class only. Everything written is a
function of the raw data and the spec.
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
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from pipeline.data import DataSpec, HashSplit
from pipeline.images import Pixels, Unreadable, decode, fit_image
from pipeline.ledger import Ledger
from pipeline.shards import CARD, INDEX, LEDGER, Column, DataCard, ShardFile, sha256
from pipeline.sources import ColumnKind, Item, Note, Record, Refused
from pipeline.spec import Refusal, digest
from pipeline.tars import SAMPLES, Sample, write_split

SPLITS = ("train", "test")


@dataclass(frozen=True, slots=True)
class _Row:
    """What the first pass remembers of a kept record; its bytes are in the spool."""

    order: bytes
    name: str
    split: str
    labels: tuple[str | float, ...]
    shape: tuple[int, int]
    """height and width of the file's picture"""
    extension: str
    offset: int
    size: int


class _Moments:
    """Exact sums over the canvas of a split, and so the same in any order."""

    def __init__(self, channels: int):
        self.count, self.sums, self.squares = 0, np.zeros(channels, np.int64), np.zeros(channels, np.int64)

    def add(self, picture: Pixels) -> None:
        values = picture.reshape(len(picture), -1).astype(np.int64)  # (C, H·W)
        self.count += values.shape[1]
        self.sums += values.sum(axis=1)
        self.squares += (values * values).sum(axis=1)

    def mean_std(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        n, pairs = self.count, [(int(s), int(q)) for s, q in zip(self.sums, self.squares, strict=True)]
        mean = tuple(s / (255 * n) for s, _ in pairs)
        return mean, tuple(math.sqrt(n * q - s * s) / (255 * n) for s, q in pairs)


def shard(
    spec: DataSpec,
    name: str,
    raw: Path | None,
    folder: Path,
    progress: Callable[[Iterable[Item]], Iterable[Item]] = iter,
    most: int = SAMPLES,
) -> tuple[DataCard, Ledger]:
    """Write a data set as shards, card, index and ledger into ``folder``, which exists and is empty.

    Args:
        spec: what to read and how.
        name: of the data set, for the card.
        raw: raw path, for sources that are not embedded.
        folder: where to write.
        progress: wraps the raw files as they pass.
        most: pictures in a shard.

    Raises:
        Refusal: the raw data cannot be used as a whole; one line says why.
    """
    ledger, moments = Ledger(), _Moments(spec.input.channels)
    spool_path = folder / "spool.partial"
    with spool_path.open("w+b") as spool:
        rows = list(_keep(spec, progress(spec.source.records(raw)), spool, ledger, moments))
        spool.flush()
        ledger.kept = len(rows)
        _refuse_unusable(name, rows, ledger)
        rows.sort(key=lambda row: (row.order, row.name))
        columns = {
            label: _column(name, label, kind, rows, position)
            for position, (label, kind) in enumerate(spec.columns().items())
        }
        shards: list[ShardFile] = []
        arrays: dict[str, npt.NDArray[Any]] = {}
        for split in SPLITS:
            inside = [row for row in rows if row.split == split]
            files, places = write_split(folder, split, _samples(inside, spool, spec.labels), len(shards), most)
            shards += files
            arrays |= {f"{split}.{what}": values for what, values in places.items()}
            arrays[f"{split}.shape"] = np.array([row.shape for row in inside], dtype=np.int32).reshape(-1, 2)
            for position, (label, column) in enumerate(columns.items()):
                arrays[f"{split}.label.{label}"] = _codes(column, [row.labels[position] for row in inside])
    spool_path.unlink()
    np.savez(folder / INDEX, **arrays)  # type: ignore[arg-type]
    mean, std = moments.mean_std()
    plain = {label: column.model_dump(mode="json") for label, column in columns.items()}
    card = DataCard(
        name=name,
        input=spec.input,
        splits={split: sum(row.split == split for row in rows) for split in SPLITS},
        columns=columns,
        mean=mean,
        std=std,
        shards=tuple(shards),
        index_sha256=sha256(folder / INDEX),
        fingerprint=digest(
            {"shards": [file.sha256 for file in shards], "columns": plain, "input": spec.input.model_dump(mode="json")}
        ),
    )
    _write_json(folder / LEDGER, ledger.plain())
    _write_json(folder / CARD, card.model_dump(mode="json"))
    return card, ledger


def _keep(spec: DataSpec, items: Iterable[Item], spool: BinaryIO, ledger: Ledger, moments: _Moments) -> Iterator[_Row]:
    """The first pass: decode, account, measure, spool."""
    names: set[tuple[str | None, str]] = set()
    offset = 0
    for item in items:
        if isinstance(item, Note):
            ledger.notes.append(item.text)
        elif isinstance(item, Refused):
            ledger.refused.append(item)
        elif (item.split, item.name) in names:
            ledger.refused.append(Refused(item.name, "repeated name", "the first of that name was kept"))
        else:
            names.add((item.split, item.name))
            try:
                pixels, extension = decode(item.content)
                picture = fit_image(pixels, spec.input)
            except Unreadable as fault:
                ledger.refused.append(Refused(item.name, fault.reason, fault.detail))
                continue
            except Refusal as fault:
                ledger.refused.append(Refused(item.name, "wrong channels", str(fault)))
                continue
            split = item.split or _side(item, spec.split)
            if split == "train":
                moments.add(picture)
            spool.write(item.content)
            labels = tuple(item.labels[label] for label in spec.labels)
            order = _hash(f"order/{item.name}")
            yield _Row(order, item.name, split, labels, pixels.shape[:2], extension, offset, len(item.content))
            offset += len(item.content)


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _side(record: Record, split: HashSplit | None) -> str:
    assert split is not None  # a rule of DataSpec
    part = int.from_bytes(_hash(f"split/{split.seed}/{record.name}")[:8], "big") / 2**64
    return "test" if part < split.test else "train"


def _refuse_unusable(name: str, rows: list[_Row], ledger: Ledger) -> None:
    counts = Counter(row.split for row in rows)
    told = f"data set {name}: {ledger.summary()}"
    if not rows:
        raise Refusal(f"{told}: no picture is left")
    if counts["train"] < 2:
        raise Refusal(f"{told}: {counts['train']} picture(s) to train on, at least 2 are needed")
    if not counts["test"]:
        raise Refusal(f"{told}: the test split is empty; raise split.test or add pictures")


def _column(name: str, label: str, kind: ColumnKind, rows: list[_Row], position: int) -> Column:
    values = {row.labels[position] for row in rows}
    trained = {row.labels[position] for row in rows if row.split == "train"}
    if len(trained) < 2:
        only = f"the one {'class' if kind == 'class' else 'value'} {next(iter(trained))!r} to train on"
        raise Refusal(f"data set {name}: column '{label}' has only {only}; take it out of labels, or mend the data")
    if kind == "number":
        return Column(kind=kind, classes=(), counts={})
    classes = tuple(sorted(str(value) for value in values))
    counts = {split: Counter(row.labels[position] for row in rows if row.split == split) for split in SPLITS}
    return Column(
        kind=kind,
        classes=classes,
        counts={split: tuple(counted[value] for value in classes) for split, counted in counts.items()},
    )


def _codes(column: Column, values: list[str | float]) -> npt.NDArray[Any]:
    if column.kind == "number":
        return np.array(values, dtype=np.float64)
    code = {value: number for number, value in enumerate(column.classes)}
    return np.array([code[str(value)] for value in values], dtype=np.int64)


def _samples(rows: list[_Row], spool: BinaryIO, labels: tuple[str, ...]) -> Iterator[Sample]:
    for row in rows:
        content = os.pread(spool.fileno(), row.size, row.offset)
        yield Sample(content, row.extension, {"name": row.name, **dict(zip(labels, row.labels, strict=True))})


def _write_json(path: Path, content: Any) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)  # the order of splits and columns counts
    path.write_text(text + "\n", encoding="utf-8")
