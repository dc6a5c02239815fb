"""Shards: what was written is what is read, by any reader; damage is noticed; everything is accounted for."""

from __future__ import annotations

import gc
import io
import json
import os
import pickle
import re
import resource
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import webdataset
from sklearn.datasets import load_digits

from pipeline.data import DataSpec
from pipeline.images import encode_png
from pipeline.ledger import Unsharded
from pipeline.sharding import shard
from pipeline.shards import DataCard, Shards
from pipeline.spec import Refusal, parse

ROOT = Path(__file__).parent.parent
OWN = Path("../shared/data")


def spec(**changes: Any) -> DataSpec:
    plain: dict[str, Any] = {
        "source": {"kind": "digits"},
        "input": {"height": 12, "width": 12, "channels": 1, "fit": "pad", "background": 0},
        "split": {"test": 0.2, "seed": 0},
        "labels": ["label"],
    }
    return parse({**plain, **changes}, DataSpec, "test.yaml")


def archive(**changes: Any) -> DataSpec:
    source = {"kind": "archive", "train": "train.tar", "test": None, "classes": "folder", **changes}
    split = None if source["test"] else {"test": 0.3, "seed": 0}
    return spec(source=source, split=split, labels=["label"] if source["classes"] else [])


def written(data: DataSpec, folder: Path, raw: Path | None = None, most: int = 400) -> DataCard:
    folder.mkdir()
    return shard(data, "mine", raw, folder, most=most)[0]


def tar_of(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def flat(level: int) -> bytes:
    return encode_png(np.full((3, 4, 1), level, np.uint8))


def noise(seed: int) -> bytes:
    return encode_png(np.random.default_rng(seed).integers(0, 256, (3, 4, 1), dtype=np.uint8))


def classes(count: int = 40) -> dict[str, bytes]:
    return {f"{'cat' if number % 2 else 'dog'}/{number}.png": flat(number) for number in range(count)}


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "digits"
    written(spec(), folder)
    return folder


@pytest.fixture
def copy(digits: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(digits, tmp_path / "copy"))


def tar_members(folder: Path, split: str) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.glob(f"{split}-*.tar")):
        with tarfile.open(path) as tar:
            for member in tar:
                file = tar.extractfile(member)
                assert file is not None
                yield member.name, file.read()


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # webdataset leaves its shards to the collector
def test_webdataset_streams_the_same_keys_and_bytes_as_the_index(digits: Path) -> None:
    shards = Shards(digits)
    assert len(shards.card.shards) == 5
    for split, count in shards.card.splits.items():
        urls = [str(path) for path in sorted(digits.glob(f"{split}-*.tar"))]
        stream = webdataset.WebDataset(urls, shardshuffle=False, nodesplitter=None, empty_check=False)
        streamed = {sample["__key__"]: sample for sample in stream}
        gc.collect()
        assert sorted(streamed) == [f"{index:09d}" for index in range(count)]
        labels = shards.labels(split)["label"]
        for index in range(count):
            sample = streamed[f"{index:09d}"]
            assert sample["png"] == shards.read(split, index)
            assert json.loads(sample["json"])["label"] == shards.card.columns["label"].classes[labels[index]]


def test_the_index_reads_the_same_bytes_as_tarfile_in_any_order(digits: Path) -> None:
    shards = Shards(digits)
    for split, count in shards.card.splits.items():
        members = dict(tar_members(digits, split))
        assert len(members) == 2 * count
        for index in np.random.default_rng(0).permutation(count):
            assert shards.read(split, index) == members[f"{index:09d}.png"]


def test_the_decoded_digits_are_those_of_scikit_learn_in_the_middle_of_the_canvas(digits: Path) -> None:
    bunch, shards = load_digits(), Shards(digits)
    seen = []
    for split, count in shards.card.splits.items():
        images, labels = shards.images(split), shards.labels(split)["label"]
        assert images.shape == (count, 1, 12, 12)
        descriptions = [json.loads(content) for name, content in tar_members(digits, split) if name.endswith("json")]
        for image, label, description in zip(images, labels, descriptions, strict=True):
            number = int(description["name"].removeprefix("digit-"))
            np.testing.assert_array_equal(np.rint(image[0, 2:10, 2:10] / 255 * 16), bunch.images[number])
            assert label == bunch.target[number]
            assert image.sum() == image[0, 2:10, 2:10].sum()
            seen.append(number)
    assert sorted(seen) == list(range(1797))


def test_the_whole_split_is_decoded_once_and_equals_single_pictures(digits: Path) -> None:
    shards = Shards(digits)
    images = shards.images("test")
    assert shards.images("test") is images
    np.testing.assert_array_equal(images[7], shards.image("test", 7))


def test_the_card_states_counts_and_moments_of_the_canvas(digits: Path) -> None:
    shards = Shards(digits)
    card = shards.card
    assert sum(card.splits.values()) == 1797
    assert 0.17 < card.splits["test"] / 1797 < 0.23
    values = shards.images("train") / 255
    assert card.mean == pytest.approx(values.mean(axis=(0, 2, 3)), abs=1e-12)
    assert card.std == pytest.approx(values.std(axis=(0, 2, 3)), abs=1e-12)
    column = card.columns["label"]
    assert column.classes == tuple("0123456789")
    for split in card.splits:
        assert column.counts[split] == tuple(np.bincount(shards.labels(split)["label"], minlength=10))
    ledger = json.loads((digits / "ledger.json").read_text())
    assert (ledger["seen"], ledger["kept"], ledger["refused"]) == (1797, 1797, {})


def test_no_shard_holds_its_samples_in_the_order_of_the_source(tmp_path: Path) -> None:
    ordered = {f"{name}/{number}.png": flat(number) for name in ("a", "b", "c", "d") for number in range(30)}
    tar_of(tmp_path / "train.tar", ordered)
    written(archive(), tmp_path / "out", tmp_path, most=20)
    shards = Shards(tmp_path / "out")
    labels = shards.labels("train")["label"]
    assert all(len(set(labels[start : start + 20])) == 4 for start in range(0, len(labels) - 19, 20))


def test_a_second_run_writes_the_same_bytes(digits: Path, tmp_path: Path) -> None:
    written(spec(), tmp_path / "again")
    names = sorted(path.name for path in digits.iterdir())
    assert names == sorted(path.name for path in (tmp_path / "again").iterdir())
    assert all((digits / name).read_bytes() == (tmp_path / "again" / name).read_bytes() for name in names)


def test_a_record_keeps_its_side_when_others_are_added(tmp_path: Path) -> None:
    for name, count in (("few", 60), ("more", 90)):
        (tmp_path / name).mkdir()
        tar_of(tmp_path / name / "train.tar", classes(count))
        written(archive(), tmp_path / f"{name}-out", tmp_path / name)
    sides = [
        {
            json.loads(content)["name"]: split
            for split in ("train", "test")
            for name, content in tar_members(tmp_path / folder, split)
            if name.endswith("json")
        }
        for folder in ("few-out", "more-out")
    ]
    assert len(sides[0]) == 60
    assert sides[0].items() <= sides[1].items()


def test_the_fingerprint_changes_with_pictures_labels_and_canvas_and_not_with_the_name(tmp_path: Path) -> None:
    files = classes()
    relabelled = {("cat" + name[3:] if name == "dog/0.png" else name): content for name, content in files.items()}
    other = {**files, "dog/0.png": flat(200)}
    prints = []
    for number, (content, width) in enumerate([(files, 12), (files, 12), (relabelled, 12), (other, 12), (files, 13)]):
        raw = tmp_path / f"raw{number}"
        raw.mkdir()
        tar_of(raw / "train.tar", content)
        canvas = {"height": 12, "width": width, "channels": 1, "fit": "pad", "background": 0}
        data = spec(source=archive().source.model_dump(mode="json"), input=canvas)
        (tmp_path / f"out{number}").mkdir()
        prints.append(shard(data, f"name{number}", raw, tmp_path / f"out{number}")[0].fingerprint)
    assert prints[0] == prints[1]
    assert len(set(prints)) == 4


def test_a_bad_file_never_kills_a_run_and_never_vanishes(tmp_path: Path) -> None:
    big = encode_png(np.random.default_rng(0).integers(0, 256, (9, 9, 1), dtype=np.uint8))
    bad = {"cat/empty.png": b"", "cat/page.jpg": b"<html>", "dog/cut.png": big[:-60], "stray.png": flat(3)}
    files = {**classes(), **bad, "../dog/up.png": flat(5)}
    tar_of(tmp_path / "train.tar", files)
    with tarfile.open(tmp_path / "train.tar", "a") as tar:
        again = tarfile.TarInfo("dog/0.png")
        again.size = len(flat(9))
        tar.addfile(again, io.BytesIO(flat(9)))
    written(archive(), tmp_path / "out", tmp_path)
    ledger = json.loads((tmp_path / "out" / "ledger.json").read_text())
    reasons = {"damaged picture": 1, "no class folder": 1, "not a picture": 2, "repeated name": 1, "unsafe path": 1}
    assert ledger["refused"] == reasons
    assert (ledger["seen"], ledger["kept"]) == (len(files) + 1, 40)
    assert {file["name"] for file in ledger["files"]} == {*bad, "../dog/up.png", "dog/0.png"}


def test_original_bytes_are_kept_under_their_true_extension(tmp_path: Path) -> None:
    files = {name.replace(".png", ".JPG"): content for name, content in classes().items()}
    tar_of(tmp_path / "train.tar", files)
    written(archive(), tmp_path / "out", tmp_path)
    for split in ("train", "test"):
        members = dict(tar_members(tmp_path / "out", split))
        for name, content in members.items():
            if name.endswith(".json"):
                assert members[name.replace(".json", ".png")] == files[json.loads(content)["name"]]
    assert not list((tmp_path / "out").glob("*.partial"))


def test_unlabelled_pictures_have_no_columns(tmp_path: Path) -> None:
    tar_of(tmp_path / "train.tar", {f"{number}.png": flat(number) for number in range(20)})
    assert written(archive(classes=None), tmp_path / "out", tmp_path).columns == {}
    assert Shards(tmp_path / "out").labels("train") == {}


def test_number_columns_come_back_exactly(tmp_path: Path) -> None:
    from pipeline.sources.shapes import picture

    data = spec(
        source={"kind": "shapes", "pictures": 60, "seed": 4, "watermark": 0.5},
        input={"height": 32, "width": 32, "channels": 3, "fit": "resize", "background": 0},
        labels=["rotation", "watermark"],
    )
    written(data, tmp_path / "out")
    shards = Shards(tmp_path / "out")
    for split in ("train", "test"):
        names = [json.loads(text)["name"] for name, text in tar_members(tmp_path / "out", split) if "json" in name]
        labels = shards.labels(split)
        assert list(labels) == ["rotation", "watermark"]
        for index, name in enumerate(names):
            pixels, known = picture(4, int(name.removeprefix("shape-")), 0.5)
            assert labels["rotation"][index] == known["rotation"]
            assert shards.card.columns["watermark"].classes[labels["watermark"][index]] == known["watermark"]
            np.testing.assert_array_equal(shards.image(split, index), pixels.transpose(2, 0, 1))


@pytest.mark.parametrize(
    ("files", "changes", "line"),
    [
        ({"cat/a.png": b"no", "dog/b.png": b""}, {}, "no sample is left"),
        ({}, {}, "no sample is left"),
        ({"cat/a.png": flat(1)}, {}, "only 1 sample, at least 3 are needed, 2 to train on and 1 to test; add samples"),
        (
            {name: text for name, text in classes().items() if "cat" in name},
            {},
            "column 'label' has only the one class",
        ),
    ],
)
def test_unusable_raw_data_is_refused_in_one_line(tmp_path: Path, files: Any, changes: Any, line: str) -> None:
    tar_of(tmp_path / "train.tar", files)
    with pytest.raises(Refusal, match="data set mine: ") as raised:
        written(archive(**changes), tmp_path / "out", tmp_path)
    assert line in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


def test_an_empty_test_split_is_refused(tmp_path: Path) -> None:
    tar_of(tmp_path / "train.tar", classes(6))
    data = spec(source=archive().source.model_dump(mode="json"), split={"test": 0.001, "seed": 0})
    with pytest.raises(Refusal, match="the test split is empty"):
        written(data, tmp_path / "out", tmp_path)


def test_a_file_that_was_refused_before_is_named_whatever_ends_sharding(tmp_path: Path) -> None:
    pictures = {f"dog/{number}.png": noise(number) for number in range(12)}
    lost, copy = {"cat/a.png": b"no"}, {"dog/copy.png": noise(0)}
    refuse = {"strict": False, "budget": None, "repeated": "refuse"}
    cases: list[tuple[dict[str, bytes], dict[str, Any], str]] = [
        (pictures, {}, "only the one class 'dog' to train on; take it out of labels"),
        (dict(list(pictures.items())[:2]), {}, "only 2 samples, at least 3 are needed"),
        ({"dog/1.png": noise(1), "dog/2.png": noise(1), "dog/3.png": noise(1)}, {}, "all 3 samples are copies of one"),
        (pictures, {"split": {"test": 1e-9, "seed": 0}}, "the test split is empty; raise split.test"),
        (pictures, {"split": {"test": 1 - 1e-9, "seed": 0}}, "0 sample(s) to train on"),
        ({**pictures, **copy}, {"ledger": refuse}, "1 exact copies, as dog/0.png = dog/copy.png"),
        (pictures, {"ledger": {**refuse, "budget": 0.01}}, "1 of 13 files refused, above ledger.budget"),
    ]
    for number, (files, changes, line) in enumerate(cases):
        tar_of(tmp_path / "train.tar", {**files, **lost})
        data = spec(source=archive().source.model_dump(mode="json"), **{"split": {"test": 0.3, "seed": 0}, **changes})
        with pytest.raises(Unsharded) as raised:
            written(data, tmp_path / f"out{number}", tmp_path)
        told = str(raised.value)
        assert line in told
        assert told.count("cat/a.png (not a picture: ") == 1, told
        assert f"kept {len(files)} of {len(files) + 1}; 1 refused: not a picture: " in told or "1 of 13 files" in told
        assert [(file.name, file.reason) for file in raised.value.ledger.refused] == [("cat/a.png", "not a picture")]
        assert raised.value.ledger.kept == len(files)


def test_a_source_that_ends_midway_says_what_was_refused_until_then(tmp_path: Path) -> None:
    tar_of(tmp_path / "train.tar", {"cat/a.png": b"no", **classes(70)})

    def broken(items: Any) -> Any:
        yield from items  # 64 are judged at a time
        raise Refusal("raw: it went away")

    (tmp_path / "out").mkdir()
    with pytest.raises(Unsharded, match=r"^raw: it went away \(kept 63 of 64; 1 refused: .*: cat/a.png"):
        shard(archive(), "mine", tmp_path, tmp_path / "out", broken)


def test_a_class_that_is_in_test_alone_has_a_remedy_that_helps(tmp_path: Path) -> None:
    same = {f"cat/{number}.png": flat(9) for number in range(2)}
    tar_of(tmp_path / "train.tar", {**same, **{f"dog/{number}.png": noise(number) for number in range(12)}})
    source = archive().source.model_dump(mode="json")
    found: dict[bool, str] = {}
    for seed in range(20):
        data = spec(source=source, split={"test": 0.4, "seed": seed})
        try:
            written(data, tmp_path / f"out{seed}", tmp_path)
            found[True] = "another seed"
        except Refusal as refusal:
            found[False] = str(refusal)
    assert set(found) == {True, False}  # what the line advises does help
    assert found[False] == (
        "data set mine: column 'label' has only the one class 'dog' to train on: all 2 sample(s) of 'cat' went to "
        "test; take another split.seed, lower split.test, or add others (copies share a side)"
    )
    tar_of(tmp_path / "test.tar", {"cat/a.png": flat(1), "dog/b.png": flat(2)})
    tar_of(tmp_path / "train.tar", {f"dog/{number}.png": noise(number) for number in range(3)})
    with pytest.raises(Refusal, match="'cat' is in test alone; add samples of it to train"):
        written(archive(test="test.tar"), tmp_path / "given", tmp_path)


def cut_at_member(path: Path) -> None:
    os.truncate(path, min(1024 * 20, path.stat().st_size // 2))


def cut_in_content(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 + 7)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def removed(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("damage", [cut_at_member, cut_in_content, emptied, removed])
@pytest.mark.parametrize("file", ["train-000001.tar", "index.npz", "index.json"])
def test_missing_and_cut_files_are_noticed_when_opening(copy: Path, damage: Any, file: str) -> None:
    damage(copy / file)
    with pytest.raises(Refusal, match=file.replace(".", r"\.")):
        Shards(copy)


def test_a_flipped_bit_is_noticed_by_verify_and_in_the_index_when_opening(copy: Path) -> None:
    Shards(copy).verify()
    for name in ("train-000001.tar", "index.npz"):
        content = bytearray((copy / name).read_bytes())
        content[len(content) // 2] ^= 1
        (copy / name).write_bytes(content)
        if name.endswith("tar"):
            with pytest.raises(Refusal, match=name):
                Shards(copy).verify()
    with pytest.raises(Refusal, match=r"index\.npz"):
        Shards(copy)


def test_a_shard_cut_while_open_is_never_read_short(copy: Path) -> None:
    shards = Shards(copy)
    os.truncate(copy / "train-000000.tar", 4000)
    with pytest.raises(Refusal, match="ends inside sample 399"):
        shards.read("train", 399)


def test_an_unknown_split_is_refused_and_another_process_reads_the_same(digits: Path) -> None:
    shards = Shards(digits)
    with pytest.raises(Refusal, match="no split 'val'; known: train, test"):
        shards.images("val")
    shards.read("train", 0)
    assert pickle.loads(pickle.dumps(shards)).read("train", 0) == shards.read("train", 0)


def stage(
    folder: Path, *arguments: str, limit: int | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    def small_files() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.run(
        [sys.executable, "-m", "stages.shard", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        preexec_fn=small_files,
        check=False,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "specs" / "data").mkdir(parents=True)
    for name in ("digits", "shapes"):
        shutil.copy(ROOT / "specs" / "data" / f"{name}.yaml", tmp_path / "specs" / "data")
    text = (ROOT / "specs" / "examples" / "data" / "satellite.yaml").read_text()
    (tmp_path / "specs" / "data" / "tiles.yaml").write_text(text)
    (tmp_path / "specs" / "index.yaml").write_text("data:\n  tiles: {raw: rw}\nspecs: {}\n")
    return tmp_path


def test_the_stage_writes_its_folder_and_says_what_it_kept(project: Path) -> None:
    done = stage(project, "digits")
    assert done.returncode == 0
    assert "kept 1797 of 1797" in done.stdout
    assert Shards(project / "work" / "shard" / "digits").card.name == "digits"
    assert [path.name for path in (project / "work" / "shard").iterdir()] == ["digits"]


def test_the_stage_tells_what_was_refused_copied_and_odd_in_a_line_each(project: Path) -> None:
    (project / "rw").mkdir()
    for split in ("train", "test"):
        files = {f"{'ab'[number % 2]}/{number}.png": noise(number) for number in range(9 if split == "test" else 400)}
        tar_of(project / "rw" / f"{split}.tar", {**files, "a/page.jpg": b"<html>", "c/one.png": flat(250)})
    canvas = "input: {height: 4, width: 4, channels: 1, fit: resize}\n"
    text = (project / "specs" / "data" / "tiles.yaml").read_text()
    (project / "specs" / "data" / "tiles.yaml").write_text(re.sub(r"(?m)^input: .*\n", canvas, text))
    outputs = []
    for workers in ("1", "2"):
        done = stage(project, "tiles", LATENT_WORKERS=workers)
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]
    reason = "not a picture: none of bmp, gif, jpg, png, tif, webp"
    assert outputs[0].splitlines() == [
        "shard tiles: kept 411 of 413; 2 refused: not a picture (401 train, 10 test, 2 shards)",
        f"shard tiles: refused: a/page.jpg ({reason}), a/page.jpg ({reason})",
        "shard tiles: 10 exact copies, 10 both in train and in test",
        "shard tiles: column 'label': 1 class(es) with one sample to train on: c",
    ]
    ledger = json.loads((project / "work" / "shard" / "tiles" / "ledger.json").read_text())
    assert [file["split"] for file in ledger["files"]] == ["train", "test"]


def test_line_ends_and_escapes_in_names_never_reach_the_terminal(project: Path) -> None:
    (project / "rw").mkdir()
    name = "a/line\n\x1b[31mred\tü.jpg"
    for split in ("train", "test"):
        tar_of(project / "rw" / f"{split}.tar", {name: b"<html>"} | (classes() if split == "train" else {}))
    line = faults(stage(project, "tiles"))
    assert r"a/line\n\x1b[31mred\tü.jpg (not a picture" in line
    tar_of(project / "rw" / "test.tar", {**classes(4), name: b"<html>"})
    done = stage(project, "tiles")
    assert "\x1b" not in done.stdout
    assert r"a/line\n\x1b[31mred\tü.jpg (not a picture" in done.stdout


def test_what_sharding_refuses_names_the_data_spec(project: Path) -> None:
    (project / "rw").mkdir()
    for split in ("train", "test"):
        tar_of(project / "rw" / f"{split}.tar", {"a/page.jpg": b"<html>"})
    line = faults(stage(project, "tiles"))
    assert line.startswith("specs/data/tiles.yaml: data set tiles: no sample is left; see that the raw path in")
    assert "a/page.jpg (not a picture" in line
    left = Path("work") / "logs" / "tiles" / "shard_ledger.json"
    assert line.endswith(f"; {left} names all")
    ledger = json.loads((project / left).read_text())
    assert ledger["refusal"] in line
    assert (ledger["seen"], ledger["kept"], len(ledger["files"])) == (2, 0, 2)
    for split in ("train", "test"):
        tar_of(project / "rw" / f"{split}.tar", classes(8) | {"a/page.jpg": b"<html>"})
    assert stage(project, "tiles").returncode == 0
    assert not (project / left).exists()  # of a data set that is there now


def faults(done: subprocess.CompletedProcess[str]) -> str:
    """The lines of an error without the progress bar."""
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    lines = [
        line
        for line in done.stderr.replace("\r", "\n").splitlines()
        if "files" not in line.split("[")[0] and line.strip()
    ]
    assert len(lines) == 1
    return lines[0]


def test_what_a_user_can_mend_is_one_line_and_leaves_nothing_behind(project: Path) -> None:
    assert "did you mean 'digits'" in faults(stage(project, "digit"))
    (project / "raw").mkdir()
    assert "rw: no such file or folder; did you mean 'raw'?" in faults(stage(project, "tiles"))
    (project / "specs" / "index.yaml").write_text("data: {}\nspecs: {}\n")
    assert "specs/index.yaml: data.tiles.raw: missing" in faults(stage(project, "tiles"))
    assert "file size limit" in faults(stage(project, "digits", limit=100_000))
    assert list((project / "work" / "shard").iterdir()) == []
    (project / "work" / "shard" / "digits").write_text("a file")
    assert "work/shard/digits: is a file" in faults(stage(project, "digits"))


@pytest.mark.skipif(not OWN.is_dir(), reason="../shared/data is not there")
@pytest.mark.parametrize(
    ("name", "folder", "counts"),
    [("satellite", "remote_sensing", {"train": 832, "test": 262})],
)
def test_the_example_archives_are_kept_whole(tmp_path: Path, name: str, folder: str, counts: dict[str, int]) -> None:
    from pipeline.spec import read_spec

    card = written(read_spec(Path(f"specs/examples/data/{name}.yaml"), DataSpec), tmp_path / "out", OWN / folder)
    assert card.splits == counts
    assert Shards(tmp_path / "out").images("test").shape == (262, 3, 64, 64)
