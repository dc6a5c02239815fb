"""Write one split as webdataset tars whose bytes are a function of the samples alone (mtime 0, fixed-width keys).

A key is the sample's nine-digit number in its split; ``KEY.EXT`` holds the picture's bytes as they came, ``KEY.json``
its name in the source and its labels. Where a picture lies is reckoned while writing: in a tar of short names a member
is a header of 512 bytes and its content, filled up to a multiple of 512. The bytes are those of webdataset's writer,
whose import alone would take half a gigabyte.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from pipeline.shards import ShardFile

SAMPLES = 2048
"""most samples in a shard"""

BYTES = 2**30
"""size at which a shard is closed, so that long recordings make many: it is at most one sample larger"""

BLOCK = 512
"""bytes of a tar's header; contents are filled up to a multiple of it"""


@dataclass(frozen=True)
class Sample:
    """What is stored of one sample: its bytes, their true extension, its name and labels."""

    content: bytes
    extension: str
    description: dict[str, Any]


class _Digested:
    """A file written once from start to end, with its SHA-256 and size."""

    def __init__(self, file: BinaryIO):
        self._file, self._hash, self.size = file, hashlib.sha256(), 0

    def write(self, *parts: bytes) -> None:
        for part in parts:
            self._hash.update(part)
            self.size += len(part)
            self._file.write(part)

    def digest(self) -> str:
        return self._hash.hexdigest()


def write_split(
    folder: Path, split: str, samples: Iterable[Sample], first: int, most: int = SAMPLES
) -> tuple[list[ShardFile], dict[str, npt.NDArray[Any]]]:
    """Write ``SPLIT-000000.tar`` and on, at most ``most`` samples or about ``BYTES`` each; one sample is in memory.

    Args:
        folder: where to write.
        samples: in their final order.
        first: position of the first of these shards in the data set's list of shards.

    Returns: the shards, and where the pictures lie: "shard" (position in the list), "offset" and "size" (bytes) (N,).
    """
    shards: list[ShardFile] = []
    rows: list[tuple[int, int, int]] = []
    remaining = iter(samples)
    for opening in remaining:
        path = folder / f"{split}-{len(shards):06d}.tar"
        before = len(rows)
        with path.open("wb") as file:
            digested = _Digested(file)
            inside = _while_small(digested, islice(chain([opening], remaining), most))
            for offset, size in _write(digested, inside, before):
                rows.append((first + len(shards), offset, size))
            digested.write(bytes(2 * BLOCK), bytes(-(digested.size + 2 * BLOCK) % tarfile.RECORDSIZE))
        count = len(rows) - before
        shards.append(
            ShardFile(file=path.name, split=split, count=count, bytes=digested.size, sha256=digested.digest())
        )
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return shards, {name: table[:, place].copy() for place, name in enumerate(("shard", "offset", "size"))}


def _while_small(file: _Digested, samples: Iterator[Sample]) -> Iterator[Sample]:
    """Samples until a shard is full; none is taken that is not written."""
    while file.size < BYTES and (sample := next(samples, None)) is not None:
        yield sample


def _write(file: _Digested, samples: Iterable[Sample], number: int) -> Iterator[tuple[int, int]]:
    """Append samples with the keys from ``number`` on; yield each picture's offset and size."""
    for sample in samples:
        text = json.dumps(sample.description, ensure_ascii=False, allow_nan=False).encode()
        members = {sample.extension: sample.content, "json": text}
        for extension, content in sorted(members.items()):  # webdataset's order
            file.write(_header(f"{number:09d}.{extension}", len(content)))
            if extension == sample.extension:
                yield file.size, len(content)
            file.write(content, bytes(-len(content) % BLOCK))
        number += 1


def _header(name: str, size: int) -> bytes:
    """The header of a member, as webdataset's writer makes it with mtime 0."""
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.uname, member.gname = size, 0o444, "bigdata", "bigdata"
    return member.tobuf(tarfile.USTAR_FORMAT)
