"""Your own webdataset shards: no two samples are merged, none is lost, and nothing is unpickled."""

from __future__ import annotations

import io
import json
import pickle
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.images import encode_png
from pipeline.sources import Record, Refused, WebDataset
from pipeline.sources.webdataset import split_name
from pipeline.spec import Refusal, SpecError, parse


def picture(level: int) -> bytes:
    return encode_png(np.full((2, 2, 1), level, np.uint8))


def tar(path: Path, files: list[tuple[str, bytes]]) -> None:
    with tarfile.open(path, "w") as archive:
        for name, content in files:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def source(**changes: Any) -> WebDataset:
    plain = {"kind": "webdataset", "train": "a-*.tar", "test": None, "classes": ["cls"], "numbers": []}
    return parse({**plain, **changes}, WebDataset, "x.yaml")


def records(items: list[Any]) -> dict[str, Any]:
    return {item.name: dict(item.labels) for item in items if isinstance(item, Record)}


def test_labels_come_from_cls_and_json(tmp_path: Path) -> None:
    described = json.dumps({"patient": "p7", "age": 41, "note": [1]}).encode()
    tar(tmp_path / "a-0.tar", [("1.png", picture(1)), ("1.cls", b"3\n"), ("1.json", described)])
    items = list(source(classes=["cls", "patient"], numbers=["age"]).records(tmp_path))
    assert records(items) == {"a-0.tar/1.png": {"cls": "3", "patient": "p7", "age": 41.0}}


@given(st.permutations(range(8)), st.integers(0, 3))
def test_members_in_any_order_come_together(order: list[int], seed: int) -> None:
    import tempfile

    parts = [part for key in range(4) for part in ((f"{key}.x.png", picture(key)), (f"{key}.x.cls", b"%d" % key))]
    with tempfile.TemporaryDirectory() as folder:
        tar(Path(folder) / "a-0.tar", [parts[number] for number in order])
        found = records(list(source().records(Path(folder))))
    assert found == {f"a-0.tar/{key}.x.png": {"cls": str(key)} for key in range(4)}


def test_equal_keys_in_two_shards_are_two_samples_and_a_repeated_member_is_told(tmp_path: Path) -> None:
    pair = [("1.png", picture(1)), ("1.cls", b"3")]
    tar(tmp_path / "a-0.tar", pair)
    tar(tmp_path / "a-1.tar", [*pair, ("1.png", picture(2))])
    items = list(source().records(tmp_path))
    assert list(records(items)) == ["a-0.tar/1.png", "a-1.tar/1.png"]
    assert [item.reason for item in items if isinstance(item, Refused)] == ["repeated name"]


def test_members_that_are_no_labels_are_never_unpickled(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return (pytest.fail, ("unpickled",))

    tar(tmp_path / "a-0.tar", [("1.png", picture(1)), ("1.pyd", pickle.dumps(Bomb())), ("2.pkl", pickle.dumps(Bomb()))])
    items = list(source(classes=[]).records(tmp_path))
    assert [item.reason for item in items if isinstance(item, Refused)] == ["several pictures of one key"]
    assert len(records(items)) == 1  # 2.pkl: no picture, as its bytes will tell


@pytest.mark.parametrize("text", [b"{broken", b"[1]", b'"x"', b"[" * 100_000, b"\xff"])
def test_a_broken_description_is_a_missing_label_and_no_error(tmp_path: Path, text: bytes) -> None:
    tar(tmp_path / "a-0.tar", [("1.png", picture(1)), ("1.json", text)])
    assert records(list(source(classes=["kind"]).records(tmp_path))) == {"a-0.tar/1.png": {}}


@pytest.mark.parametrize("text", [b"", b"cat", b"1.5", b"1e3", b"9" * 5000])
def test_a_class_that_is_no_whole_number_is_missing(tmp_path: Path, text: bytes) -> None:
    tar(tmp_path / "a-0.tar", [("1.png", picture(1)), ("1.cls", text)])
    assert records(list(source().records(tmp_path))) == {"a-0.tar/1.png": {}}


def test_names_split_at_the_last_dot() -> None:
    assert split_name("a/b.c/d.e.JPG") == ("a/b.c/d.e", "jpg")
    assert split_name("README") == ("README", "")


def test_shards_that_are_not_there_are_one_line(tmp_path: Path) -> None:
    tar(tmp_path / "b-0.tar", [])
    with pytest.raises(Refusal, match=r"a-\*\.tar: no such shards; (did you mean|known)"):
        list(source().records(tmp_path))


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"test": "a-*.tar"}, "must be other shards"),
        ({"train": "/a.tar"}, "must lie under the raw path"),
        ({"numbers": ["cls"]}, "is among the classes already"),
    ],
)
def test_faults_of_the_spec_are_one_line_each(changes: Any, line: str) -> None:
    with pytest.raises(SpecError, match=line):
        source(**changes)
