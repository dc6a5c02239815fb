"""Archives: every member is a record or a refusal with its reason, whatever the archive holds or lacks."""

from __future__ import annotations

import gzip
import io
import tarfile
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.images import encode_png
from pipeline.sources import Archive, Note, Record, Refused
from pipeline.sources.archive import members
from pipeline.spec import Refusal

PICTURE = encode_png(np.random.default_rng(0).integers(0, 256, (6, 5, 3), dtype=np.uint8))
HOSTILE = Path("../shared/data/hostile/tars")
BLOCK = 512


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int | None = None) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    info.size = (len(PICTURE) if kind == tarfile.REGTYPE else 0) if size is None else size
    return info


def packed(entries: list[tarfile.TarInfo], form: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as tar:
        for info in entries:
            tar.addfile(info, io.BytesIO(PICTURE) if info.isreg() and info.size else None)
    return buffer.getvalue()


def walked(folder: Path, content: bytes) -> tuple[list[str], dict[str, str], list[str]]:
    """Names kept, names refused with their reason, notes."""
    path = folder / "some.tar"
    path.write_bytes(content)
    items = list(members(path))
    assert all(item.content == PICTURE for item in items if isinstance(item, Record))
    return (
        [item.name for item in items if isinstance(item, Record)],
        {item.name: item.reason for item in items if isinstance(item, Refused)},
        [item.text for item in items if isinstance(item, Note)],
    )


FOUR = [entry(f"cat/{number}.png") for number in range(4)]


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
@pytest.mark.parametrize("squeeze", [bytes, gzip.compress])
def test_a_whole_archive_of_any_form_gives_every_member_and_no_note(tmp_path: Path, form: int, squeeze: Any) -> None:
    kept, refused, notes = walked(tmp_path, squeeze(packed(FOUR, form)))
    assert kept == [info.name for info in FOUR]
    assert (refused, notes) == ({}, [])


def test_hostile_members_are_refused_each_by_its_reason_and_the_others_kept(tmp_path: Path) -> None:
    hostile = {
        "../up.png": "unsafe path",
        "/etc/passwd.png": "unsafe path",
        "cat/../../up.png": "unsafe path",
        "cat/.hidden.png": "hidden or system file",
        ".ipynb_checkpoints/x.png": "hidden or system file",
        "__MACOSX/cat/x.png": "hidden or system file",
        "cat/Thumbs.db": "hidden or system file",
    }
    special = [
        entry("cat/sym.png", tarfile.SYMTYPE, "0.png"),
        entry("cat/hard.png", tarfile.LNKTYPE, "cat/0.png"),
        entry("cat/pipe.png", tarfile.FIFOTYPE),
        entry("cat/device.png", tarfile.CHRTYPE),
    ]
    folders = [entry("cat", tarfile.DIRTYPE), entry("empty", tarfile.DIRTYPE)]
    kept, refused, notes = walked(tmp_path, packed([*folders, *map(entry, hostile), *special, *FOUR]))
    assert kept == [info.name for info in FOUR]
    assert refused == {**hostile, **{info.name: "no regular file" for info in special}}
    assert notes == []


def test_names_of_any_encoding_and_length_are_kept_apart(tmp_path: Path) -> None:
    names = ["cat/画像 ü.png", "cat/" + "n" * 204 + ".png", "cat/-rf.png", "cat/a.b.c.png"]
    latin = entry("cat/caf\udce9.png")  # a byte that is no UTF-8
    kept, refused, _ = walked(tmp_path, packed([*map(entry, names), latin], tarfile.GNU_FORMAT))
    assert kept == [*names, "cat/caf\\xe9.png"]
    assert refused == {}


def test_an_archive_cut_at_any_byte_keeps_the_whole_members_and_says_so(tmp_path: Path) -> None:
    whole = packed(FOUR, tarfile.USTAR_FORMAT)
    step = BLOCK + -(-len(PICTURE) // BLOCK) * BLOCK
    for cut in range(step, 4 * step, 97):
        kept, refused, notes = walked(tmp_path, whole[:cut])
        assert len(kept) == (cut + step - BLOCK - len(PICTURE)) // step
        assert len(notes) == 1
        assert "cut" in notes[0]
        assert set(refused.values()) <= {"archive cut or damaged"}
        assert bool(refused) == (cut % step != 0)


def test_a_header_damaged_in_the_middle_is_told_and_not_taken_for_the_end(tmp_path: Path) -> None:
    content = bytearray(packed(FOUR, tarfile.USTAR_FORMAT))
    step = BLOCK + -(-len(PICTURE) // BLOCK) * BLOCK
    for damage, word in ((b"\xff", "damaged"), (b"\0" * BLOCK, "data after its end")):
        damaged = content.copy()
        damaged[2 * step : 2 * step + len(damage)] = damage
        kept, _, notes = walked(tmp_path, bytes(damaged))
        assert kept == ["cat/0.png", "cat/1.png"]
        assert word in notes[0]


def test_a_cut_or_damaged_gzip_is_told(tmp_path: Path) -> None:
    squeezed = gzip.compress(packed(FOUR), compresslevel=0, mtime=0)
    for content in (squeezed[:-200], squeezed[:-4], squeezed[:-8] + b"\0\0\0\0" + squeezed[-4:]):
        _, refused, notes = walked(tmp_path, content)
        assert set(refused.values()) == {"archive cut or damaged"}
        assert len(notes) == 1


def test_a_header_that_promises_gigabytes_allocates_nothing(tmp_path: Path) -> None:
    for kind, outcome in ((tarfile.REGTYPE, "too large"), (tarfile.XHDTYPE, "archive cut or damaged")):
        info = entry("cat/huge.png", kind, size=2**35)
        content = packed([FOUR[0]])
        end = BLOCK + -(-len(PICTURE) // BLOCK) * BLOCK
        header = info.tobuf(tarfile.GNU_FORMAT)
        tracemalloc.start()
        kept, refused, _ = walked(tmp_path, content[:end] + header)
        assert kept == ["cat/0.png"]
        assert set(refused.values()) == {"archive cut or damaged"}
        _, refused, _ = walked(tmp_path, gzip.compress(content[:end] + header))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert outcome in refused.values()
        assert peak < 2**22


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 a zip", b"\x1f\x8b no gzip", b"x" * 4096])
def test_what_is_no_archive_is_refused_as_a_whole_in_one_line(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(Refusal, match=r"some\.tar: (not a tar, tar\.gz or zip|a zip cut)") as raised:
        walked(tmp_path, content)
    assert len(str(raised.value).splitlines()) == 1


def test_labels_are_the_first_folder_and_splits_the_files(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(packed([entry("./cat/deep/0.png"), entry("dog/0.png"), entry("stray.png")]))
    (tmp_path / "b.tar").write_bytes(packed([entry("cat/0.png")]))
    source = Archive(kind="archive", train="a.tar", test="b.tar", classes="folder")
    items = list(source.records(tmp_path))
    records = [item for item in items if isinstance(item, Record)]
    assert [(item.labels["label"], item.split) for item in records] == [
        ("cat", "train"),
        ("dog", "train"),
        ("cat", "test"),
    ]
    assert [item.reason for item in items if isinstance(item, Refused)] == ["no class folder"]
    free = Archive(kind="archive", train="a.tar", test=None, classes=None)
    assert [(item.labels, item.split) for item in free.records(tmp_path) if isinstance(item, Record)] == [
        ({}, None)
    ] * 3
    alone = Archive(kind="archive", train=None, test=None, classes="folder")
    assert len(list(alone.records(tmp_path / "b.tar"))) == 1


@pytest.mark.parametrize(
    ("raw", "train", "line"),
    [
        ("nowher", "a.tar", "nowher: no such file or folder; did you mean 'nowhere'?"),
        ("nowhere", "b.tar", "b.tar: no such file or folder; did you mean 'a.tar'?"),
        ("nowhere", None, "nowhere: is no file; name the file"),
    ],
)
def test_a_raw_path_that_is_not_there_names_the_nearest(tmp_path: Path, raw: str, train: str | None, line: str) -> None:
    (tmp_path / "nowhere").mkdir()
    (tmp_path / "nowhere" / "a.tar").write_bytes(packed(FOUR))
    with pytest.raises(Refusal) as raised:
        list(Archive(kind="archive", train=train, test=None, classes="folder").records(tmp_path / raw))
    assert line in str(raised.value)


@pytest.mark.skipif(not HOSTILE.is_dir(), reason="../shared/data/hostile is not there")
@pytest.mark.parametrize(
    ("name", "kept", "refused"),
    [
        ("traversal.tar", 3, {"unsafe path": 3, "no regular file": 1}),
        ("truncated_mid_member.tar", 4, {"archive cut or damaged": 1}),
        ("truncated.tar.gz", 3, {"archive cut or damaged": 1}),
        ("no_end_blocks.tar", 6, {}),
        ("empty.tar", 0, {}),
        ("dotted_keys.tar", 6, {}),
        ("macos_junk.tar", 1, {"hidden or system file": 4}),
        ("special_members.tar", 1, {"no regular file": 4}),
    ],
)
def test_the_collected_hostile_archives_behave_sanely(name: str, kept: int, refused: dict[str, int]) -> None:
    items = list(members(HOSTILE / name))
    assert sum(isinstance(item, Record) for item in items) == kept
    assert Counter(item.reason for item in items if isinstance(item, Refused)) == refused
