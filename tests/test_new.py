"""From a path to a valid spec: what lies there is seen, and what cannot be used is told in one line."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from ruamel.yaml import YAML
from small import ROOT

from pipeline.data import DataSpec
from pipeline.images import encode_png
from pipeline.looking import look
from pipeline.sharding import shard
from pipeline.spec import Refusal, read_spec
from pipeline.specification import all_faults
from stages.new import main

OWN = ROOT / "../shared/data"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the specs, and a folder for data beside them."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "specs", "specs")
    Path("raw").mkdir()
    return tmp_path


def picture(number: int, size: tuple[int, int] = (20, 20), channels: int = 3) -> bytes:
    return encode_png(np.random.default_rng(number).integers(0, 256, (*size, channels), dtype=np.uint8))


def classes(count: int = 60, **changes: Any) -> dict[str, bytes]:
    return {f"{'cat' if number % 3 else 'dog'}/{number:03d}.png": picture(number, **changes) for number in range(count)}


def fill(root: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


def tar(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def new(path: str, shards: bool = True, valid: bool = True) -> dict[str, Any]:
    """The data spec that is written for a path; it is valid, and its pictures can be sharded."""
    main(["mine", "--data", path])
    if valid:
        assert all_faults(Path("specs")) == []
    file = Path("specs/data/mine.yaml")
    if shards:
        entry = YAML(typ="safe").load(Path("specs/index.yaml"))["data"]["mine"]
        Path("out").mkdir()
        _, ledger = shard(read_spec(file, DataSpec), "mine", Path(entry["raw"]), Path("out"))
        assert ledger.counted() == []
    content: dict[str, Any] = YAML(typ="safe").load(file)
    assert content == read_spec(file, DataSpec).model_dump(mode="json")
    return content


def spec() -> dict[str, Any]:
    content: dict[str, Any] = YAML(typ="safe").load(Path("specs/mine.yaml"))
    return content


def test_a_folder_of_classes(capsys: pytest.CaptureFixture[str]) -> None:
    fill(Path("raw"), classes())
    data = new("raw")
    assert data["source"] == {"kind": "folder", "train": None, "test": None, "classes": "folder", "names": None}
    assert (data["labels"], data["split"]) == (["label"], {"test": 0.2, "seed": 0, "group": None})
    assert (data["input"]["height"], data["input"]["width"], data["input"]["channels"]) == (20, 20, 3)
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "found a folder: 60 files in 2 classes; canvas 20x20, 3 channel(s); labels: label"
    assert said[-1] == "edit it, then run: dvc repro"
    assert spec()["training"]["global_batch"] == 16  # of 48 pictures to train on
    assert len(spec()["audit"]["thresholds"]) == 1  # too few pictures to demand that the label is read


def test_the_recipe_demands_that_the_label_is_read_better_than_chance_and_trains_for_minutes() -> None:
    fill(Path("raw"), classes(240))
    new("raw")
    assert spec()["audit"]["thresholds"] == [
        {"measure": "effective_rank.h", "at_least": 2},
        {"measure": "probe.label.knn.h.view0", "at_least": 0.73},  # two thirds are cats
    ]
    training = spec()["training"]
    assert (training["global_batch"], training["epochs"]) == (64, 267)  # 800 steps of 192 pictures


def test_a_folder_in_a_folder_and_pictures_without_classes() -> None:
    fill(Path("raw/dataset"), classes())
    assert new("raw")["labels"] == ["label"]
    assert YAML(typ="safe").load(Path("specs/index.yaml"))["data"]["mine"] == {"raw": "raw/dataset"}


def test_pictures_without_classes_are_unlabelled() -> None:
    fill(Path("raw"), {f"{number}.png": picture(number) for number in range(40)})
    assert (new("raw")["labels"], spec()["space"]["preserves"], spec()["probe"]["labels"]) == ([], [], [])


@pytest.mark.parametrize("count", [1, 2, 3])
def test_fewer_samples_than_any_split_can_part_are_told_at_once(count: int, capsys: pytest.CaptureFixture[str]) -> None:
    fill(Path("raw"), {f"{number}.png": picture(number) for number in range(count)})
    main(["mine", "--data", "raw"])
    assert ("shard will refuse it: only" in capsys.readouterr().out) == (count < 3)


@pytest.mark.parametrize("form", ["csv", "npy"])
def test_one_long_series_is_to_be_cut(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    courses(form, 2)
    main(["mine", "--data", "raw"])
    line = (
        "only 2 samples, at least 3 are needed, 2 to train on and 1 to test; every file is one sample: add some, or cut"
    )
    assert line in capsys.readouterr().out


def test_folders_of_splits() -> None:
    fill(Path("raw/train"), classes())
    fill(Path("raw/val"), classes(12))
    data = new("raw")
    assert (data["source"]["train"], data["source"]["test"], data["split"]) == ("train", "val", None)


@pytest.mark.parametrize("names", [("cells_train.tar", "cells_test.tar"), ("train.tar.gz", "test.tar.gz")])
def test_archives_of_splits(names: tuple[str, str]) -> None:
    tar(Path("raw", names[0]), classes())
    tar(Path("raw", names[1]), classes(12))
    source = new("raw")["source"]
    assert (source["kind"], source["train"], source["test"], source["classes"]) == ("archive", *names, "folder")


def test_a_single_zip() -> None:
    with zipfile.ZipFile("raw/pictures.zip", "w") as archive:
        for name, content in classes().items():
            archive.writestr(name, content)
    data = new("raw/pictures.zip")
    assert data["source"] == {"kind": "archive", "train": None, "test": None, "classes": "folder", "names": None}
    assert data["labels"] == ["label"]


def test_an_archive_whose_first_folders_are_splits_or_one_wrapper_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    splits = {f"{split}/{name}": content for split in ("train", "test") for name, content in classes(20).items()}
    tar(Path("raw/splits.tar"), splits)
    with pytest.raises(Refusal, match=r"first folders are splits \(train, test\), no classes; unpack it"):
        new("raw/splits.tar")
    tar(Path("raw/wrapped.tar"), {f"dataset/{name}": content for name, content in classes().items()})
    assert new("raw/wrapped.tar")["labels"] == []
    assert "unpack the archive and give the folder inside it" in capsys.readouterr().out


def test_webdataset_shards() -> None:
    for number in range(3):
        files: dict[str, bytes] = {}
        for key in range(20):
            files[f"{key}.png"] = picture(20 * number + key)
            files[f"{key}.cls"] = b"%d" % (key % 3)
            files[f"{key}.json"] = json.dumps(
                {"site": f"s{key % 2}", "age": key + 0.5, "id": f"{number}-{key}"}
            ).encode()
        tar(Path(f"raw/train-00000{number}.tar"), files)
    data = new("raw")
    assert data["source"] == {
        "kind": "webdataset",
        "train": "train*",
        "test": None,
        "classes": ["cls", "site"],
        "numbers": ["age"],
    }
    assert data["labels"] == spec()["probe"]["labels"] == ["cls", "site", "age"]


def test_arrays_with_labels() -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (80, 28, 28), dtype=np.uint8)
    np.savez("raw/m.npz", x_train=pictures, y_train=np.arange(80) % 4, x_test=pictures[:9], y_test=np.arange(9) % 4)
    data = new("raw/m.npz")
    assert data["source"]["train"] == {
        "file": None,
        "images": "x_train",
        "classes": {"label": "y_train"},
        "numbers": {},
    }
    assert data["source"]["test"]["images"] == "x_test"
    assert (data["input"]["channels"], data["input"]["height"], data["input"]["range"]) == (1, 28, None)
    assert "brightness" in [one["kind"] for one in spec()["space"]["invariances"]]


def test_floating_arrays_of_many_channels_get_a_range() -> None:
    np.save("raw/x.npy", np.random.default_rng(0).random((60, 5, 16, 16)).astype(np.float32))
    data = new("raw")
    assert (data["source"]["layout"], data["labels"]) == ("channels_first", [])
    assert (data["input"]["channels"], data["input"]["range"]) == (5, [0.0, 1.0])


def test_a_table_beside_the_pictures_with_a_group() -> None:
    files = {f"p/{number:03d}.png": picture(number) for number in range(60)}
    fill(Path("raw"), files)
    rows = [
        f"{name},{'ill' if number % 3 else 'well'},q{number // 4},{number * 1.5}" for number, name in enumerate(files)
    ]
    Path("raw/table.csv").write_text("image,finding,patient,age\n" + "\n".join(rows) + "\n")
    for path in ("raw", "raw/table.csv"):
        data = new(path, shards=path == "raw")
        table = {
            "file": "table.csv",
            "path": "image",
            "classes": ["finding", "patient"],
            "numbers": ["age"],
            "split": None,
        }
        assert data["manifest"] == table
        assert (data["labels"], data["split"]["group"]) == (
            ["label", "finding", "age"] if data["source"]["classes"] else ["finding", "age"],
            "patient",
        )
        assert spec()["probe"]["labels"] == data["labels"]  # numbers are read back as well
        assert spec()["space"]["preserves"] == data["labels"][:-1]  # and demanded of nobody
        for file in ("specs/mine.yaml", "specs/data/mine.yaml"):
            Path(file).unlink()
        shutil.copy(ROOT / "specs" / "index.yaml", "specs/index.yaml")


def test_numbers_with_gaps_are_left_out_and_told_so_that_no_picture_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    fill(Path("raw"), classes())
    rows = [f"{name},{'' if n % 5 else n + 0.25},{n * 1.5}" for n, name in enumerate(classes())]
    Path("raw/table.csv").write_text("image,weight,age\n" + "\n".join(rows) + "\n")
    assert new("raw")["labels"] == spec()["probe"]["labels"] == ["label", "age"]
    line = "weight is not among the labels: 48 of 60 rows lack it, and a sample that lacks a label is refused"
    assert line in capsys.readouterr().out
    assert f"# {line}." in Path("specs/data/mine.yaml").read_text()
    assert json.loads(Path("out/ledger.json").read_text())["kept"] == 60


def test_a_table_with_its_own_split_has_its_group_examined() -> None:
    files = {f"p/{number:03d}.png": picture(number) for number in range(60)}
    fill(Path("raw"), files)
    rows = [f"{n},{name},{'train' if n % 3 else 'test'},q{n // 4}" for n, name in enumerate(files)]
    Path("raw/table.csv").write_text("id,image,split,patient\n" + "\n".join(rows) + "\n")
    data = new("raw")
    assert data["split"] == {"test": None, "seed": None, "group": "patient"}
    assert data["manifest"]["numbers"] == []  # a count of rows says nothing of a picture
    note = json.loads(Path("out/ledger.json").read_text())["notes"][0]
    assert note.startswith("column 'patient': 15 of 15 values have samples on both sides of the given split")


def test_large_pictures_of_many_shapes_are_covered_and_torchvision_roots_known() -> None:
    fill(Path("raw"), {f"{'ab'[n % 2]}/{n}.png": picture(n, (100, 60 + 10 * (n % 9))) for n in range(20)})
    data = new("raw")
    assert (data["input"]["height"], data["input"]["width"], data["input"]["fit"]) == (64, 64, "cover")


def test_pictures_of_wide_pixels_get_a_range() -> None:
    for number in range(40):
        values = np.random.default_rng(number).random((18, 18)).astype(np.float32) * 800
        Path("raw", "ab"[number % 2]).mkdir(exist_ok=True)
        Image.fromarray(values).save(Path("raw", "ab"[number % 2], f"{number}.tif"))
    assert new("raw")["input"]["range"] == [0.0, 4095.0]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("gone", "--data gone: no such path"),
        ("raw", "--data raw: an empty folder; give the one that holds the pictures, sounds or series"),
        ("text", "no sample among 1 files looked at: nothing that is read (text; read are pictures, sounds (wav"),
        ("damaged", "no sample among 1 files looked at: not a picture (none of"),
        ("one.png", "--data one.png: a single file; give a folder"),
        ("junk.npz", "no array of pictures"),
        ("hidden", "--data hidden: an empty folder"),
        ("many", "3 archives"),
        ("empty.tar", "no file in it could be one of pictures, sounds or series; give the folder that holds them"),
        ("no.tar", "no.tar: not a tar, tar.gz or zip"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_writes_nothing(path: str, line: str) -> None:
    fill(Path("text/a"), {"x.txt": b"no picture"})
    fill(Path("damaged/a"), {"x.png": b"no picture"})
    fill(Path("hidden"), {".x.png": picture(0)})
    Path("many").mkdir()
    for name in ("a.tar", "b.tar", "c.tar"):
        tar(Path("many", name), classes(4))
    tar(Path("empty.tar"), {})
    Path("no.tar").write_bytes(b"x" * 2000)
    Path("one.png").write_bytes(picture(0))
    np.savez("junk.npz", x=np.zeros(4))
    before = {file: file.read_bytes() for file in Path("specs").rglob("*") if file.is_file()}
    with pytest.raises(Refusal) as raised:
        main(["mine", "--data", path])
    assert line in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1
    assert {file: file.read_bytes() for file in Path("specs").rglob("*") if file.is_file()} == before


def test_neither_like_nor_data_is_one_line() -> None:
    with pytest.raises(Refusal, match="give --data PATH"):
        main(["mine"])


@pytest.mark.parametrize(
    ("path", "line"),
    [("raw", "train.tar: no such file or folder"), ("file", "file: is a file; set source.train to null")],
)
def test_an_example_on_data_that_it_does_not_fit_is_told(path: str, line: str) -> None:
    Path("file").write_bytes(b"x")
    with pytest.raises(Refusal) as raised:
        main(["mine", "--like", "satellite", "--data", path])
    assert line in str(raised.value)
    assert "without --like it is looked at" in str(raised.value)


@pytest.mark.skipif(not OWN.is_dir(), reason="../shared/data is not there")
@pytest.mark.parametrize(
    ("folder", "count", "side"), [("medical", 8, 64), ("remote_sensing", 5, 64), ("natural", 10, 32)]
)
def test_the_collections_of_pictures_are_seen_as_what_they_are(
    folder: str, count: int, side: int, capsys: pytest.CaptureFixture[str]
) -> None:
    data = new(str((OWN / folder).resolve()), shards=False)
    assert data["source"]["kind"] == "archive"
    assert data["input"]["height"] == side
    assert f"in {count} classes" in capsys.readouterr().out


def pendulums(path: Path, count: int = 40) -> None:
    """A long table in the columns of the example: a row a time step."""
    arrow = pytest.importorskip("pyarrow", reason="needs pyarrow")
    from pyarrow import parquet

    random, rows = np.random.default_rng(0), []
    for number in range(count):
        gravity, policy, side = (
            (4.0, 8.0)[number % 2],
            ("random", "held")[number // 2 % 2],
            ("train", "test")[number % 5 == 0],
        )
        angle, speed = random.uniform(0, 6), 0.0
        for step in range(40 + number % 7):
            torque = random.normal() if policy == "random" else 1.0
            speed += 0.075 * gravity * np.sin(angle) + 0.15 * torque
            angle += 0.05 * speed
            moving = (np.cos(angle), np.sin(angle), speed, torque, -(angle**2))
            rows.append((f"ep{number:03}", step, *moving, gravity, policy, side))
    names = ["episode_id", "t", "cos_theta", "sin_theta", "theta_dot", "torque", "reward"]
    names += ["label_gravity", "label_policy", "split"]
    parquet.write_table(arrow.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))), path)


def courses(form: str, count: int = 60) -> None:
    """Walks and runs, a folder a class: arrays of several lengths, or tables with a clock."""
    random = np.random.default_rng(0)
    for number in range(count):
        values = random.normal(size=(50 + number % 30, 3)) + number % 2
        file = Path("raw") / ("walk", "run")[number % 2] / f"{number:03}.{form}"
        file.parent.mkdir(exist_ok=True)
        if form == "csv":
            rows = [f"{step / 50:.2f},{a:.4f},{b:.4f},{c:.4f},7" for step, (a, b, c) in enumerate(values)]
            file.write_text("\n".join(["time,ax,ay,az,device", *rows]) + "\n")
        elif form == "npz":
            np.savez(file, acceleration=values.T, rate=np.array([50]))
        else:
            np.save(file, values)


@pytest.mark.parametrize(
    ("form", "names", "layout"),
    [
        ("npy", None, "time_first"),
        ("csv", ["ax", "ay", "az"], "time_first"),
        ("npz", ["acceleration"], "channels_first"),
    ],
)
def test_a_folder_of_series_is_seen_with_its_channels(
    form: str, names: Any, layout: str, capsys: pytest.CaptureFixture[str]
) -> None:
    courses(form)
    data = new("raw")
    assert data["source"] == {"kind": "folder", "train": None, "test": None, "classes": "folder", "names": None}
    found = data["input"]
    assert (found["kind"], found["channels"], found["names"], found["layout"]) == ("series", 3, names, layout)
    assert (found["steps"], data["labels"], spec()["space"]["preserves"]) == (57, ["label"], ["label"])
    assert spec()["training"]["encoder"]["kind"] == "small_1d"
    told = capsys.readouterr().out
    assert "series of 57 steps, 3 channel(s); labels: label" in told
    assert "lengths are 50 to 79 steps" in told
    assert ("never change: time, device" in told) == (form == "csv")


def test_a_long_table_is_seen_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    pendulums(Path("raw/steps.parquet"))
    data = new("raw/steps.parquet")
    assert data["source"] == {
        "kind": "episodes",
        "file": None,
        "episode": "episode_id",
        "time": "t",
        "uneven": 0.01,
        "classes": ["label_gravity", "label_policy"],
        "numbers": [],
        "split": "split",
    }
    assert data["input"]["names"] == ["cos_theta", "sin_theta", "theta_dot", "torque", "reward"]
    assert (data["split"], data["labels"]) == (None, ["label_gravity", "label_policy"])
    assert "episodes are told apart by episode_id and put in order by t" in capsys.readouterr().out
    Path("raw/README.md").touch()  # and where it lies alone in a folder, but for words about it
    assert look(Path("raw")).source.model_dump()["file"] == "steps.parquet"


def test_columns_of_a_long_table_that_hold_neither_numbers_nor_lists_of_them_are_left_out_and_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arrow = pytest.importorskip("pyarrow", reason="needs pyarrow")
    from pyarrow import parquet

    count = 160
    columns = {
        "episode": [number // 8 for number in range(count)],
        "t": [number % 8 for number in range(count)],
        "x": [number / 7 for number in range(count)],
        "pair": [[float(number), 1.0] for number in range(count)],
        "struct": [{"x": float(number), "y": [1.0]} for number in range(count)],
        "still": [{"x": 1.0}] * count,
        "goal": [[float(number // 8)] for number in range(count)],
        "ragged": [[1.0] * (1 + number % 2) for number in range(count)],
        "words": [["a", str(number)] for number in range(count)],
        "bytes": [str(number).encode() for number in range(count)],
    }
    parquet.write_table(arrow.table(columns), "raw/t.parquet")
    data = new("raw/t.parquet")
    assert data["input"]["names"] == ["x", "pair"]
    assert (data["input"]["channels"], data["labels"]) == (3, [])
    said = capsys.readouterr().out
    assert "left out: struct, still, goal, ragged, words, bytes" in said
    for name in ("struct", "still", "ragged", "words"):
        assert f"{name} holds no numbers, as many in each row, so it is no channel" in said
    assert "goal holds lists and does not change within an episode, so it is neither" in said


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (
            {"t.csv": b"name,x\na,1\nb,2\n"},
            "no column of it names files in raw (give their folder), and it is no table",
        ),
        ({"t.csv": b"episode,t,x\na,1,2\na,1,3\nb,1,4\nb,1,2\n"}, "one as t or time has no repeats; rename them, or"),
        ({"t.csv": b"episode,t,x\na,1,2\na,2,2\nb,1,4\nb,2,4\n"}, "no column of numbers changes within an episode"),
        ({"t.csv": b""}, "no table (0 bytes, no columns in its first line); copy it again"),
        ({"t.csv": b"\n\n"}, "no table (2 bytes, no columns in its first line)"),
        ({"t.csv": b"episode,t,x\n"}, "no column of it names files in raw"),
        ({"a/1.csv": b"1,2\n3,4\n", "a/2.csv": b"1,2\n"}, "a CSV must begin with the names of its columns"),
        ({"a/1.csv": b"run,x\n1,2\n2,4\n", "a/2.csv": b"run,x\n1,2\n2,3\n"}, "hold several episodes each (run)"),
    ],
)
def test_tables_that_are_no_series_are_told_with_the_remedy(files: dict[str, bytes], told: str) -> None:
    fill(Path("raw"), files)
    with pytest.raises(Refusal) as raised:
        main(["mine", "--data", "raw" if len(files) > 1 else "raw/t.csv"])
    assert told in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


def test_the_example_of_a_long_table_is_offered() -> None:
    pendulums(Path("raw/episodes.parquet"))
    main(["mine", "--like", "pendulum", "--data", "raw/episodes.parquet"])
    assert all_faults(Path("specs")) == []
    with pytest.raises(Refusal, match=r"is a folder; name its table in source.file"):
        main(["other", "--like", "pendulum", "--data", "raw"])
