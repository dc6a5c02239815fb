"""Archives (tar, tar.gz, zip) of pictures, one file a split or one file for all, as they are: ``class/name.ext``.

An archive is streamed, nothing is ever extracted to disk, and every member but folders is accounted for. What a member
is called decides only its class; what it is, its bytes decide. Links, devices, absolute paths and paths with ``..`` are
refused, hidden and system files are no classes, and damage that Python's ``tarfile`` would pass over in silence (it
ends at the first header that it cannot read) is noticed and told.
"""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, ClassVar, Literal, Self, cast

from pipeline.sources.classed import Classed
from pipeline.sources.names import file_of, printable, unfit_name
from pipeline.sources.record import Item, Note, Record, Refused
from pipeline.sources.zips import zip_members
from pipeline.spec import Refusal

NAME_LIMIT = 2**20
"""bytes of a header that only carries a long name or other attributes"""

NAMING = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
OTHER = {b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "Zstandard", b"7z\xbc\xaf": "7-Zip", b"Rar!": "RAR"}
DAMAGE = (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile)


class Archive(Classed):
    """Pictures in a tar, tar.gz or zip a split, or in one for all."""

    kind: Literal["archive"]
    place: ClassVar[str] = "file"

    def records(self, raw: Path | None) -> Iterator[Item]:
        """Yield every member of the archives: a record, or why it is none.

        Raises:
            Refusal: a file is not there (the nearest name is told) or no tar.
        """
        found = [(file_of(raw, name, split or "train"), split) for name, split in self.parts()]
        for path, split in found:
            for item in members(path):
                if isinstance(item, Record):
                    folders = PurePosixPath(item.name).parts[:-1]
                    yield self.labelled(item.name, item.content, folders[0] if folders else None, split)
                else:
                    yield item


def members(path: Path) -> Iterator[Item]:
    """Stream a tar, tar.gz or zip: a record without labels, or a refusal, for every member that is no folder.

    A cut or damaged archive yields what came before the damage, one refusal for the member in which it is, and a note.

    Raises:
        Refusal: not an archive at all, or damaged from the start.
    """
    with path.open("rb") as file:
        sign = file.read(6)
    if sign[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        yield from zip_members(path)
        return
    for start, word in OTHER.items():
        if sign.startswith(start):
            raise Refusal(f"{path}: {word}, which is not read; unpack it, or pack it as tar, tar.gz or zip")
    inside, whole = path.name, 0  # the member being read, and how many were
    with path.open("rb") as file:
        length = path.stat().st_size
        gzipped = file.peek(2)[:2] == b"\x1f\x8b"
        stream = cast(BinaryIO, gzip.GzipFile(fileobj=file, mode="rb") if gzipped else file)
        try:
            with tarfile.open(fileobj=stream, mode="r:", tarinfo=_Member, encoding="utf-8") as tar:
                while (member := tar.next()) is not None:
                    cast(Any, tar).members.clear()  # else every header stays in memory
                    inside = printable(member.name)
                    if not gzipped and not member.issparse() and member.offset_data + member.size > length:
                        raise tarfile.ReadError("unexpected end of data")  # not even sought for
                    if not member.isdir():
                        reason = unfit(member, inside)
                        yield Refused(inside, *reason) if reason else Record(inside, _content(tar, member))
                    whole, inside = whole + 1, f"{path.name} after {inside}"
                if stream.tell() <= tar.offset and not stream.read(1):
                    yield Note(f"{path.name} lacks the blocks that end an archive; it may be cut")
                elif any(chunk.strip(b"\0") for chunk in iter(lambda: stream.read(2**20), b"")):
                    yield Note(f"{path.name} has data after its end, which is not read")
        except DAMAGE as error:
            if not whole:
                raise Refusal(f"{path}: not a tar, tar.gz or zip, or damaged from its start ({error})") from None
            yield Refused(inside, "archive cut or damaged", str(error))
            yield Note(f"{path.name} is cut or damaged after {whole} members; what follows is lost")


class _Member(tarfile.TarInfo):
    """A header that raises where ``tarfile`` would end the archive in silence, or read a name of any length."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        try:
            member = super().frombuf(buf, encoding, errors)
        except (tarfile.EmptyHeaderError, tarfile.EOFHeaderError):  # type: ignore[attr-defined]
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(f"unreadable header: {error}") from None
        if member.size < 0 or (member.type in NAMING and member.size > NAME_LIMIT):
            raise tarfile.ReadError(f"impossible size in a header: {member.size} bytes")
        return member


def unfit(member: tarfile.TarInfo, name: str) -> tuple[str, str] | None:
    """Why a member is not read (reason, detail), or None."""
    if not member.isreg() or member.issparse():
        kind = "link" if member.issym() or member.islnk() else "sparse file" if member.isreg() else "device or pipe"
        return "no regular file", f"{kind} to {printable(member.linkname)}" if kind == "link" else kind
    return unfit_name(name, member.size)


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    assert file is not None  # a regular file
    return file.read()
