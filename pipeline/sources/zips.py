"""The members of a zip, never extracted: by its directory at the end, or, where that is cut off, header by header.

Source: PKWARE, "APPNOTE.TXT, .ZIP File Format Specification", 6.3.10, 4.3.7 (local headers), 4.4.4 (flags).
"""

from __future__ import annotations

import lzma
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from pipeline.sources.names import MEMBER_LIMIT, printable, unfit_name
from pipeline.sources.record import Item, Note, Record, Refused
from pipeline.spec import Refusal

DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError, RuntimeError, struct.error)
CUT = "archive cut or damaged"
LOCAL = struct.Struct("<4sHHHHHIIIHH")
UTF8, ENCRYPTED, SIZES_AFTER = 0x800, 0x1, 0x8


def zip_members(path: Path) -> Iterator[Item]:
    """Yield a record or a refusal for every member that is no folder.

    Raises:
        Refusal: nothing in it can be read as a zip.
    """
    try:
        archive = zipfile.ZipFile(path)
    except DAMAGE as error:
        yield from _without_directory(path, str(error))
        return
    with archive:
        for info in archive.infolist():
            if info.is_dir():
                continue
            name = _name(info.orig_filename, info.flag_bits)
            mode = stat.S_IFMT(info.external_attr >> 16)
            reason = unfit_name(name, info.file_size)
            if mode not in (0, stat.S_IFREG):
                reason = "no regular file", "link" if mode == stat.S_IFLNK else "device or pipe"
            elif info.flag_bits & ENCRYPTED:
                reason = "encrypted", "unpack it with its password first"
            if reason is not None:
                yield Refused(name, *reason)
                continue
            try:
                yield Record(name, archive.read(info))
            except DAMAGE as error:
                yield Refused(name, CUT, str(error))


def _name(name: str, flags: int) -> str:
    """A member's name: UTF-8 where it is that, even where the writer did not say so; ``/`` between folders."""
    if not flags & UTF8:
        with suppress(UnicodeDecodeError, UnicodeEncodeError):
            name = name.encode("cp437").decode("utf-8")
    return printable(name if "/" in name else name.replace("\\", "/"))


def _without_directory(path: Path, fault: str) -> Iterator[Item]:
    """What stands before the cut, by the headers before each member."""
    whole = 0
    with path.open("rb") as file:
        while len(header := file.read(LOCAL.size)) == LOCAL.size:
            sign, _, flags, method, _, _, crc, packed, size, name_size, extra = LOCAL.unpack(header)
            if sign != b"PK\3\4":
                break
            name = _name(file.read(name_size).decode("utf-8" if flags & UTF8 else "cp437", "replace"), flags)
            file.seek(extra, 1)
            if name.endswith("/"):
                continue
            reason = unfit_name(name, size) or (("encrypted", "") if flags & ENCRYPTED else None)
            content = _read_on(file, method, packed, size, crc, bool(flags & SIZES_AFTER))
            if content is None:
                yield Refused(name, *(reason or (CUT, "its end is missing")))
                break
            whole += 1
            yield Refused(name, *reason) if reason else Record(name, content)
    if not whole:
        raise Refusal(f"{path}: a zip cut or damaged from its start ({fault}); copy it again")
    yield Note(f"{path.name} is cut or damaged after {whole} members ({fault}); what follows is lost")


def _read_on(file: BinaryIO, method: int, packed: int, size: int, crc: int, sizes_after: bool) -> bytes | None:
    """A member's content from here on, the file left behind it; None where it cannot be read whole."""
    if method == zipfile.ZIP_STORED and not sizes_after and max(packed, size) <= MEMBER_LIMIT:
        data = file.read(packed)
        return data if len(data) == packed == size and zlib.crc32(data) == crc else None
    if method != zipfile.ZIP_DEFLATED:
        return None
    undo, start, parts, total = zlib.decompressobj(-15), file.tell(), [], 0
    try:
        while not undo.eof and total <= MEMBER_LIMIT and (piece := file.read(2**16)):
            start += len(piece)
            while piece and not undo.eof and total <= MEMBER_LIMIT:
                parts.append(undo.decompress(piece, 2**20))
                total += len(parts[-1])
                piece = undo.unconsumed_tail
    except zlib.error:
        return None
    data = b"".join(parts)
    file.seek(start - len(undo.unused_data))
    if sizes_after and undo.eof:
        after = file.read(16)
        crc = struct.unpack_from("<I", after, 4 if after[:4] == b"PK\7\10" else 0)[0] if len(after) == 16 else -1
        file.seek(0 if after[:4] == b"PK\7\10" else -4, 1)
    return data if undo.eof and zlib.crc32(data) == crc else None
