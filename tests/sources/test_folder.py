"""Folders: every file is a record or a refusal, whatever lies in them; links and pipes are never followed or opened."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.images import encode_png
from pipeline.sources import Folder, Note, Record, Refused
from pipeline.spec import Refusal, SpecError, parse

PICTURE = encode_png(np.zeros((3, 4, 3), np.uint8))


def folder(**changes: Any) -> Folder:
    return parse({"kind": "folder", "train": None, "test": None, "classes": "folder", **changes}, Folder, "x.yaml")


def fill(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(PICTURE)


def kept(items: list[Any]) -> dict[str, Any]:
    return {item.name: item.labels.get("label") for item in items if isinstance(item, Record)}


def refused(items: list[Any]) -> dict[str, str]:
    return {item.name: item.reason for item in items if isinstance(item, Refused)}


def test_the_class_is_the_first_level_whatever_lies_below(tmp_path: Path) -> None:
    fill(tmp_path, "a/1.png", "a/b/c/d/1.png", "b/1.png", "stray.png")
    items = list(folder().records(tmp_path))
    assert kept(items) == {"a/1.png": "a", "a/b/c/d/1.png": "a", "b/1.png": "b"}
    assert refused(items) == {"stray.png": "no class folder"}
    assert kept(list(folder(classes=None).records(tmp_path))).keys() == {*kept(items), "stray.png"}


def test_the_order_is_that_of_the_names_and_not_of_the_disk(tmp_path: Path) -> None:
    names = [f"{kind}/{number}.png" for kind in "zyxab" for number in (3, 1, 2)]
    fill(tmp_path, *names)
    assert list(kept(list(folder().records(tmp_path)))) == sorted(names)


def test_one_folder_a_split(tmp_path: Path) -> None:
    fill(tmp_path, "train/a/1.png", "train/b/1.png", "val/a/1.png", "other/c/1.png")
    items = list(folder(train="train", test="val").records(tmp_path))
    assert [(item.name, item.labels["label"], item.split) for item in items if isinstance(item, Record)] == [
        ("train/a/1.png", "a", "train"),
        ("train/b/1.png", "b", "train"),
        ("val/a/1.png", "a", "test"),
    ]


def test_links_of_every_kind_are_counted_and_never_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    fill(root, "a/1.png")
    fill(outside, "secret.png", "deep/secret.png")
    links = {
        "a/self": ".",
        "a/up": "..",
        "a/far": str(outside),
        "a/file.png": str(outside / "secret.png"),
        "a/alias.png": "1.png",
        "a/gone.png": "nowhere",
        "a/ring1": "ring2",
        "a/ring2": "ring1",
        "b": "a",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    items = list(folder().records(root))
    assert kept(items) == {"a/1.png": "a"}
    assert refused(items) == dict.fromkeys(links, "no regular file")


def test_the_raw_path_itself_may_be_a_link_but_a_split_may_not_leave_it(tmp_path: Path) -> None:
    fill(tmp_path / "data", "train/a/1.png")
    fill(tmp_path / "elsewhere", "a/1.png")
    (tmp_path / "link").symlink_to("data")
    (tmp_path / "data" / "test").symlink_to("../elsewhere")
    assert len(kept(list(folder(train="train").records(tmp_path / "link")))) == 1
    with pytest.raises(Refusal, match="is a link that leaves"):
        list(folder(train="train", test="test").records(tmp_path / "data"))


def test_pipes_sockets_and_unreadable_folders_never_block_or_end_the_walk(tmp_path: Path) -> None:
    fill(tmp_path, "a/1.png", "a/closed/2.png")
    os.mkfifo(tmp_path / "a" / "pipe.png")
    (tmp_path / "a" / "closed").chmod(0)
    items = list(folder().records(tmp_path))
    (tmp_path / "a" / "closed").chmod(0o755)
    assert "a/1.png" in kept(items)
    assert refused(items)["a/pipe.png"] == "no regular file"
    assert len(kept(items)) + len(refused(items)) == 3


@pytest.mark.parametrize(
    "name", [".git/x.png", ".hidden.png", "__MACOSX/a/._1.png", "a/THUMBS.DB", "a/desktop.ini", "$RECYCLE.BIN/1.png"]
)
def test_hidden_and_system_files_are_no_classes(tmp_path: Path, name: str) -> None:
    fill(tmp_path, "a/1.png", name)
    items = list(folder().records(tmp_path))
    assert kept(items) == {"a/1.png": "a"}
    assert Counter(refused(items).values()) == {"hidden or system file": 1}


def test_names_in_any_bytes_are_kept_apart(tmp_path: Path) -> None:
    root = os.fsencode(tmp_path)
    os.mkdir(root + b"/caf\xe9")
    for name in (b"\xff\xfe.png", "画像 ü.png".encode(), b"-rf.png", b"a.b.c.png", b"tab\tline\n.png"):
        with open(root + b"/caf\xe9/" + name, "wb") as file:
            file.write(PICTURE)
    items = list(folder().records(tmp_path))
    assert set(kept(items).values()) == {"caf\\xe9"}
    assert len(kept(items)) == 5
    assert all(isinstance(item.content, Path) and item.content.read_bytes() == PICTURE for item in items)
    for name in kept(items):
        name.encode("utf-8")


def test_empty_class_folders_are_told_and_shift_no_class(tmp_path: Path) -> None:
    fill(tmp_path, "b/1.png", "c/1.png")
    (tmp_path / "a").mkdir()
    items = list(folder().records(tmp_path))
    assert set(kept(items).values()) == {"b", "c"}
    assert [item.text for item in items if isinstance(item, Note)] == ["1 empty folder(s), no class: a"]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"train": "trian"}, "trian: no such file or folder; did you mean 'train'?"),
        ({"train": "file"}, "file: is no folder"),
    ],
)
def test_a_folder_that_is_not_there_names_the_nearest(tmp_path: Path, changes: Any, line: str) -> None:
    fill(tmp_path, "train/a/1.png", "file")
    with pytest.raises(Refusal) as raised:
        list(folder(**changes).records(tmp_path))
    assert line in str(raised.value)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"test": "test"}, "train = null: must name a folder"),
        ({"train": "a", "test": "a"}, 'test = "a": must be another folder'),
        ({"train": "../a"}, "must lie under the raw path"),
        ({"classes": "files"}, 'classes = "files"'),
    ],
)
def test_faults_of_the_spec_are_one_line_each(changes: Any, line: str) -> None:
    with pytest.raises(SpecError) as raised:
        folder(**changes)
    assert line in str(raised.value)
