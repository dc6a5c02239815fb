"""Decode every raw picture once, on several processes: what it is, whether it is kept, and the bytes that are stored.

The outcome of a picture is a function of its bytes and the canvas, and outcomes come back in the order of the pictures;
so the number of processes changes nothing. A few chunks are in flight at a time, so memory stays flat.
"""

from __future__ import annotations

import hashlib
import os
import signal
import stat
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from itertools import chain, islice
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import TypeVar

import numpy as np

from pipeline.modalities import Modality
from pipeline.samples import Unreadable
from pipeline.sources import Item, Record
from pipeline.sources.names import MEMBER_LIMIT
from pipeline.spec import Refusal

CHUNK_RECORDS, CHUNK_BYTES = 64, 2**22
INLINE = 4
"""chunks that are decoded before other processes are started: small data sets need none"""


@dataclass(frozen=True, slots=True)
class Kept:
    """A picture that is kept."""

    extension: str
    shape: tuple[int, int]
    """its two sides, as the contract names them"""
    content: bytes | None
    """what is stored; None: the record's own bytes"""
    size: int
    """of what is stored, bytes"""
    digest: bytes
    """SHA-256 of the raw bytes, the first 16"""
    moments: bytes
    """sums and sums of squares over the canvas, (2, C) float64"""
    odd: tuple[str, ...] = ()
    """what a user should know of it, as ``Taken`` says it"""


@dataclass(frozen=True, slots=True)
class Lost:
    """A raw file that is no usable picture: why."""

    reason: str
    detail: str


Outcome = Kept | Lost
FAULTS = (Unreadable, OSError, Refusal)
Work = tuple[bytes | Path, bool]
"""A record's content, and whether it is an .npy of a source."""
Found = TypeVar("Found")


@dataclass
class _Chunk:
    items: list[Item] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)
    bytes: int = 0


def lost(fault: Unreadable | OSError | Refusal) -> Lost:
    """What a fault of reading a raw sample is in the ledger; ``FAULTS`` are all there are."""
    if isinstance(fault, Unreadable):
        return Lost(fault.reason, fault.detail)
    if isinstance(fault, OSError):
        return Lost("cannot be opened", str(fault.strerror))
    return Lost("wrong channels", str(fault))


def take(content: bytes | Path, array: bool, canvas: Modality) -> Outcome:
    """Judge one raw sample.

    Args:
        content: its bytes, or the file that holds them.
        array: whether the bytes are an .npy of a source.
        canvas: the data set's ``input``.
    """
    try:
        raw = _read(content) if isinstance(content, Path) else content
        found = canvas.take(raw, array)
    except FAULTS as fault:
        return lost(fault)
    whole = isinstance(content, Path) and found.stored is None
    stored = raw if whole else found.stored
    moments = np.asarray(found.moments, np.float64).tobytes()
    digest = hashlib.sha256(raw).digest()[:16]
    return Kept(
        found.extension, found.shape, stored, len(raw if stored is None else stored), digest, moments, found.odd
    )


def taken(items: Iterable[Item], canvas: Modality, workers: int) -> Iterator[tuple[Item, Outcome | None]]:
    """Yield every item in order, each record with its outcome; records are judged on ``workers`` processes."""
    return judged(items, canvas, workers, take_all)


def judged(
    items: Iterable[Item], canvas: Modality, workers: int, judge: Callable[[list[Work], Modality], list[Found]]
) -> Iterator[tuple[Item, Found | None]]:
    """Yield every item in order, each record with what ``judge`` makes of it on one of ``workers`` processes.

    Raises:
        Refusal: a process ended before its time, as one does that the system stops for want of memory.
    """
    chunks = _chunked(items)
    for chunk in chunks if workers == 1 else islice(chunks, INLINE):
        yield from _told(chunk, judge(chunk.work, canvas))
    following = next(chunks, None)
    if following is None:
        return
    pool = ProcessPoolExecutor(workers, get_context("forkserver"), initializer=_settle)
    flying: deque[tuple[_Chunk, Future[list[Found]]]] = deque()
    try:
        for chunk in chain([following], chunks):
            flying.append((chunk, pool.submit(judge, chunk.work, canvas)))
            while len(flying) > 2 * workers:
                done, future = flying.popleft()
                yield from _told(done, future.result())
        while flying:
            done, future = flying.popleft()
            yield from _told(done, future.result())
    except BrokenProcessPool:
        raise Refusal(
            "a decoding process was ended, perhaps for want of memory; run again, or with LATENT_WORKERS=1"
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def take_all(work: list[Work], canvas: Modality) -> list[Outcome]:
    """``take`` each."""
    return [take(content, array, canvas) for content, array in work]


def _read(path: Path) -> bytes:
    """A regular file's bytes; a pipe or a link that has taken its place is not read. Raises OSError, Unreadable."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > MEMBER_LIMIT:
            raise Unreadable("no regular file", "has become something else while it was read")
        return file.read()


def _chunked(items: Iterable[Item]) -> Iterator[_Chunk]:
    chunk = _Chunk()
    for item in items:
        chunk.items.append(item)
        if isinstance(item, Record):
            chunk.work.append((item.content, item.array))
            chunk.bytes += len(item.content) if isinstance(item.content, bytes) else _size(item.content)
        if len(chunk.items) >= CHUNK_RECORDS or chunk.bytes >= CHUNK_BYTES:
            yield chunk
            chunk = _Chunk()
    if chunk.items:
        yield chunk


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _told(chunk: _Chunk, outcomes: list[Found]) -> Iterator[tuple[Item, Found | None]]:
    remaining = iter(outcomes)
    for item in chunk.items:
        yield item, next(remaining) if isinstance(item, Record) else None


def _settle() -> None:
    """In a decoding process: an interrupt is the parent's to answer, and its end is this process's end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:

        def end_with_it() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=end_with_it, daemon=True).start()
