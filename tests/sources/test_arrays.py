"""Arrays: rows become pictures exactly, read from the file as they are due; pickles are never opened."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.sources import Arrays, Note, Record, Refused
from pipeline.sources.arrays import arrays_of
from pipeline.spec import Refusal, SpecError, parse

PICTURES = np.random.default_rng(0).integers(0, 256, (6, 5, 4, 3), dtype=np.uint8)


def source(layout: str = "channels_last", test: Any = None, **part: Any) -> Arrays:
    train = {"file": "a.npz", "images": "x", "classes": {}, "numbers": {}, **part}
    return parse({"kind": "arrays", "layout": layout, "train": train, "test": test}, Arrays, "x.yaml")


def pixels(item: Any) -> np.ndarray:
    assert isinstance(item, Record)
    assert item.array
    assert isinstance(item.content, bytes)
    return np.load(io.BytesIO(item.content), allow_pickle=False)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("dtype", ["u1", ">u2", "f4", "f2", "?"])
def test_rows_of_any_type_come_back_exactly(tmp_path: Path, save: Any, dtype: str) -> None:
    values = PICTURES.astype(dtype)
    save(tmp_path / "a.npz", x=values, y=np.arange(6))
    items = list(source(classes={"label": "y"}).records(tmp_path))
    np.testing.assert_array_equal(np.stack([pixels(item) for item in items]), values)
    assert [item.labels["label"] for item in items] == list("012345")
    assert items[3].name == "a.npz/x/000000003"


def test_layouts_and_missing_channels(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.moveaxis(PICTURES, 3, 1), grey=PICTURES[..., 0])
    np.testing.assert_array_equal(pixels(next(source("channels_first").records(tmp_path))), PICTURES[0])
    for layout in ("channels_first", "channels_last"):
        np.testing.assert_array_equal(
            pixels(next(source(layout, images="grey").records(tmp_path))), PICTURES[0, ..., :1]
        )


def test_an_npy_with_its_labels_beside_it_and_the_raw_path_as_the_file(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", PICTURES)
    np.save(tmp_path / "y.npy", np.array([[0.5], [1], [np.nan], [2], [3], [4]]))
    items = list(source(file="x.npy", images=None, numbers={"age": "y.npy"}).records(tmp_path))
    assert [item.labels.get("age") for item in items] == [0.5, 1, None, 2, 3, 4]
    assert len(list(source(file=None, images=None).records(tmp_path / "x.npy"))) == 6


def test_splits_are_two_arrays(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=PICTURES, t=PICTURES[:2], y=np.array(["a"] * 6), u=np.array([b"b", b"c"]))
    test = {"file": "a.npz", "images": "t", "classes": {"label": "u"}, "numbers": {}}
    items = list(source(test=test, classes={"label": "y"}).records(tmp_path))
    assert [item.split for item in items] == ["train"] * 6 + ["test"] * 2
    assert [item.labels["label"] for item in items] == ["a"] * 6 + ["b", "c"]


class Bomb:
    def __reduce__(self) -> Any:
        return (pytest.fail, ("unpickled",))


@pytest.mark.parametrize(
    ("arrays", "line"),
    [
        ({"x": np.array([Bomb()] * 3, dtype=object), "y": np.arange(3)}, "Python objects, which could execute code"),
        ({"x": PICTURES, "y": np.array([Bomb()] * 6, dtype=object)}, "a.npz/y: an array of Python objects"),
        ({"x": PICTURES, "y": np.arange(5)}, "6 pictures, but 5 values in column 'label'"),
        ({"x": PICTURES, "y": np.zeros((6, 2))}, "a label column is (N,) or (N, 1)"),
        ({"x": np.zeros((6, 4)), "y": np.arange(6)}, "shape (6, 4); pictures are (N, H, W)"),
        ({"x": np.asfortranarray(PICTURES), "y": np.arange(6)}, "saved in Fortran order"),
        ({"x": PICTURES.astype(complex), "y": np.arange(6)}, "an array of complex128; save it as numbers"),
        ({"z": PICTURES, "y": np.arange(6)}, "no array 'x'"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(tmp_path: Path, arrays: Any, line: str) -> None:
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(Refusal) as raised:
        list(source(classes={"label": "y"}).records(tmp_path))
    assert line in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("content", [b"", b"text", b"\x93NUMPY\x01\x00\xff\xff", b"PK\3\4 no zip", b"\x80\x04pickle"])
@pytest.mark.parametrize("images", ["x", None])
def test_what_is_no_array_is_refused_in_one_line(tmp_path: Path, content: bytes, images: str | None) -> None:
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(Refusal) as raised:
        list(source(images=images).records(tmp_path))
    assert len(str(raised.value).splitlines()) == 1


def test_a_cut_npy_keeps_its_whole_rows_and_says_so(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", PICTURES)
    content = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(content[:-100])
    items = list(source(file="x.npy", images=None).records(tmp_path))
    assert [type(item) for item in items] == [Record] * 4 + [Refused, Note]
    assert items[4].detail == "2 pictures are lost"


def test_a_damaged_member_of_an_npz_is_told(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", x=PICTURES)
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[len(content) // 2] ^= 0xFF
    (tmp_path / "a.npz").write_bytes(bytes(content))
    try:
        items = list(source().records(tmp_path))
    except Refusal:
        return  # within the header's own block
    assert [item.reason for item in items if isinstance(item, Refused)] == ["archive cut or damaged"]


def test_a_header_that_promises_terabytes_allocates_nothing(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "|u1", "fortran_order": False, "shape": (1000, 1000000, 1000)}
    )
    (tmp_path / "x.npy").write_bytes(header.getvalue())
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", header.getvalue())
    tracemalloc.start()
    for changes in ({"file": "x.npy", "images": None}, {}):
        with pytest.raises(Refusal, match="pictures of 1000000000 bytes, limit"):
            list(source(**changes).records(tmp_path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_memory_is_flat_in_the_number_of_rows(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros((4000, 32, 32, 3), np.uint8))
    tracemalloc.start()
    assert sum(1 for _ in source().records(tmp_path)) == 4000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_what_a_file_holds_is_listed(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=PICTURES, y=np.arange(6), z=np.array([Bomb()], dtype=object))
    assert {name: shape for name, (shape, _) in arrays_of(tmp_path / "a.npz").items()} == {"x": (6, 5, 4, 3), "y": (6,)}


@pytest.mark.parametrize(
    ("test", "part", "line"),
    [
        ({"file": "a.npz", "images": "x", "classes": {}, "numbers": {}}, {}, "must be another array"),
        (
            {"file": "b.npz", "images": "x", "classes": {}, "numbers": {}},
            {"classes": {"a": "y"}},
            "the columns of train",
        ),
        (None, {"file": "../a.npz"}, "must lie under the raw path"),
        (None, {"classes": {"a": "y"}, "numbers": {"a": "y"}}, "is a column of classes already"),
    ],
)
def test_faults_of_the_spec_are_one_line_each(test: Any, part: Any, line: str) -> None:
    with pytest.raises(SpecError, match=line):
        source(test=test, **part)
