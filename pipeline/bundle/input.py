"""Everything that lies at a path, as inputs of an encoder: folders, archives, shards, arrays, a table, or one file.

Every file is told of: a record, or why it is none. Archives that lie in a folder are opened where they lie; of the
pipeline's own shards, and of webdataset shards, the pictures are the records, and their descriptions are none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from pipeline.looking import PACKED, is_archive, look
from pipeline.looking.episodes import long_table
from pipeline.looking.tables import TABLES
from pipeline.modalities import Modality
from pipeline.series import Series
from pipeline.sources import Episodes, Item, Note, Record, Refused
from pipeline.sources.archive import members
from pipeline.sources.arrays import arrays_of
from pipeline.sources.folder import walked
from pipeline.sources.webdataset import LABELS, split_name
from pipeline.spec import Refusal, nearest

PART, PART_BYTES = 1024, 2**26
"""files of a part, and bytes of archive members in it, at most"""
OF_SHARDS = ("index.json", "index.npz", "ledger.json", "card.png")
"""What lies beside the pipeline's own shards and is none of their pictures."""


def items(path: Path, contract: Modality | None = None) -> Iterator[Item]:
    """Yield every file of a path, in a fixed order; of a long table, where series are read, every episode.

    Args:
        path: what is to be embedded.
        contract: what the encoder reads; that of series names the columns of a table.

    Raises:
        Refusal: no such path (the nearest is told), or an archive that cannot be read.
    """
    if path.is_dir():
        own = all((path / name).is_file() for name in OF_SHARDS[:2])
        for item, inside in walked(path):
            if own and inside in OF_SHARDS:
                continue
            if isinstance(item, Record) and inside.lower().endswith(PACKED):
                yield from _packed(path / inside, f"{inside}/")
            elif isinstance(item, (Record, Refused)):
                yield item
    elif not path.is_file():
        beside = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        remedy = nearest(path.name, beside)
        raise Refusal(f"{path}: no such file or folder" + (f"; {remedy}" if len(remedy) < 200 else ""))
    elif path.suffix.lower() in (".npy", ".npz") and not _one_series(path, contract):
        yield from look(path).source.records(path)
    elif path.suffix.lower() in TABLES and isinstance(contract, Series):
        yield from _tabled(path, contract)
    elif is_archive(path):
        yield from _packed(path, "")
    else:
        yield Record(path.name, path)


def _one_series(path: Path, contract: Modality | None) -> bool:
    """Whether arrays hold one series (steps, channels), as a file of a folder does, not many samples."""
    return isinstance(contract, Series) and all(len(shape) < 3 for shape, _ in arrays_of(path).values())


def _tabled(path: Path, contract: Series) -> Iterator[Item]:
    """The episodes of a long table; any other table is one series."""
    try:
        source = long_table(path, path).source
    except Refusal:
        yield Record(path.name, path)
        return
    assert isinstance(source, Episodes)
    yield from source.records(path, contract.names)


def _packed(path: Path, before: str) -> Iterator[Item]:
    """The members of an archive; one that cannot be read at all is a refused file where it lies in a folder."""
    beside = 0
    try:
        for item in members(path):
            if isinstance(item, Record) and split_name(item.name)[1] in LABELS:
                beside += 1
            elif isinstance(item, Record):
                yield Record(before + item.name, item.content)
            elif isinstance(item, Refused):
                yield Refused(before + item.name, item.reason, item.detail)
            else:
                yield item
    except Refusal as refusal:
        if not before:
            told = str(refusal).removeprefix(f"{path}: ")
            raise Refusal(f"{path}: {told}; give a folder, a whole archive, arrays, or one sample's file") from None
        yield Refused(before.rstrip("/"), "not an archive", str(refusal))
    if beside:
        yield Note(
            f"{before or path.name}: {beside} descriptions ({', '.join(sorted(LABELS))}) are no inputs", damage=False
        )


@dataclass
class Part:
    """Files that are embedded and written together."""

    number: int
    items: list[Item] = field(default_factory=list)
    key: str = ""
    """of names, sizes and contents or times: equal for unchanged files"""


def parts(found: Iterator[Item]) -> Iterator[Part]:
    """The files in parts that a resumed run cuts in the same way."""
    part, size, hashed = Part(0), 0, blake2b(digest_size=16)
    for item in found:
        part.items.append(item)
        hashed.update(repr(item if not isinstance(item, Record) else item.name).encode("utf-8", "backslashreplace"))
        if isinstance(item, Record) and isinstance(item.content, bytes):
            hashed.update(item.content)
            size += len(item.content)
        elif isinstance(item, Record) and isinstance(item.content, Path):
            hashed.update(_stamp(item.content))
        if len(part.items) >= PART or size >= PART_BYTES:
            part.key = hashed.hexdigest()
            yield part
            part, size, hashed = Part(part.number + 1), 0, blake2b(digest_size=16)
    if part.items:
        part.key = hashed.hexdigest()
        yield part


def _stamp(path: Path) -> bytes:
    try:
        status = path.stat()
    except OSError:
        return b"gone"
    return f"{status.st_size} {status.st_mtime_ns}".encode()
