"""Sharding as a whole: any number of processes writes the same bytes, groups stay together, the ledger tells all."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from small import ROOT

from pipeline import tars
from pipeline.data import DataSpec
from pipeline.images import decode, encode_png
from pipeline.intake import Kept, Lost, take
from pipeline.ledger import Ledger
from pipeline.sharding import shard
from pipeline.shards import DataCard, Grouped, Shards
from pipeline.spec import Refusal, parse
from pipeline.tars import Sample, write_split


def spec(**changes: Any) -> DataSpec:
    plain: dict[str, Any] = {
        "source": {"kind": "folder", "train": None, "test": None, "classes": "folder"},
        "manifest": None,
        "input": {"height": 8, "width": 8, "channels": 3, "fit": "resize", "background": 0, "range": None},
        "split": {"test": 0.3, "seed": 0, "group": None},
        "labels": ["label"],
        "ledger": {"strict": False, "budget": None, "repeated": "keep"},
    }
    return parse({**plain, **changes}, DataSpec, "data.yaml")


def rules(**changes: Any) -> dict[str, Any]:
    return {"strict": False, "budget": None, "repeated": "keep", **changes}


def written(data: DataSpec, raw: Path, folder: Path, workers: int = 1) -> tuple[DataCard, Ledger]:
    folder.mkdir()
    return shard(data, "mine", raw, folder, workers=workers)


def picture(number: int, side: int = 5) -> bytes:
    return encode_png(np.random.default_rng(number).integers(0, 256, (side, side + 1, 3), dtype=np.uint8))


def fill(raw: Path, count: int = 40, classes: str = "ab") -> Path:
    for number in range(count):
        path = raw / classes[number % len(classes)] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture(number))
    return raw


def told(folder: Path) -> dict[str, Any]:
    ledger: dict[str, Any] = json.loads((folder / "ledger.json").read_text())
    assert ledger["seen"] == ledger["kept"] + sum(ledger["refused"].values()) == ledger["kept"] + len(ledger["files"])
    return ledger


def sides(folder: Path) -> dict[str, str]:
    found = {}
    for path in folder.glob("*.tar"):
        with tarfile.open(path) as tar:
            for member in tar:
                if member.name.endswith("json"):
                    file = tar.extractfile(member)
                    assert file is not None
                    found[json.loads(file.read())["name"]] = path.name.split("-")[0]
    return found


def test_any_number_of_processes_writes_the_same_bytes(tmp_path: Path) -> None:
    raw = fill(tmp_path / "raw", 700)
    for number in range(0, 700, 50):
        (raw / "a" / f"bad{number}.png").write_bytes(picture(number)[:-40])
        Image.new("RGBA", (4, 4), (number % 256, 2, 3, 100)).save(raw / "b" / f"alpha{number}.png")
    data = spec()
    written(data, raw, tmp_path / "out1")
    names = sorted(path.name for path in (tmp_path / "out1").iterdir())
    for workers in (2, 3):
        written(data, raw, tmp_path / f"out{workers}", workers)
        assert names == sorted(path.name for path in (tmp_path / f"out{workers}").iterdir())
        for name in names:
            assert (tmp_path / "out1" / name).read_bytes() == (tmp_path / f"out{workers}" / name).read_bytes(), name


def test_shards_are_written_as_webdataset_writes_them(tmp_path: Path) -> None:
    from webdataset import TarWriter

    samples = [Sample(picture(number), "png", {"name": f"ü{number}", "label": "a"}) for number in range(7)]
    (shard_file,), _ = write_split(tmp_path, "train", samples, 0)
    with (tmp_path / "theirs.tar").open("wb") as file, TarWriter(file, encoder=False, mtime=0) as writer:
        for number, sample in enumerate(samples):
            text = json.dumps(sample.description, ensure_ascii=False).encode()
            writer.write({"__key__": f"{number:09d}", "png": sample.content, "json": text})
    assert (tmp_path / shard_file.file).read_bytes() == (tmp_path / "theirs.tar").read_bytes()


def test_a_shard_is_closed_once_it_is_large_and_no_sample_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = [
        Sample(bytes([number]) * length, "wav", {}) for number, length in enumerate([700, 9000, 10, 10, 5000, 1])
    ]
    (one,), _ = write_split(tmp_path, "whole", samples, 0)
    monkeypatch.setattr(tars, "BYTES", 6000)
    shards, places = write_split(tmp_path, "train", samples, 3)
    assert [each.count for each in shards] == [2, 3, 1]  # a sample of 700 takes 512 + 1024 bytes, and 1024 beside it
    assert one.count == 6
    for number, (shard_number, offset, size) in enumerate(zip(*places.values(), strict=True)):
        content = (tmp_path / shards[shard_number - 3].file).read_bytes()
        assert content[offset : offset + size] == samples[number].content
    assert [name for each in shards for name in names_in(tmp_path / each.file)] == names_in(tmp_path / one.file)


def names_in(archive: Path) -> list[str]:
    with tarfile.open(archive) as opened:
        return opened.getnames()


def test_shards_that_were_written_here_are_a_source_again(tmp_path: Path) -> None:
    card, _ = written(spec(), fill(tmp_path / "raw"), tmp_path / "out")
    source = {"kind": "webdataset", "train": "train-*.tar", "test": "test-*.tar", "classes": ["label"], "numbers": []}
    again, ledger = written(spec(source=source, split=None), tmp_path / "out", tmp_path / "again")
    assert (again.splits, again.columns, again.mean, again.std) == (card.splits, card.columns, card.mean, card.std)
    assert ledger.refused == []


class Pictures(torch.utils.data.Dataset[torch.Tensor]):
    """A sharded data set as PyTorch's loader reads it."""

    def __init__(self, shards: Shards):
        self.shards = shards

    def __len__(self) -> int:
        return self.shards.card.splits["train"]

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.from_numpy(self.shards.image("train", index))


@pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")  # on fewer cores than workers
@pytest.mark.parametrize("workers", [0, 2, 4])
def test_reading_gives_the_same_pictures_for_any_number_of_loader_workers(tmp_path: Path, workers: int) -> None:
    written(spec(), fill(tmp_path / "raw"), tmp_path / "out")
    shards = Shards(tmp_path / "out")
    loader = torch.utils.data.DataLoader(Pictures(shards), batch_size=4, num_workers=workers)
    np.testing.assert_array_equal(torch.cat(list(loader)).numpy(), Shards(tmp_path / "out").images("train"))


def with_patients(raw: Path, patients: int = 12) -> Path:
    fill(raw)
    rows = [f"{'ab'[number % 2]}/{number}.png,p{number % patients}" for number in range(40)]
    (raw / "table.csv").write_text("file,patient\n" + "\n".join(rows) + "\n")
    return raw


TABLE = {"file": "table.csv", "path": "file", "classes": ["patient"], "numbers": [], "split": None}


@pytest.mark.parametrize("seed", range(6))
def test_a_group_is_never_on_both_sides_and_stays_as_a_column(tmp_path: Path, seed: int) -> None:
    data = spec(manifest=TABLE, split={"test": 0.4, "seed": seed, "group": "patient"})
    card, _ = written(data, with_patients(tmp_path / "raw"), tmp_path / "out")
    assert list(card.columns) == ["label", "patient"]
    assert card.group == Grouped(column="patient", groups=12, both=0, pictures={"train": 0, "test": 0})
    shards = Shards(tmp_path / "out")
    patients = {
        split: {card.columns["patient"].classes[code] for code in shards.labels(split)["patient"]}
        for split in ("train", "test")
    }
    assert not patients["train"] & patients["test"]
    assert len(patients["train"] | patients["test"]) == 12


def test_a_group_keeps_its_side_when_others_are_added(tmp_path: Path) -> None:
    data = spec(manifest=TABLE, split={"test": 0.4, "seed": 1, "group": "patient"})
    found = []
    for name in ("few", "more"):
        raw = with_patients(tmp_path / name)
        if name == "more":
            (raw / "a" / "new.png").write_bytes(picture(99))
            with (raw / "table.csv").open("a") as table:
                table.write("a/new.png,p99\n")
        written(data, raw, tmp_path / f"{name}-out")
        found.append(sides(tmp_path / f"{name}-out"))
    assert found[0].items() <= found[1].items()
    assert len(found[1]) == 41


def test_a_picture_without_its_group_is_refused_and_an_unkept_label_may_be_missing(tmp_path: Path) -> None:
    raw = with_patients(tmp_path / "raw")
    text = (raw / "table.csv").read_text().replace("a/0.png,p0\n", "a/0.png,\n")
    (raw / "table.csv").write_text(text)
    written(spec(manifest=TABLE, split={"test": 0.4, "seed": 1, "group": "patient"}), raw, tmp_path / "out")
    assert told(tmp_path / "out")["refused"] == {"no label": 1}
    written(spec(manifest=TABLE), raw, tmp_path / "free")
    assert told(tmp_path / "free")["refused"] == {}


def test_the_manifest_may_hold_the_split(tmp_path: Path) -> None:
    raw = fill(tmp_path / "raw")
    rows = [f"{'ab'[number % 2]}/{number}.png,{'test' if number < 10 else 'train'}" for number in range(40)]
    (raw / "table.csv").write_text("file,side\n" + "\n".join(rows) + "\n")
    table = {**TABLE, "classes": [], "split": "side"}
    card, _ = written(spec(manifest=table, split=None), raw, tmp_path / "out")
    assert card.splits == {"train": 30, "test": 10}


def test_groups_on_both_sides_of_a_given_split_are_told_on_the_card_and_refused_where_strict(tmp_path: Path) -> None:
    raw = with_patients(tmp_path / "raw")
    lines = (raw / "table.csv").read_text().splitlines()
    table = {**TABLE, "split": "side"}
    given = {"test": None, "seed": None, "group": "patient"}
    strict = rules(strict=True)
    by_number = [number < 10 for number in range(40)]
    by_patient = [number % 12 < 4 for number in range(40)]
    for name, test in (("number", by_number), ("patient", by_patient)):
        rows = [f"{line},{'test' if side else 'train'}" for line, side in zip(lines[1:], test, strict=True)]
        (raw / "table.csv").write_text("\n".join([f"{lines[0]},side", *rows, ""]))
        card, _ = written(spec(manifest=table, split=given), raw, tmp_path / name)
        notes = [note for note in told(tmp_path / name)["notes"] if "both sides" in note]
        if name == "patient":
            assert card.group == Grouped(column="patient", groups=12, both=0, pictures={"train": 0, "test": 0})
            assert notes == []
            written(spec(manifest=table, split=given, ledger=strict), raw, tmp_path / "strict")
            continue
        assert card.group == Grouped(column="patient", groups=12, both=10, pictures={"train": 24, "test": 10})
        (note,) = notes
        assert note.startswith("column 'patient': 10 of 12 values have samples on both sides of the given split")
        assert "split: {test: 0.2, seed: 0, group: patient}" in note
        with pytest.raises(Refusal, match=r"data set mine: column 'patient': 10 of 12.*or set ledger\.strict: false"):
            written(spec(manifest=table, split=given, ledger=strict), raw, tmp_path / "refused")
        written(spec(manifest=table, split=None), raw, tmp_path / "free")  # no group is declared


@pytest.mark.parametrize("seed", range(8))
def test_exact_copies_are_on_one_side_and_told(tmp_path: Path, seed: int) -> None:
    raw = fill(tmp_path / "raw")
    for number in range(8):
        (raw / "ab"[number % 2] / f"copy{number}.png").write_bytes(picture(number))
    (raw / "b" / "copy.png").write_bytes(picture(0))  # of class a
    _, ledger = written(spec(split={"test": 0.5, "seed": seed, "group": None}), raw, tmp_path / "out")
    found = sides(tmp_path / "out")
    for number in range(8):
        assert found[f"{'ab'[number % 2]}/{number}.png"] == found[f"{'ab'[number % 2]}/copy{number}.png"]
    assert found["b/copy.png"] == found["a/0.png"]
    repeated = told(tmp_path / "out")["repeated"]
    assert (repeated["copies"], repeated["sets"]) == (9, 8)
    assert (repeated["label_conflicts"], repeated["train_and_test"]) == (1, 0)
    assert ledger.copies == "9 exact copies, 1 with other labels"


def two_sides(root: Path) -> tuple[DataSpec, Path]:
    """Folders train and test that share five pictures, one of them under another label."""
    fill(root / "train", 30)
    fill(root / "test", 4)
    (root / "test" / "b" / "0.png").write_bytes(picture(0))
    return spec(source={"kind": "folder", "train": "train", "test": "test", "classes": "folder"}, split=None), root


def test_copies_on_both_sides_are_told_taken_away_or_refused(tmp_path: Path) -> None:
    data, raw = two_sides(tmp_path / "raw")
    _, ledger = written(data, raw, tmp_path / "keep")
    assert ledger.copies == "5 exact copies, 1 with other labels, 4 both in train and in test"
    once = data.model_copy(update={"ledger": data.ledger.model_copy(update={"repeated": "once"})})
    card, _ = written(once, raw, tmp_path / "once")
    assert card.splits == {"train": 26, "test": 3}
    assert told(tmp_path / "once")["refused"] == {"copies with different labels": 3, "exact copy": 3}
    assert not [name for name in sides(tmp_path / "once") if name.startswith("train/a/0")]
    for changes in ({"repeated": "refuse"}, {"strict": True}):
        refusing = data.model_copy(update={"ledger": data.ledger.model_copy(update=changes)})
        with pytest.raises(Refusal, match=r"5 exact copies.* as train/a/0\.png = test/") as raised:
            written(refusing, raw, tmp_path / f"no{len(changes)}{changes.get('strict')}")
        assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"strict": True}, "2 of 42 files refused, and ledger.strict allows none: a/bad0.png (damaged picture"),
        ({"budget": 0.04}, "2 of 42 files refused, above ledger.budget = 0.04: a/bad0.png (damaged picture"),
        ({"budget": 0.05}, None),
    ],
)
def test_strictness_and_the_budget_name_the_first_files_and_pass_over_hidden_ones(
    tmp_path: Path, changes: dict[str, Any], line: str | None
) -> None:
    raw = fill(tmp_path / "raw")
    (raw / "a" / ".DS_Store").write_bytes(b"x")
    if line is not None and "strict" in changes:
        written(spec(ledger=rules(**changes)), raw, tmp_path / "good")
    for number in range(2):
        (raw / "a" / f"bad{number}.png").write_bytes(picture(number)[:-40])
    if line is None:
        written(spec(ledger=rules(**changes)), raw, tmp_path / "out")
        assert told(tmp_path / "out")["refused"] == {"damaged picture": 2, "hidden or system file": 1}
        return
    with pytest.raises(Refusal) as raised:
        written(spec(ledger=rules(**changes)), raw, tmp_path / "out")
    assert line in str(raised.value)
    assert "set strict: false" in str(raised.value) or "raise the budget" in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


def test_strictness_sees_an_archive_that_was_cut_between_two_members(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for number in range(40):
            info = tarfile.TarInfo(f"{'ab'[number % 2]}/{number}.png")
            info.size = len(picture(number))
            tar.addfile(info, io.BytesIO(picture(number)))
        end = tar.offset
    (tmp_path / "a.tar").write_bytes(buffer.getvalue()[:end])
    source = {"kind": "archive", "train": "a.tar", "test": None, "classes": "folder"}
    written(spec(source=source), tmp_path, tmp_path / "out")
    with pytest.raises(Refusal, match=r"a\.tar lacks the blocks that end an archive.*ledger\.strict"):
        written(spec(source=source, ledger=rules(strict=True)), tmp_path, tmp_path / "strict")


SHOWN: list[tuple[str, Callable[[], Image.Image], dict[str, Any]]] = [
    ("rotated.jpg", lambda: Image.effect_noise((9, 6), 50).convert("RGB"), {"exif": True}),
    ("alpha.png", lambda: Image.new("RGBA", (4, 4), (200, 10, 10, 128)), {}),
    ("palette.gif", lambda: Image.effect_noise((9, 6), 50).convert("P"), {}),
    ("cmyk.jpg", lambda: Image.new("CMYK", (8, 8), (20, 80, 10, 5)), {}),
    ("grey16.png", lambda: Image.fromarray(np.arange(0, 60000, 1000, np.uint16).reshape(6, 10)), {}),
    ("plain.jpg", lambda: Image.effect_noise((9, 6), 50).convert("RGB"), {}),
    ("plain.png", lambda: Image.effect_noise((9, 6), 50), {}),
    ("plain.bmp", lambda: Image.effect_noise((9, 6), 50).convert("RGB"), {}),
    ("plain.webp", lambda: Image.effect_noise((9, 6), 50).convert("RGB"), {"lossless": True}),
]


def test_bytes_are_kept_where_any_reader_sees_the_same_and_stored_without_loss_elsewhere(tmp_path: Path) -> None:
    raw = fill(tmp_path / "raw")
    given = {}
    for name, make, options in SHOWN:
        buffer = io.BytesIO()
        if options.get("exif"):
            exif = Image.Exif()
            exif[0x0112] = 8
            options = {"exif": exif}
        make().save(buffer, {"jpg": "JPEG", "tif": "TIFF"}.get(name[-3:], name.split(".")[1].upper()), **options)
        given[f"a/{name}"] = buffer.getvalue()
        (raw / "a" / name).write_bytes(buffer.getvalue())
    written(spec(), raw, tmp_path / "out")
    found = {}
    for path in (tmp_path / "out").glob("*.tar"):
        with tarfile.open(path) as tar:
            members = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
        for name, content in members.items():
            if name.endswith("json"):
                stored = next(other for other in members if other[:9] == name[:9] and other != name)
                found[json.loads(content)["name"]] = (stored.split(".")[1], members[stored])
    for name, content in given.items():
        extension, stored = found[name]
        if "plain" in name:
            assert (extension, stored) == (name.split(".")[1], content)
        else:
            assert extension == "png"
            wanted = decode(content)
            if not wanted.alpha:
                np.testing.assert_array_equal(decode(stored).pixels, wanted.pixels)
            with Image.open(io.BytesIO(stored)) as opened:  # as any reader sees it
                assert opened.mode in ("L", "RGB")
                assert opened.size[::-1] == wanted.pixels.shape[:2]


def test_many_channels_and_floats_go_through_to_the_reader(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(30, 6, 7, 5)).astype(np.float32)
    np.save(tmp_path / "x.npy", values)
    part = {"file": "x.npy", "images": None, "classes": {}, "numbers": {}}
    source = {"kind": "arrays", "layout": "channels_last", "train": part, "test": None}
    inside = {"height": 6, "width": 7, "channels": 5, "fit": "resize", "background": 0, "range": [-2.0, 2.0]}
    card, _ = written(spec(source=source, input=inside, labels=[]), tmp_path, tmp_path / "out")
    shards = Shards(tmp_path / "out")
    read = np.concatenate([shards.images("train"), shards.images("test")])
    wanted = np.moveaxis(np.clip(np.rint((values.astype(float) + 2) * 63.75), 0, 255), 3, 1)
    assert sorted(image.tobytes() for image in read) == sorted(image.astype(np.uint8).tobytes() for image in wanted)
    assert card.sizes == {"height": (6, 6, 6), "width": (7, 7, 7)}
    assert len(card.mean) == 5


def test_the_card_tells_sizes_priors_and_what_is_odd(tmp_path: Path) -> None:
    raw = fill(tmp_path / "raw", 30)
    (raw / "a" / "large.png").write_bytes(picture(99, side=50))
    (raw / "c").mkdir()
    (raw / "c" / "IMG.png").write_bytes(picture(100))
    (raw / "a" / "1.PNG").write_bytes(picture(101))
    (raw / "a" / "1.png").write_bytes(picture(102))
    card, ledger = written(spec(), raw, tmp_path / "out")
    assert card.sizes["height"] == (5, 5, 50)
    assert card.sizes["width"] == (6, 6, 51)
    counts = np.array(card.columns["label"].counts["train"])
    assert card.columns["label"].agreement == pytest.approx(((counts / counts.sum()) ** 2).sum())
    assert any("class(es) only in" in note or "one picture to train on: c" in note for note in ledger.notes)
    assert any("a/1.PNG and a/1.png" in note or "a/1.png and a/1.PNG" in note for note in ledger.notes)
    with Image.open(tmp_path / "out" / "card.png") as page:
        assert page.mode == "RGB"
        assert page.height > 96


def test_the_same_archive_on_both_sides_and_a_class_on_one_side_are_told(tmp_path: Path) -> None:
    for split in ("train", "test"):
        fill(tmp_path / "raw" / split, 20)
    fill(tmp_path / "raw" / "test", 21, classes="c")
    data = spec(source={"kind": "folder", "train": "train", "test": "test", "classes": "folder"}, split=None)
    _, ledger = written(data, tmp_path / "raw", tmp_path / "out")
    assert "20 both in train and in test" in ledger.copies
    assert "column 'label': 1 class(es) only in test: c" in ledger.notes


def test_a_file_that_vanishes_or_becomes_a_link_or_a_pipe_while_it_is_read_has_a_reason(tmp_path: Path) -> None:
    canvas = spec().input
    (tmp_path / "there.png").write_bytes(picture(0))
    (tmp_path / "link.png").symlink_to("there.png")
    os.mkfifo(tmp_path / "pipe.png")
    assert isinstance(take(tmp_path / "there.png", False, canvas), Kept)
    for name, reason in (
        ("gone.png", "cannot be opened"),
        ("link.png", "cannot be opened"),
        ("pipe.png", "no regular file"),
    ):
        outcome = take(tmp_path / name, False, canvas)
        assert isinstance(outcome, Lost)
        assert outcome.reason == reason


MEMORY = """
import resource, sys
from pathlib import Path
from pipeline.data import DataSpec
from pipeline.sharding import shard
from pipeline.spec import parse
plain = {"source": {"kind": "archive", "train": None, "test": None, "classes": None},
         "input": {"height": 8, "width": 8, "channels": 3, "fit": "resize"},
         "split": {"test": 0.3, "seed": 0}, "labels": []}
if __name__ == "__main__":
    shard(parse(plain, DataSpec, "x"), "mine", Path(sys.argv[1]), Path(sys.argv[2]), workers=2)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_memory_is_flat_in_the_size_of_the_data(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (150, 150, 3), dtype=np.uint8)
    (tmp_path / "run.py").write_text(MEMORY)
    peaks = []
    for count in (400, 2400):  # 27 and 162 MB
        with tarfile.open(tmp_path / f"{count}.tar", "w") as tar:
            for number in range(count):
                content = encode_png(noise) + number.to_bytes(4, "big")
                info = tarfile.TarInfo(f"{number}.png")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
        (tmp_path / f"out{count}").mkdir()
        arguments = [sys.executable, "run.py", f"{count}.tar", f"out{count}"]
        done = subprocess.run(
            arguments,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        peaks.append(int(done.stdout))
    assert peaks[1] < peaks[0] + 15_000, peaks  # KiB


def test_decoding_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        content = picture(0, side=400)
        for number in range(1500):
            info = tarfile.TarInfo(f"{number}.png")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    (tmp_path / "run.py").write_text(MEMORY)
    (tmp_path / "out").mkdir()
    running = subprocess.Popen(
        [sys.executable, "run.py", "a.tar", "out"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    children: list[int] = []
    for _ in range(200):
        time.sleep(0.05)
        children = below(running.pid)
        if len(children) >= 3:
            break
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert len(children) >= 3
    for _ in range(100):
        if not any(Path(f"/proc/{child}").exists() for child in children):
            return
        time.sleep(0.05)
    pytest.fail("a decoding process outlived the one that started it")


def below(process: int) -> list[int]:
    """Process ids of all descendants."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                fields = (path / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == process:
                found += [int(path.name), *below(int(path.name))]
    return found
