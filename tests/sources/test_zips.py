"""Zips: every member is a record or a refusal, whole or cut, whatever wrote the names."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.images import encode_png
from pipeline.sources import Note, Record, Refused
from pipeline.sources.archive import members
from pipeline.spec import Refusal

PICTURE = encode_png(np.random.default_rng(0).integers(0, 256, (6, 5, 3), dtype=np.uint8))
FOUR = [f"cat/{number}.png" for number in range(4)]


def packed(names: list[Any], method: int = zipfile.ZIP_DEFLATED, stream: bool = False, wide: bool = False) -> bytes:
    """A zip; by a stream that cannot be sought, so that sizes stand behind the members; wide: of eight bytes."""
    buffer = io.BytesIO()

    class Unseekable(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            return buffer.write(data)

    with zipfile.ZipFile(Unseekable() if stream else buffer, "w", method) as archive:
        for name in names:
            if wide:
                with archive.open(name, "w", force_zip64=True) as file:
                    file.write(PICTURE)
            else:
                archive.writestr(name, b"" if str(name).endswith("/") else PICTURE)
    return buffer.getvalue()


def walked(folder: Path, content: bytes) -> tuple[list[str], dict[str, str], list[str]]:
    path = folder / "some.zip"
    path.write_bytes(content)
    items = list(members(path))
    assert all(item.content == PICTURE for item in items if isinstance(item, Record))
    return (
        [item.name for item in items if isinstance(item, Record)],
        {item.name: item.reason for item in items if isinstance(item, Refused)},
        [item.text for item in items if isinstance(item, Note)],
    )


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("stream", [False, True])
def test_a_whole_zip_gives_every_member_and_no_note(tmp_path: Path, method: int, stream: bool) -> None:
    assert walked(tmp_path, packed(["cat/", *FOUR], method, stream)) == (FOUR, {}, [])


def special(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, mode << 16
    return info


def test_hostile_members_are_refused_each_by_its_reason(tmp_path: Path) -> None:
    hostile = {
        "../up.png": "unsafe path",
        "/etc/x.png": "unsafe path",
        "a/../../x.png": "unsafe path",
        "__MACOSX/cat/._0.png": "hidden or system file",
        "cat/.DS_Store": "hidden or system file",
    }
    links = [special("cat/link.png", 0o120777), special("cat/pipe.png", 0o010644)]
    kept, refused, notes = walked(tmp_path, packed([*hostile, *links, *FOUR]))
    assert kept == FOUR
    assert refused == {**hostile, "cat/link.png": "no regular file", "cat/pipe.png": "no regular file"}
    assert notes == []


def test_encrypted_members_are_refused_and_the_others_kept(tmp_path: Path) -> None:
    content = bytearray(packed(FOUR))
    at = content.index(b"PK\1\2")
    content[at + 8] |= 1  # in the directory; the first member
    content[6] |= 1
    kept, refused, _ = walked(tmp_path, bytes(content))
    assert (kept, refused) == (FOUR[1:], {"cat/0.png": "encrypted"})


def test_names_are_read_in_the_encoding_that_wrote_them(tmp_path: Path) -> None:
    for written, read in (
        (b"cat/\xc3\xbc.png", "cat/ü.png"),
        (b"cat/\x81.png", "cat/ü.png"),
        (b"cat\\1.png", "cat/1.png"),
    ):
        placeholder = "x" * len(written)
        content = packed([placeholder]).replace(placeholder.encode(), written)
        assert walked(tmp_path, content)[0] == [read]
    assert walked(tmp_path, packed(["cat/画像.png", "cat/" + "n" * 204 + ".png"]))[0] == [
        "cat/画像.png",
        "cat/" + "n" * 204 + ".png",
    ]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_zip_cut_anywhere_keeps_the_whole_members_and_says_so(tmp_path: Path, method: int) -> None:
    whole = packed(FOUR, method)
    ends = [whole.index(b"PK\3\4", 1), whole.index(b"PK\1\2")]
    assert walked(tmp_path, whole[: ends[1] + 10])[0] == FOUR
    for cut in range(ends[0], ends[1], 37):
        kept, refused, notes = walked(tmp_path, whole[:cut])
        assert kept == FOUR[: len(kept)]
        assert len(kept) == cut // ends[0]
        assert set(refused.values()) <= {"archive cut or damaged"}
        assert "what follows is lost" in notes[0]
    with pytest.raises(Refusal, match="a zip cut or damaged from its start"):
        walked(tmp_path, whole[: ends[0] - 20])


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("stream", [False, True])
def test_a_zip_that_is_cut_keeps_its_whole_members_streamed_or_with_sizes_of_eight_bytes(
    tmp_path: Path, stream: bool, wide: bool
) -> None:
    whole = packed(FOUR, stream=stream, wide=wide)
    kept, _, notes = walked(tmp_path, whole[: int(whole.index(b"PK\1\2") * 0.8)])
    assert kept == FOUR[:3]
    assert len(notes) == 1
    assert walked(tmp_path, whole)[0] == FOUR


def test_a_name_in_utf_8_beside_another_one_is_the_members_name_unless_it_is_of_another(tmp_path: Path) -> None:
    for crc, read in ((zlib.crc32(b"x.png"), "cat/画像.png"), (7, "x.png")):
        info = zipfile.ZipInfo("x.png")
        name = "cat/画像.png".encode()
        info.extra = struct.pack("<HHBI", 0x7075, 5 + len(name), 1, crc) + name
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr(info, PICTURE)
        for content in (buffer.getvalue(), buffer.getvalue()[:-30]):  # with its directory, and without
            assert walked(tmp_path, content)[0] == [read]


def test_a_flipped_bit_is_found_by_its_checksum_and_costs_one_member(tmp_path: Path) -> None:
    content = bytearray(packed(FOUR, zipfile.ZIP_STORED))
    content[content.index(PICTURE) + 20] ^= 4
    kept, refused, _ = walked(tmp_path, bytes(content))
    assert (kept, refused) == (FOUR[1:], {"cat/0.png": "archive cut or damaged"})


def test_a_member_that_promises_gigabytes_allocates_nothing(tmp_path: Path) -> None:
    content = packed(FOUR)
    at = content.index(b"PK\1\2")
    huge = content[: at + 24] + (2**31).to_bytes(4, "little") + content[at + 28 :]
    tracemalloc.start()
    kept, refused, _ = walked(tmp_path, huge)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (kept, refused) == (FOUR[1:], {"cat/0.png": "too large"})
    assert peak < 2**22


@pytest.mark.parametrize(
    ("start", "word"), [(b"BZh9", "bzip2"), (b"\xfd7zXZ\0", "xz"), (b"7z\xbc\xaf\x27\x1c", "7-Zip")]
)
def test_other_packings_are_named_with_the_remedy(tmp_path: Path, start: bytes, word: str) -> None:
    with pytest.raises(Refusal, match=f"{word}, which is not read; unpack it, or pack it as tar, tar.gz or zip"):
        walked(tmp_path, start + bytes(600))
