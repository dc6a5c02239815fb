"""Manifests: every picture gets its row, every row its picture, and what does not fit is told by its name."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.images import encode_png
from pipeline.sources import Folder, Manifest, Record, Refused
from pipeline.sources.manifest import header_of
from pipeline.spec import Refusal, SpecError, parse

PICTURE = encode_png(np.zeros((2, 2, 1), np.uint8))
FOLDER = Folder(kind="folder", train=None, test=None, classes=None)


def manifest(**changes: Any) -> Manifest:
    plain = {"file": "table.csv", "path": "file", "classes": ["kind", "patient"], "numbers": ["age"], "split": None}
    return parse({**plain, **changes}, Manifest, "x.yaml")


def joined(root: Path, table: str | bytes, names: list[str], **changes: Any) -> tuple[dict[str, Any], dict[str, str]]:
    spec = manifest(**changes)
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(PICTURE)
    if table:
        (root / spec.file).write_bytes(table.encode() if isinstance(table, str) else table)
    items = list(spec.joined(FOLDER.records(root), root))
    return (
        {item.name: (dict(item.labels), item.split) for item in items if isinstance(item, Record)},
        {item.name: item.reason for item in items if isinstance(item, Refused)},
    )


HEAD = "file,kind,patient,age\n"


def test_labels_and_groups_come_from_the_row_and_the_table_is_no_picture(tmp_path: Path) -> None:
    kept, refused = joined(tmp_path, HEAD + "a/1.png,cat,p1,3\n2.png,dog,p2,4.5\n", ["a/1.png", "2.png"])
    assert kept == {
        "a/1.png": ({"kind": "cat", "patient": "p1", "age": 3.0}, None),
        "2.png": ({"kind": "dog", "patient": "p2", "age": 4.5}, None),
    }
    assert refused == {}


def test_a_pattern_of_columns_names_the_files(tmp_path: Path) -> None:
    path = "run-{run}/episode_{number:03d}.png"
    names = ["run-a/episode_000.png", "run-b/episode_012.png"]
    kept, refused = joined(
        tmp_path, "run,number,kind\na,0,cat\nb,12,dog\n", names, path=path, classes=["kind"], numbers=[]
    )
    assert {name: labels for name, (labels, _) in kept.items()} == {
        names[0]: {"kind": "cat"},
        names[1]: {"kind": "dog"},
    }
    assert refused == {}
    with pytest.raises(Refusal, match="no column 'run'"):
        joined(tmp_path, "number,kind\n0,cat\n", [], path=path, classes=["kind"], numbers=[])


def test_pictures_without_a_row_and_rows_without_a_picture_are_told(tmp_path: Path) -> None:
    kept, refused = joined(tmp_path, HEAD + "1.png,cat,p,3\ngone.png,cat,p,3\n", ["1.png", "extra.png"])
    assert list(kept) == ["1.png"]
    assert refused == {"extra.png": "not in the manifest", "gone.png": "named by the manifest, but not there"}


def test_empty_cells_and_words_for_numbers_are_missing_labels(tmp_path: Path) -> None:
    kept, _ = joined(tmp_path, HEAD + "1.png, ,p,NA\n2.png,cat,,inf\n", ["1.png", "2.png"])
    assert kept == {"1.png": ({"patient": "p"}, None), "2.png": ({"kind": "cat"}, None)}


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_tables_of_any_delimiter_mark_and_line_end_are_read(
    tmp_path: Path, delimiter: str, start: str, end: str
) -> None:
    text = start + HEAD + '"1.png","cat, or ""dog""",p1,3\n'.replace("cat, or", "cat or")
    kept, _ = joined(tmp_path, text.replace(",", delimiter).replace("\n", end), ["1.png"])
    assert kept["1.png"][0] == {"kind": 'cat or "dog"', "patient": "p1", "age": 3.0}


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("prefix", ["", "./"])
def test_names_are_met_in_any_unicode_form_and_spelling(tmp_path: Path, form: Any, prefix: str) -> None:
    name = unicodedata.normalize("NFC" if form == "NFD" else "NFD", "é/ü 画像.png")
    row = prefix + unicodedata.normalize(form, "é/ü 画像.png")
    assert joined(tmp_path, HEAD + f"{row},cat,p,1\n", [name])[1] == {}


def test_backslashes_and_absolute_paths_are_met(tmp_path: Path) -> None:
    rows = f"a\\1.png,cat,p,1\n{tmp_path.absolute()}/a/2.png,cat,p,1\n"
    assert joined(tmp_path, HEAD + rows, ["a/1.png", "a/2.png"])[1] == {}


def test_two_rows_of_one_file_must_agree(tmp_path: Path) -> None:
    rows = "1.png,cat,p,1\n1.png,cat,p,1\n2.png,cat,p,1\n./2.png,dog,p,1\n"
    kept, refused = joined(tmp_path, HEAD + rows, ["1.png", "2.png"])
    assert list(kept) == ["1.png"]
    assert refused == {"2.png": "two different rows in the manifest"}


def test_the_split_column_says_the_side_and_other_words_are_told(tmp_path: Path) -> None:
    rows = "1.png,c,p,1,train\n2.png,c,p,1,Test\n3.png,c,p,1,val\n4.png,c,p,1,\n"
    names = [f"{number}.png" for number in range(1, 5)]
    kept, refused = joined(tmp_path, "file,kind,patient,age,side\n" + rows, names, split="side")
    assert {name: split for name, (_, split) in kept.items()} == {"1.png": "train", "2.png": "test"}
    assert refused == dict.fromkeys(["3.png", "4.png"], "neither train nor test in the manifest")


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ("fil,kind,patient,age\n", "no column 'file'; did you mean 'fil'?"),
        (HEAD + "1.png,cat\n", "line 2 has 2 cells, the header 4"),
        (HEAD.encode() + b"1.png,caf\xe9,p,1\n", "save it as CSV in UTF-8"),
        (HEAD + '"1.png,cat,p,1\n', "after line"),
        ("\x89PNG\r\n", "table.csv"),
        ("", "table.csv: no such file or folder"),
    ],
)
def test_a_table_that_cannot_be_read_is_one_line(tmp_path: Path, table: Any, line: str) -> None:
    with pytest.raises(Refusal) as raised:
        joined(tmp_path, table, ["1.png"])
    assert line in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


def test_the_raw_path_must_be_the_folder_of_both(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(b"")
    with pytest.raises(Refusal, match=r"must be the folder that holds the manifest table\.csv"):
        manifest().read(tmp_path / "a.tar")


def test_parquet_is_read_like_csv(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table(
        {"file": ["1.png", "2.png"], "kind": [7, None], "patient": ["p", "q"], "age": [3, None], "more": [[1], [2]]}
    )
    parquet.write_table(table, tmp_path / "t.parquet")
    kept, _ = joined(tmp_path, "", ["1.png", "2.png"], file="t.parquet")
    assert kept["1.png"][0] == {"kind": "7", "patient": "p", "age": 3.0}
    assert kept["2.png"][0] == {"patient": "q"}
    assert header_of(tmp_path / "t.parquet") == ["file", "kind", "patient", "age", "more"]
    (tmp_path / "t.parquet").write_bytes(b"PAR1 no parquet")
    with pytest.raises(Refusal, match="no Parquet file"):
        joined(tmp_path, "", [], file="t.parquet")


@pytest.mark.parametrize(
    ("changes", "line"),
    [({"file": "../t.csv"}, "must lie under"), ({"numbers": ["kind"]}, "is among the classes already")],
)
def test_faults_of_the_spec_are_one_line_each(changes: Any, line: str) -> None:
    with pytest.raises(SpecError, match=line):
        manifest(**changes)
