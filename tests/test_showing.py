"""The pictures of the declared invariances: what they show, that they are readable, and the same twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from small import ROOT, sharded, space

from pipeline.pictures import to_rgb
from pipeline.shards import Shards
from pipeline.showing import Column, page, show_views, written
from pipeline.spec import Refusal
from pipeline.views import Choose, Code, Grayscale, Rotation, Shift
from pipeline.views.distribution import Normal
from stages.check import main

CROP = {"kind": "resized_crop", "area": [0.3, 1.0]}
VIEWS = {
    "pair": {"kind": "pair"},
    "asymmetric": {"kind": "asymmetric", "first": [{"kind": "blur", "probability": 1.0}], "second": []},
    "multi_crop": {
        "kind": "multi_crop",
        "global_crop": CROP,
        "local_crop": CROP,
        "local_views": 3,
        "local_scale": 0.5,
    },
    "partners": {"kind": "partners", "column": "shape"},
}


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Shards:
    return sharded(tmp_path_factory.mktemp("shards"))


def opened(file: Path) -> np.ndarray:
    with Image.open(file) as image:
        return np.array(image)


@pytest.mark.parametrize("views", VIEWS.values(), ids=VIEWS)
def test_there_is_a_page_for_each_declared_invariance_and_one_of_all(
    shards: Shards, tmp_path: Path, views: dict[str, object]
) -> None:
    declared = space(views=views)
    (tmp_path / "99-old.png").write_bytes(b"")
    files = show_views(declared, shards, tmp_path, 3)
    kinds = [f"{number:02d}-{each.kind}.png" for number, each in enumerate(declared.declared())]
    assert [file.name for file in files] == [*kinds, "all.png"]
    assert sorted(tmp_path.iterdir()) == sorted(files)
    for file in files:
        assert opened(file).shape[1] >= 720


def test_the_same_call_writes_the_same_bytes(shards: Shards, tmp_path: Path) -> None:
    first, second = (show_views(space(), shards, tmp_path / name, 2) for name in ("a", "b"))
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in second]


def test_a_page_holds_every_image_at_its_place_and_size() -> None:
    images = torch.rand(2, 3, 8, 6)
    picture = page(["a title"], [Column("one", images), Column("two", 1 - images, band=True)])
    side = 8 * 14  # the smallest whole factor by which 8 pixels are readable
    rows, columns = 16 + 20 + 8 + 18, 16
    expected = (images[0].repeat_interleave(14, 1).repeat_interleave(14, 2).permute(1, 2, 0) * 255).round()
    assert torch.equal(picture[rows : rows + side, columns : columns + 84].float(), expected)
    below = rows + side + 4
    assert not torch.equal(picture[below : below + side, columns : columns + 84].float(), expected)
    beside = columns + 84 + 4 + 16
    other = ((1 - images[0]).repeat_interleave(14, 1).repeat_interleave(14, 2).permute(1, 2, 0) * 255).round()
    assert torch.equal(picture[rows : rows + side, beside : beside + 84].float(), other)
    assert bool((picture[:, :16] == 255).all())  # nothing is drawn over the margin
    assert bool((picture[:, -16:] == 255).all())


def test_long_titles_are_wrapped_inside_the_page() -> None:
    picture = page(["word " * 400], [Column("one", torch.zeros(1, 1, 8, 8))])
    assert picture.shape[1] == 720
    assert picture.shape[0] > 20 * 20
    assert bool((picture[:, -16:] == 255).all())


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 13, 5, 40), (1, 3, 300, 700), (1, 2, 100, 3)], ids=str)
def test_pictures_of_any_shape_and_bands_are_shown(shape: tuple[int, ...]) -> None:
    images = torch.rand(shape)
    picture = page(["t"], [Column("sample", images)])
    assert to_rgb(images).shape[1] == 3
    assert picture.dtype == torch.uint8
    assert picture.shape[0] <= 2 * 170 + 100


def test_the_strengths_of_an_invariance_go_from_little_to_the_first_draw(shards: Shards, tmp_path: Path) -> None:
    (file, _) = show_views(space(invariances=[{"kind": "channel_gain", "amount": 0.9}]), shards, tmp_path, 1)
    picture = opened(file)[-16 - 112 : -16].astype(float)  # one row of tiles of 16 x 7 pixels
    lefts = [16]
    for number in range(1, 8):
        lefts.append(lefts[-1] + 116 + (16 if number in (1, 5) else 0))
    sample, draw, *_, quarter, half, whole = (picture[:, left : left + 112] for left in lefts)
    assert np.array_equal(draw, whole)
    moved = [np.abs(tile - sample).mean() for tile in (quarter, half, whole)]
    assert 0 < moved[0] < moved[1] < moved[2]


def test_an_invariance_is_written_as_in_yaml() -> None:
    choose = Choose(of=(Shift(pixels=1.5), Rotation(degrees=Normal(mean=0, std=6, low=-20, high=20))), weights=(2, 1))
    assert written(choose) == (
        "{kind: choose, of: [{kind: shift, pixels: 1.5}, "
        "{kind: rotation, degrees: {kind: normal, mean: 0, std: 6, low: -20, high: 20}}], weights: [2, 1]}"
    )
    assert written(Grayscale()) == "{kind: grayscale, probability: 0.2}"
    code = Code(file="a.py", name="B", arguments={"c": [1, None, True]}, removes=frozenset({"scale", "hue"}))
    assert written(code) == "{kind: code, file: a.py, name: B, arguments: {c: [1, null, true]}, removes: [hue, scale]}"


def test_no_rows_and_unsharded_data_are_told_in_one_line(
    shards: Shards, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Refusal, match=r"--samples 0: must be 1 or more"):
        show_views(space(), shards, tmp_path, 0)
    spec = ROOT / "specs" / "shapes.yaml"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Refusal) as caught:
        main([str(spec), "--show-views"])
    assert str(caught.value) == (
        "work/shard/shapes/index.json: not there; run `dvc repro` or `python -m stages.shard shapes` first"
    )


def test_the_pictures_of_the_examples_are_there_and_small() -> None:
    folder = ROOT / "specs" / "examples" / "pictures"
    names = ("badly_scanned", "worn_print", "another_camera", "together", "own_code")
    assert {file.stem for file in folder.glob("*.png")} == set(names)
    charts = {"digits-knn-label", "digits-histogram_z", "shapes-map"}  # of the README
    assert {file.stem for file in folder.glob("*.svg")} == charts
    assert all(file.stat().st_size < 150_000 for file in folder.iterdir())
