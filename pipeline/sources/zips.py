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
SIZES_BESIDE, NAME_BESIDE = 0x1, 0x7075
"""extra fields: sizes of eight bytes, the name in UTF-8"""


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
            name = _name(info.orig_filename, info.flag_bits, info.extra)
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


def _fields(extra: bytes) -> dict[int, bytes]:
    """The extra fields of a header by their number (4.5.1)."""
    found = {}
    while len(extra) >= 4:
        number, size = struct.unpack_from("<HH", extra)
        found[number] = extra[4 : 4 + size]
        extra = extra[4 + size :]
    return found


def _name(name: str, flags: int, extra: bytes) -> str:
    """A member's name: UTF-8 where it is that, even where the writer did not say so; ``/`` between folders."""
    if not flags & UTF8:
        with suppress(UnicodeDecodeError, UnicodeEncodeError):
            written = name.encode("cp437")
            beside = _fields(extra).get(NAME_BESIDE, b"")  # version, CRC-32 of the other name, the name (4.6.9)
            meant = beside[5:] if beside[1:5] == zlib.crc32(written).to_bytes(4, "little") else written
            name = meant.decode("utf-8")
    return printable(name if "/" in name else name.replace("\\", "/"))


def _without_directory(path: Path, fault: str) -> Iterator[Item]:
    """What stands before the cut, by the headers before each member."""
    whole = 0
    with path.open("rb") as file:
        while len(header := file.read(LOCAL.size)) == LOCAL.size:
            sign, _, flags, method, _, _, crc, packed, size, name_size, extra_size = LOCAL.unpack(header)
            if sign != b"PK\3\4":
                break
            written, extra = file.read(name_size), file.read(extra_size)
            name = _name(written.decode("utf-8" if flags & UTF8 else "cp437", "replace"), flags, extra)
            sizes = _fields(extra).get(SIZES_BESIDE, b"")
            if size == 0xFFFFFFFF and len(sizes) >= 16:
                size, packed = struct.unpack_from("<QQ", sizes)
            if name.endswith("/"):
                continue
            reason = unfit_name(name, size) or (("encrypted", "") if flags & ENCRYPTED else None)
            after = (24 if sizes else 16) if flags & SIZES_AFTER else 0
            content = _read_on(file, method, packed, size, crc, after)
            if content is None:
                yield Refused(name, *(reason or (CUT, "its end is missing")))
                break
            whole += 1
            yield Refused(name, *reason) if reason else Record(name, content)
    if not whole:
        raise Refusal(f"{path}: a zip cut or damaged from its start ({fault}); copy it again")
    yield Note(f"{path.name} is cut or damaged after {whole} members ({fault}); what follows is lost")


def _read_on(file: BinaryIO, method: int, packed: int, size: int, crc: int, after: int) -> bytes | None:
    """A member's content from here on, the file left behind it (and behind the ``after`` bytes that tell its sizes);
    None where it cannot be read whole."""
    if method == zipfile.ZIP_STORED and not after and max(packed, size) <= MEMBER_LIMIT:
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
    if after and undo.eof:
        told = file.read(after)
        signed = told[:4] == b"PK\7\10"
        crc = struct.unpack_from("<I", told, 4 if signed else 0)[0] if len(told) == after else -1
        file.seek(0 if signed else -4, 1)
    return data if undo.eof and zlib.crc32(data) == crc else None
