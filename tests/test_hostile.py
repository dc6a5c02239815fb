"""Every line about pictures, archives, folders and arrays of a collection of hostile inputs, through sharding.

The collection lies beside the repository; where it does not, these tests are skipped. Generated siblings of each kind
are in tests/images, tests/sources and tests/test_sharding.py.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import tarfile
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pipeline.data import DataSpec
from pipeline.images import Input, Unreadable, decode, fit_image, read_image
from pipeline.sharding import shard
from pipeline.shards import Shards
from pipeline.sources import Archive, Arrays, Folder, Note, Record, Refused, WebDataset
from pipeline.spec import Refusal, parse

HOSTILE = Path("../shared/data/hostile")
pytestmark = pytest.mark.skipif(not HOSTILE.is_dir(), reason="../shared/data/hostile is not there")

IMAGES, TARS, TREE, ARRAYS = (HOSTILE / name for name in ("images", "tars", "tree", "arrays"))


def image(name: str) -> bytes:
    return (IMAGES / name).read_bytes()


def canvas(channels: int = 3, height: int = 64, width: int = 96, **changes: Any) -> Input:
    plain = {"height": height, "width": width, "channels": channels, "fit": "resize", "background": 0, **changes}
    return parse(plain, Input, "test.yaml")


def reason(name: str) -> str:
    with pytest.raises(Unreadable) as raised:
        decode(image(name))
    return raised.value.reason


def pillow(name: str, mode: str = "RGB") -> np.ndarray:
    with Image.open(io.BytesIO(image(name))) as opened:
        return np.asarray(opened.convert(mode))


def sharded(folder: Path, raw: Path, source: dict[str, Any], **changes: Any) -> tuple[Shards, dict[str, Any]]:
    plain: dict[str, Any] = {
        "source": source,
        "input": {"height": 16, "width": 16, "channels": 3, "fit": "resize", "background": 0},
        "split": {"test": 0.3, "seed": 3},
        "labels": [],
        **changes,
    }
    folder.mkdir()
    shard(parse(plain, DataSpec, "data.yaml"), "hostile", raw, folder)
    ledger = json.loads((folder / "ledger.json").read_text())
    assert ledger["seen"] == ledger["kept"] + sum(ledger["refused"].values())
    return Shards(folder), ledger


def test_every_line_about_pictures_archives_folders_and_arrays_is_met_here() -> None:
    here = Path(__file__).read_text(encoding="utf-8")
    with (HOSTILE / "manifest.csv").open(encoding="utf-8", newline="") as file:
        paths = [row["path"].split(" -> ")[0] for row in csv.DictReader(file)]
    ours = [path for path in paths if path.startswith(("images/", "tars/", "tree/")) or path.endswith(".npz")]
    assert len(ours) > 45
    for path in ours:
        words = {*path.split("/")[1:], path.rpartition("/")[2].removesuffix(".npz")}
        assert any(word in here for word in words) or "n" * 100 in path, path


def test_the_good_picture_is_read() -> None:
    np.testing.assert_array_equal(decode(image("ok.jpg")).pixels, pillow("ok.jpg"))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("truncated.jpg", "damaged picture"),
        ("zero_byte.jpg", "not a picture"),
        ("text_file.jpg", "not a picture"),
        ("bomb_20000x20000.png", "too many pixels"),
    ],
)
def test_what_is_no_usable_picture_has_its_reason(name: str, why: str) -> None:
    assert reason(name) == why


def test_a_png_named_jpg_is_a_png() -> None:
    found = decode(image("png_named.jpg"))
    assert (found.extension, found.plain) == ("png", True)
    np.testing.assert_array_equal(found.pixels, pillow("png_named.jpg"))


def test_cmyk_becomes_three_channels_and_is_stored_anew() -> None:
    found = decode(image("cmyk.jpg"))
    np.testing.assert_array_equal(found.pixels, pillow("cmyk.jpg"))
    assert not found.plain


def test_grey_is_repeated_over_the_channels_of_the_canvas() -> None:
    grey = read_image(image("gray8.png"), canvas())
    np.testing.assert_array_equal(grey, pillow("gray8.png"))


@pytest.mark.parametrize("name", ["gray16.png", "gray16.tif"])
def test_sixteen_bits_are_scaled_over_their_range(name: str) -> None:
    with Image.open(io.BytesIO(image(name))) as opened:
        levels = np.asarray(opened).astype(float)
    found = decode(image(name)).pixels[..., 0]
    np.testing.assert_array_equal(found, np.rint(levels / 257))
    declared = decode(image(name), (0.0, 1000.0)).pixels[..., 0]
    np.testing.assert_array_equal(declared, np.clip(np.rint(levels * 0.255), 0, 255))


def test_what_is_under_transparent_pixels_is_never_seen() -> None:
    shown = read_image(image("rgba.png"), canvas(background=77))
    assert (shown[:, : shown.shape[1] // 2] == 77).all()


def test_a_rotated_photograph_is_upright() -> None:
    found = decode(image("exif_rotated_6.jpg"))
    np.testing.assert_array_equal(found.pixels, np.rot90(pillow("exif_rotated_6.jpg"), -1))
    assert found.pixels.shape == (96, 64, 3)


def test_an_animation_is_its_first_frame() -> None:
    found = decode(image("animated.gif"))
    np.testing.assert_array_equal(found.pixels, pillow("animated.gif"))
    assert (found.extension, found.plain) == ("gif", False)


@pytest.mark.parametrize(("name", "shape"), [("one_pixel.png", (1, 1)), ("wide_8000x20.png", (20, 8000))])
@pytest.mark.parametrize("fit", ["pad", "resize", "cover"])
def test_extreme_sizes_go_on_any_canvas(name: str, shape: tuple[int, int], fit: str) -> None:
    assert decode(image(name)).pixels.shape[:2] == shape
    inside = canvas(fit=fit)
    assert fit_image(read_image(image(name), inside), inside).shape == (3, 64, 96)


def test_five_bands_are_five_channels_or_refused_by_their_number() -> None:
    pixels = read_image(image("bands5.tif"), canvas(5))
    assert pixels.shape == (24, 32, 5)
    assert len({band.tobytes() for band in np.moveaxis(pixels, 2, 0)}) == 5
    with pytest.raises(Refusal, match="5 channels"):
        read_image(image("bands5.tif"), canvas(3))


def test_the_bomb_allocates_nothing() -> None:
    content = image("bomb_20000x20000.png")
    tracemalloc.start()
    with pytest.raises(Unreadable):
        decode(content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_all_pictures_together_are_kept_or_told_and_their_names_stay_whole(tmp_path: Path) -> None:
    shards, ledger = sharded(tmp_path / "out", IMAGES, {"kind": "folder", "train": None, "test": None, "classes": None})
    names = [described["name"] for split in ("train", "test") for described in descriptions(tmp_path / "out", split)]
    files = sorted(str(path.relative_to(IMAGES)) for path in IMAGES.rglob("*") if path.is_file())
    told = {file["name"]: file["reason"] for file in ledger["files"]}
    assert sorted([*names, *told]) == files
    assert told == {
        "truncated.jpg": "damaged picture",
        "zero_byte.jpg": "not a picture",
        "text_file.jpg": "not a picture",
        "bands5.tif": "wrong channels",
        "bomb_20000x20000.png": "too many pixels",
    }
    assert {"with space ünïcode 画像.jpg", "a.b.c.jpg", "-rf.jpg", "UPPER.JPG", "n" * 200 + ".jpg"} <= {
        name if len(name) < 100 else "n" * 200 + ".jpg" for name in names
    }
    for split in ("train", "test"):
        assert shards.images(split).shape[1:] == (3, 16, 16)
    assert ledger["repeated"]["copies"] == 1


def descriptions(folder: Path, split: str) -> list[dict[str, Any]]:
    found = []
    for path in sorted(folder.glob(f"{split}-*.tar")):
        with tarfile.open(path) as tar:
            for member in tar:
                if member.name.endswith("json"):
                    file = tar.extractfile(member)
                    assert file is not None
                    found.append(json.loads(file.read()))
    return found


def test_equal_bytes_with_two_labels_are_told_and_never_on_both_sides(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    shutil.copytree(IMAGES / "label_conflict", raw)
    for kind in ("eosinophil", "neutrophil"):
        for level in range(20):
            Image.new("RGB", (8, 8), (level, 0, ord(kind[0]))).save(raw / kind / f"{level}{kind}.png")
    source = {"kind": "folder", "train": None, "test": None, "classes": "folder"}
    for seed in range(12):
        split = {"test": 0.5, "seed": seed}
        _, ledger = sharded(tmp_path / f"out{seed}", raw, source, labels=["label"], split=split)
        first = ledger["repeated"]["files"][0]
        assert ledger["repeated"]["label_conflicts"] == 1
        assert {place["name"] for place in first} >= {"eosinophil/EO_225902.jpg", "neutrophil/BNE_191112.jpg"}
        assert len({place["split"] for place in first}) == 1
    rules = {"strict": False, "budget": None, "repeated": "once"}
    _, ledger = sharded(tmp_path / "once", raw, source, labels=["label"], ledger=rules)
    assert ledger["refused"] == {"copies with different labels": 2}
    with pytest.raises(Refusal, match="1 exact copies, 1 with other labels"):
        sharded(tmp_path / "no", raw, source, labels=["label"], ledger={**rules, "repeated": "refuse"})


def walked(name: str, **changes: Any) -> tuple[list[str], dict[str, int], list[str]]:
    plain: dict[str, Any] = {"kind": "archive", "train": name, "test": None, "classes": None, **changes}
    items = list(parse(plain, Archive, "x.yaml").records(TARS))
    refused: dict[str, int] = {}
    for item in items:
        if isinstance(item, Refused):
            refused[item.reason] = refused.get(item.reason, 0) + 1
    return (
        [item.name for item in items if isinstance(item, Record)],
        refused,
        [item.text for item in items if isinstance(item, Note)],
    )


def test_nothing_of_an_archive_leaves_its_place() -> None:
    kept, refused, _ = walked("traversal.tar")
    assert {"0001.jpg", "0002.jpg"} <= set(kept)
    assert refused == {"unsafe path": 3, "no regular file": 1}
    assert not any(".." in name or name.startswith("/") for name in kept)


@pytest.mark.parametrize("name", ["truncated_mid_member.tar", "truncated.tar.gz"])
def test_a_cut_archive_gives_its_whole_members_and_says_where_it_ends(name: str) -> None:
    kept, refused, notes = walked(name)
    assert len(kept) == (4 if name == "truncated_mid_member.tar" else 3)
    assert refused == {"archive cut or damaged": 1}
    assert name in notes[0]


def test_an_archive_without_its_end_is_read_whole_with_a_note() -> None:
    kept, refused, notes = walked("no_end_blocks.tar")
    assert (len(kept), refused, len(notes)) == (6, {}, 1)


@pytest.mark.parametrize("name", ["zero_byte.tar", "empty.tar", "not_a_tar.tar"])
def test_an_archive_without_pictures_is_one_line_and_no_empty_data_set(tmp_path: Path, name: str) -> None:
    source = {"kind": "archive", "train": name, "test": None, "classes": None}
    with pytest.raises(Refusal) as raised:
        sharded(tmp_path / "out", TARS, source)
    assert len(str(raised.value).splitlines()) == 1


def samples(name: str, classes: list[str]) -> list[Any]:
    plain = {"kind": "webdataset", "train": name, "test": None, "classes": classes, "numbers": []}
    return list(parse(plain, WebDataset, "x.yaml").records(TARS))


def test_keys_with_dots_are_three_samples() -> None:
    found = samples("dotted_keys.tar", ["cls"])
    assert [item.name for item in found] == [f"dotted_keys.tar/{key}.jpg" for key in ("a.b.c", "a.d", "b.v1")]
    assert all(isinstance(item, Record) and "cls" in item.labels for item in found)


def test_samples_that_lack_a_part_are_told_and_unlabelled_pictures_kept_where_no_label_is_declared(
    tmp_path: Path,
) -> None:
    found = samples("missing_parts.tar", ["cls"])
    told = {item.name: item.reason for item in found if isinstance(item, Refused)}
    assert told == {"missing_parts.tar/0003.cls": "no picture"}
    labelled = [item.name for item in found if isinstance(item, Record) and "cls" in item.labels]
    assert labelled == ["missing_parts.tar/0001.jpg"]
    source = {"kind": "webdataset", "train": "missing_parts.tar", "test": None, "classes": ["cls"], "numbers": []}
    with pytest.raises(Refusal, match=r"only 1 sample, .*kept 1 of 4; 2 refused: no label; 1 refused: no picture"):
        sharded(tmp_path / "labelled", TARS, source, labels=["cls"])
    with pytest.raises(Refusal, match="kept 3 of 4; 1 refused: no picture"):
        sharded(tmp_path / "free", TARS, source, split={"test": 0.001, "seed": 0})


def test_what_systems_leave_in_an_archive_is_counted_and_no_sample() -> None:
    assert walked("macos_junk.tar")[0] == ["0001.jpg"]
    assert walked("macos_junk.tar")[1] == {"hidden or system file": 4}


def test_only_regular_members_are_read() -> None:
    kept, refused, _ = walked("special_members.tar")
    assert (len(kept), refused) == (1, {"no regular file": 4})


def test_the_tree_is_walked_once_and_all_of_it_is_accounted_for(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(TREE, tree, symlinks=True)
    (tree / "empty_class").mkdir(exist_ok=True)
    for name, target in (
        ("dog/loop", "."),
        ("cat/up", "../../.."),
        ("cat/dangling.jpg", "gone.jpg"),
        ("cat/alias.jpg", "img.jpg"),
    ):
        (tree / name).unlink(missing_ok=True)  # links do not survive every copy
        (tree / name).symlink_to(target)
    os.mkfifo(tree / "cat" / "pipe.jpg")
    source = parse({"kind": "folder", "train": None, "test": None, "classes": "folder"}, Folder, "x.yaml")
    items = list(source.records(tree))
    kept = {item.name: item.labels["label"] for item in items if isinstance(item, Record)}
    assert kept == {
        "bird/nested/deep/img.jpg": "bird",
        "cat/img.jpg": "cat",
        "dog/IMG.jpg": "dog",
        "dog/img.jpg": "dog",
        "dog/notes.txt": "dog",
    }
    assert {item.name: item.reason for item in items if isinstance(item, Refused)} == {
        ".ipynb_checkpoints": "hidden or system file",
        "__MACOSX": "hidden or system file",
        "dog/.DS_Store": "hidden or system file",
        "dog/Thumbs.db": "hidden or system file",
        "dog/loop": "no regular file",
        "cat/up": "no regular file",
        "cat/dangling.jpg": "no regular file",
        "cat/alias.jpg": "no regular file",
        "cat/pipe.jpg": "no regular file",
    }
    assert [item.text for item in items if isinstance(item, Note)] == ["1 empty folder(s), no class: empty_class"]
    for seed in range(40):  # five pictures: a split that has both sides
        try:
            shards, ledger = sharded(
                tmp_path / f"out{seed}", tree, source.model_dump(), labels=["label"], split={"test": 0.4, "seed": seed}
            )
        except Refusal:
            continue
        assert ledger["kept"] == 4
        assert ledger["refused"]["not a picture"] == 1
        assert shards.card.columns["label"].classes == ("bird", "cat", "dog")
        assert any("differ only in case" in note and "dog/IMG.jpg" in note for note in ledger["notes"])
        return
    pytest.fail("no seed splits four pictures")


def arrays(name: str, images: str | None, **changes: Any) -> list[Any]:
    part = {"file": name, "images": images, "classes": {}, "numbers": {}, **changes}
    plain = {"kind": "arrays", "layout": "channels_last", "train": part, "test": None}
    return list(parse(plain, Arrays, "x.yaml").records(ARRAYS))


@pytest.mark.parametrize(
    ("name", "images", "line"),
    [
        ("ok.npz", "state", "ok.npz/state: shape (64, 8); pictures are"),
        ("ok.npz", "stat", "did you mean 'state'?"),
        ("not_a_zip.npz", "state", "not an .npz, or damaged"),
        ("not_a_zip.npz", None, "no array that can be read"),
    ],
)
def test_arrays_that_are_no_pictures_are_refused_in_one_line(name: str, images: str | None, line: str) -> None:
    with pytest.raises(Refusal) as raised:
        arrays(name, images)
    assert line in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


def test_pickled_objects_are_refused_unread() -> None:
    with np.load(ARRAYS / "object_pickle.npz", allow_pickle=False) as opened:
        names = opened.files
    told = set()
    for name in names:
        with pytest.raises(Refusal) as raised:
            arrays("object_pickle.npz", name)
        told.add(str(raised.value).split(":")[1].split(";")[0])
    assert any("Python objects" in line for line in told)


@pytest.mark.parametrize(("labels", "line"), [("action", "64 pictures, but 60 values"), ("nothing", "no array")])
def test_labels_of_another_length_are_refused_with_both_lengths(tmp_path: Path, labels: str, line: str) -> None:
    with np.load(ARRAYS / "length_mismatch.npz") as opened:
        pictures = np.repeat(opened["state"][:, None, :, None], 8, axis=1).astype(np.float32)
        np.savez(tmp_path / "mixed.npz", state=pictures, action=opened["action"][:, 0])
    part = {"file": "mixed.npz", "images": "state", "classes": {}, "numbers": {"strength": labels}}
    plain = {"kind": "arrays", "layout": "channels_last", "train": part, "test": None}
    with pytest.raises(Refusal, match=line):
        list(parse(plain, Arrays, "x.yaml").records(tmp_path))


def test_a_picture_with_nan_is_refused_by_its_place_and_constant_channels_stay(tmp_path: Path) -> None:
    rows = {}
    for name in ("nan", "constant_channel"):
        with np.load(ARRAYS / f"{name}.npz") as opened:
            rows[name] = np.repeat(opened["state"][:, None, :, None], 4, axis=1)
    np.save(tmp_path / "all.npy", np.concatenate(list(rows.values())).astype(np.float32))
    part = {"file": "all.npy", "images": None, "classes": {}, "numbers": {}}
    source = {"kind": "arrays", "layout": "channels_last", "train": part, "test": None}
    inside = {"height": 4, "width": 8, "channels": 1, "fit": "resize", "background": 0, "range": [-4.0, 4.0]}
    _, ledger = sharded(tmp_path / "out", tmp_path, source, input=inside)
    assert ledger["refused"] == {"not finite": 1}
    assert ledger["files"][0]["name"] == "all.npy/000000010"
    assert "(row, column, channel) (0, 3, 0)" in ledger["files"][0]["detail"]
