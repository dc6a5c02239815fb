"""A sample of the pictures at a path: how many there are, of which classes, and the canvas that suits them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from pipeline.audio import Audio, Decoded
from pipeline.images import Input, Unreadable
from pipeline.looking.one import Pictured, looked
from pipeline.looking.series import Measured, contract_of
from pipeline.looking.tables import Table
from pipeline.modalities import Modality
from pipeline.samples import ANYTHING, several
from pipeline.series import Series
from pipeline.sources import Archive, Folder, Record, Refused, Source
from pipeline.spec import Refusal

SAMPLE, DECODED, SECONDS, TRIED = 200_000, 64, 15.0, 16
"""most files that are listed, most that are decoded, how long listing may take, and about how many a guess is tried on
"""


@dataclass
class Seen:
    """What was found at a path."""

    raw: Path
    """what the index names"""
    source: Source
    words: str
    """what it is, for the user"""
    table: Table | None = None
    canvas: Input | Audio | Series | None = None
    """the one that suits; None where it was known before"""
    group: str | None = None
    """a column of the source whose equal values belong on one side"""
    classes: Counter[str] = field(default_factory=Counter)
    """pictures of each class, of those that were listed and are not kept for testing"""
    count: int = 0
    """pictures that were listed"""
    loose: int = 0
    """of them, those that lie in no folder"""
    train: int = 0
    """of them, those that the source does not keep for testing"""
    whole: bool = True
    """whether all were"""
    remarks: list[str] = field(default_factory=list)


def records(source: Source, raw: Path) -> Iterator[Record]:
    """The records of a source, for a while."""
    started = time.monotonic()
    for item in source.records(raw):
        if isinstance(item, Record):
            yield item
        elif isinstance(item, Refused) and time.monotonic() - started > SECONDS:
            return
        if time.monotonic() - started > SECONDS:
            return


def measure(seen: Seen, contract: Modality | None = None) -> None:
    """Count the samples and their classes, and choose the canvas by some of them where no ``contract`` is known."""
    kept: list[Record] = []
    step, started = 1, time.monotonic()
    source, levels = seen.source, 0
    if isinstance(source, Folder | Archive):  # to see what lies in no folder, too
        levels = int(isinstance(source, Folder) and source.test is not None)
        source = source.model_copy(update={"classes": None})
    for number, record in enumerate(islice(records(source, seen.raw), SAMPLE)):
        seen.count = number + 1
        seen.train += record.split != "test"
        folders = record.name.split("/")[levels:-1]
        seen.loose += not folders
        if record.split != "test" and ("label" in record.labels or (source is not seen.source and folders)):
            seen.classes[str(record.labels.get("label", folders[0] if folders else ""))] += 1
        if number % step == 0:
            kept.append(record)
            if len(kept) > 2 * DECODED:
                kept, step = kept[::2], 2 * step
    if not seen.count:
        wanted = ANYTHING if contract is None else several(contract.word)
        raise Refusal(f"--data {seen.raw}: no file in it could be one of {wanted}; give the folder that holds them")
    seen.whole = seen.count < SAMPLE and time.monotonic() - started < SECONDS
    if contract is not None and not isinstance(contract, Input):  # of pictures the range may be left to guess
        _judge(seen, kept, contract)
        return
    sounds: list[Decoded] = []
    series: list[Measured] = []
    pictures: list[Pictured] = []
    reasons = Counter[str]()
    for record in kept:
        content = record.content.read_bytes() if isinstance(record.content, Path) else record.content
        try:
            found = looked(record.name, content, record.array)
        except Unreadable as fault:
            reasons[str(fault)] += 1
            continue
        match found:
            case Decoded():
                sounds.append(found)
            case Measured():
                series.append(found)
            case Pictured():
                pictures.append(found)
    least = "sample" if contract is None else contract.word
    if not (sounds or series or pictures):
        why = reasons.most_common(1)[0][0]
        raise Refusal(f"--data {seen.raw}: no {least} among {len(kept)} files looked at: {why}")
    most = len(series) > max(len(pictures), len(sounds)), len(sounds) > len(pictures)
    word = "series" if most[0] else "sounds" if most[1] else "pictures"
    others = {"pictures": len(pictures), "sounds": len(sounds), "series": len(series)}
    others.pop(word)
    if other := reasons.total() + sum(others.values()):
        told = [f"{count} are {name}" for name, count in others.items() if count]
        told += [f"{count}: {reason}" for reason, count in reasons.most_common(1)]
        seen.remarks.append(f"{other} of {len(kept)} files looked at are no {word} ({'; '.join(told)})")
    if word == "series":
        seen.canvas, told_of = contract_of(series)
        seen.remarks += [*told_of, *_refused(kept, seen.canvas)]
    elif word == "sounds":
        seen.canvas = _clip(sounds)
    else:
        wide = [each.values for each in pictures if each.values is not None]
        seen.canvas = _canvas(np.array([each.shape for each in pictures]), _range(wide) if wide else None)


def _refused(kept: list[Record], canvas: Series) -> Iterator[str]:
    """What the guessed contract would refuse, of some of the files that look like series."""
    reasons, tried = Counter[str](), kept[:: max(1, len(kept) // TRIED)]
    for record in tried:
        try:
            canvas.take(
                record.content.read_bytes() if isinstance(record.content, Path) else record.content, record.array
            )
        except (Unreadable, Refusal) as fault:
            reasons[str(fault)] += 1
    if reasons:
        why = reasons.most_common(1)[0][0]
        yield f"of {len(tried)} files that were tried {reasons.total()} would be refused: {why}"


def _judge(seen: Seen, kept: list[Record], contract: Modality) -> None:
    """Hold that some of the samples are what a contract reads. Raises Refusal."""
    reasons = Counter[str]()
    for record in kept:
        content = record.content.read_bytes() if isinstance(record.content, Path) else record.content
        try:
            contract.raw(content, record.array)
        except Unreadable as fault:
            reasons[str(fault)] += 1
    if reasons.total() == len(kept):
        least = f"no {contract.word} among {len(kept)} files looked at: {reasons.most_common(1)[0][0]}"
        raise Refusal(f"--data {seen.raw}: {least}")


def _clip(sounds: list[Decoded]) -> Audio:
    """The most frequent rate, at most 16 kHz, and a length that nine files in ten have at most, up to 4 seconds."""
    rate = min(16_000, Counter(each.rate for each in sounds).most_common(1)[0][0])
    lengths = np.array([each.values.shape[1] / each.rate for each in sounds])
    seconds = float(min(4.0, max(0.1, round(float(np.quantile(lengths, 0.9)), 1))))
    return Audio(kind="audio", rate=rate, seconds=seconds, channels=1, mix="mean", longer="centre", shorter="centre")


def _range(values: list[np.ndarray]) -> tuple[float, float]:
    """A range that holds the values: a usual one where it fits."""
    low = min(float(np.nanmin(one)) for one in values)
    high = max(float(np.nanmax(one)) for one in values)
    for usual in ((0.0, 1.0), (-1.0, 1.0), (0.0, 255.0), (0.0, 4095.0), (0.0, 65535.0)):
        if usual[0] <= low and high <= usual[1]:
            return usual
    return low, high if high > low else low + 1


def _canvas(shapes: np.ndarray, levels: tuple[float, float] | None) -> Input:
    """shapes (n, 3): height, width, channels."""
    sides, channels = shapes[:, :2], set(shapes[:, 2].tolist())
    middle = int(np.median(sides.min(axis=1)))
    uniform = bool((sides == sides[0]).all())
    height, width = (int(side) for side in sides[0]) if uniform and middle <= 64 else (0, 0)
    if not height or max(height, width) > 96:
        height = width = next((side for side in (64, 48, 32, 16) if side <= middle), 16)
    aspects = sides[:, 1] / sides[:, 0] / (width / height)
    even = bool(((aspects > 0.8) & (aspects < 1.25)).mean() > 0.9)
    number = 1 if channels == {1} else 3 if channels <= {1, 3} else max(channels)
    return Input(height=height, width=width, channels=number, fit="resize" if even else "cover", range=levels)
