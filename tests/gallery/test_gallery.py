"""Maps against scikit-learn, neighbours against brute force, pictures that are those of their samples, equal bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mutants import Wrong, applied
from PIL import Image
from sklearn.decomposition import PCA
from sklearn.manifold import trustworthiness
from small import sharded

from pipeline.embeddings import Embeddings
from pipeline.gallery.build import DRAWN, MAP_SIDE, build, chosen
from pipeline.gallery.lists import SHOWN, first, lists
from pipeline.gallery.maps import fitted, nearby, principal
from pipeline.gallery.nearest import AMONG, NEAREST, QUERIES, neighbours, queries
from pipeline.gallery.sprites import Sprite, joined
from pipeline.neighbours import unit
from pipeline.report.results_gallery import Gallery
from pipeline.shards import Shards
from pipeline.spec import Refusal


def blobs(count: int = 90, dimensions: int = 12, seed: int = 0) -> np.ndarray:
    """Three groups of directions: (count, dimensions) of length one."""
    random = np.random.default_rng(seed)
    centres = 4 * random.standard_normal((3, dimensions))
    return unit(centres[np.arange(count) % 3] + random.standard_normal((count, dimensions)))


# -- maps --------------------------------------------------------------------------------------------------------------


def law_principal() -> None:
    rows, drawn = blobs(), np.array([3, 5, 88])
    places, shares = principal(rows, drawn)
    oracle = PCA(2).fit(rows.astype(np.float64))
    signs = np.sign(oracle.components_[[0, 1], np.abs(oracle.components_).argmax(axis=1)])
    assert places == pytest.approx(oracle.transform(rows)[drawn] * signs, abs=1e-6)
    assert shares == pytest.approx(oracle.explained_variance_ratio_, abs=1e-6)


def test_the_plane_is_that_of_scikit_learn_with_a_sign_of_its_own() -> None:
    law_principal()
    rows = blobs()
    mirrored, _ = principal(-rows, np.arange(90))
    assert mirrored == pytest.approx(-principal(rows, np.arange(90))[0], abs=1e-6)


def law_nearby() -> None:
    rows = blobs()
    plane, _ = principal(rows, np.arange(len(rows)))
    places, perplexity = nearby(rows, plane)
    assert perplexity == pytest.approx(89 / 3)
    assert trustworthiness(rows, places, n_neighbors=10) > 0.85
    groups = [places[group::3] for group in range(3)]
    inside = max(float(np.linalg.norm(group - group.mean(axis=0), axis=1).max()) for group in groups)
    centres = np.array([group.mean(axis=0) for group in groups])
    apart = min(float(np.linalg.norm(centres[a] - centres[b])) for a, b in ((0, 1), (0, 2), (1, 2)))
    assert apart > inside


def test_neighbourhoods_are_kept_and_the_same_on_every_call() -> None:
    law_nearby()
    rows = blobs()
    plane, _ = principal(rows, np.arange(90))
    assert (nearby(rows, plane)[0] == nearby(rows, plane)[0]).all()


def test_four_samples_have_a_map() -> None:
    rows = blobs(4)
    plane, _ = principal(rows, np.arange(4))
    assert np.isfinite(nearby(rows, plane)[0]).all()


def test_a_map_fits_its_frame_and_keeps_its_shape() -> None:
    points = np.array([[10.0, 5.0], [14.0, 5.0], [12.0, 6.0]])
    assert fitted(points).tolist() == [[-1.0, -0.25], [1.0, -0.25], [0.0, 0.25]]
    assert fitted(np.full((3, 2), 7.0)).tolist() == [[0.0, 0.0]] * 3


def test_fewer_drawn_samples_are_a_part_of_more() -> None:
    few, more = chosen(1000, 50), chosen(1000, 200)
    assert len(set(few)) == 50
    assert set(few) <= set(more)
    assert (np.diff(more) > 0).all()
    assert chosen(30, 50).tolist() == list(range(30))


# -- neighbours --------------------------------------------------------------------------------------------------------


def law_queries() -> None:
    codes = np.random.default_rng(3).integers(0, 5, 200)
    asked = queries(codes, 200, QUERIES)
    assert sorted(codes[asked[:5]]) == [0, 1, 2, 3, 4]
    assert sorted(codes[asked[5:]]) == [0, 1, 2]
    order = np.random.default_rng(0).permutation(200).tolist()
    for code in range(5):
        own = [row for row in order if codes[row] == code]
        assert own[: int((codes[asked] == code).sum())] == [row for row in asked.tolist() if codes[row] == code]


def test_those_who_ask_are_the_first_of_each_class_in_a_fixed_order() -> None:
    law_queries()
    assert queries(None, 20, 8).tolist() == np.random.default_rng(0).permutation(20)[:8].tolist()
    assert len(queries(np.zeros(3, np.int64), 3, 8)) == 3


class Thumbnails:
    """Stands for shards: a sample's picture has its row as every pixel."""

    def thumbnail(self, split: str, row: int, side: int) -> np.ndarray:
        return np.full((6, 8, 3), row + (100 if split == "train" else 0), np.uint8)


def embedded(folder: Path, rows: int = 60, **changed: np.ndarray) -> Embeddings:
    """An embed folder with random vectors, a class column and one of numbers."""
    random = np.random.default_rng(1)
    for split, count in (("train", 2 * rows), ("test", rows)):
        for layer, width in (("h", 9), ("raw", 5)):
            vectors = random.standard_normal((count, width)).astype(np.float32)
            np.save(folder / f"{split}.{layer}.npy", changed.get(f"{split}_{layer}", vectors))
    codes = {split: random.integers(0, 3, count) for split, count in (("train", 2 * rows), ("test", rows))}
    ages = {split: np.where(each == 0, np.nan, 1.5 * each) for split, each in codes.items()}
    held = {f"{split}.shape": each for split, each in codes.items()} | {f"{k}.age": v for k, v in ages.items()}
    np.savez(folder / "labels.npz", **held)
    columns = {"shape": {"kind": "class", "classes": ["a", "b", "c"]}, "age": {"kind": "number", "classes": []}}
    (folder / "columns.json").write_text(json.dumps(columns))
    return Embeddings(folder)


def law_neighbours(folder: Path) -> None:
    space, sprite = embedded(folder), Sprite(Thumbnails(), 8)  # type: ignore[arg-type]
    found = neighbours(space, "shape", sprite)
    assert (found["note"], found["column"], found["classes"]) == ("", "shape", ["a", "b", "c"])
    assert len(found["queries"]) == QUERIES
    cells = {cell: place for place, cell in sprite.places.items()}
    for query in found["queries"]:
        assert cells[query["cell"]] == ("test", query["row"])
        assert query["code"] == space.labels("test", "shape")[query["row"]]
        for layer in ("h", "raw"):
            own = space.features("test", layer)[query["row"]].astype(np.float64)
            gallery = space.features("train", layer).astype(np.float64)
            cosines = gallery @ own / np.linalg.norm(gallery, axis=1) / np.linalg.norm(own)
            best = np.argsort(-cosines)[:NEAREST]
            assert [each["row"] for each in query["layers"][layer]] == best.tolist()
            assert [each["cosine"] for each in query["layers"][layer]] == pytest.approx(cosines[best], abs=2e-6)
            for each in query["layers"][layer]:
                assert cells[each["cell"]] == ("train", each["row"])
                assert each["code"] == space.labels("train", "shape")[each["row"]]


def test_neighbours_are_those_of_brute_force_each_with_its_own_picture_and_class(tmp_path: Path) -> None:
    law_neighbours(tmp_path)


def test_a_layer_that_has_no_neighbours_says_why_and_the_other_is_shown(tmp_path: Path) -> None:
    space = embedded(tmp_path, train_h=np.ones((120, 9), np.float32))
    found = neighbours(space, None, Sprite(Thumbnails(), 8))  # type: ignore[arg-type]
    assert found["note"] == "h: all rows are equal"
    assert all(list(query["layers"]) == ["raw"] for query in found["queries"])
    assert {query["code"] for query in found["queries"]} == {None}
    assert found["classes"] == []


def test_a_large_training_split_is_searched_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert AMONG >= 1000
    monkeypatch.setattr("pipeline.gallery.nearest.AMONG", 30)
    space = embedded(tmp_path)
    found = neighbours(space, "shape", Sprite(Thumbnails(), 8))  # type: ignore[arg-type]
    rows = {each["row"] for query in found["queries"] for each in query["layers"]["h"]}
    assert found["among"] == 30
    assert rows <= set(np.random.default_rng(0).permutation(120)[:30].tolist())


WRONG = (
    Wrong(
        "the least variance", "pipeline.gallery.maps", "[len(scatter) - 2, len(scatter) - 1]", "[0, 1]", law_principal
    ),
    Wrong("not centred", "pipeline.gallery.maps", "whole - whole.mean(axis=0)", "whole - 0", law_principal),
    Wrong("no sign", "pipeline.gallery.maps", "axes = axes * np.sign(", "axes = axes * np.abs(", law_principal),
    Wrong("start alone", "pipeline.gallery.maps", "return placed.astype(np.float64)", "return 0 * placed", law_nearby),
    Wrong("one class", "pipeline.gallery.nearest", "(codes[order], turn[order])", "(codes[order],)", law_queries),
    Wrong(
        "in the split's order",
        "pipeline.gallery.nearest",
        "order[codes[order] == code]",
        "order[codes == code]",
        law_queries,
    ),
    Wrong(
        "rows of the part", "pipeline.gallery.nearest", "among[index], strict", "index[:, ::-1], strict", law_neighbours
    ),
    Wrong("their own split", "pipeline.gallery.nearest", '"train", layer)[among]', '"test", layer)', law_neighbours),
)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_a_wrong_map_or_neighbour_is_noticed(wrong: Wrong, tmp_path: Path) -> None:
    arguments = [tmp_path] if wrong.law is law_neighbours else []
    with applied(wrong), pytest.raises((AssertionError, IndexError, ValueError)):  # type: ignore[arg-type]
        wrong.law(*arguments)


# -- pictures ----------------------------------------------------------------------------------------------------------


def test_a_sample_is_one_cell_however_often_it_is_asked_for_and_cells_are_in_order(tmp_path: Path) -> None:
    sprite = Sprite(Thumbnails(), 8)  # type: ignore[arg-type]
    assert [sprite.cell("test", 9), sprite.cell("train", 9), sprite.cell("test", 9)] == [0, 1, 0]
    told = sprite.write(tmp_path / "x.webp")
    assert told == {"columns": 1, "width": 8, "height": 6, "count": 2}
    shown = np.asarray(Image.open(tmp_path / "x.webp").convert("L"), dtype=int)
    assert shown.shape == (12, 8)
    assert abs(shown[1:5].mean() - 9) < 4
    assert abs(shown[7:11].mean() - 109) < 4


def test_a_sheet_is_nearly_square_and_holds_every_picture() -> None:
    pictures = [np.full((10, 20, 3), number, np.uint8) for number in range(23)]
    sheet, columns = joined(pictures)
    assert 0.5 < sheet.shape[0] / sheet.shape[1] < 2
    for number in range(23):
        row, column = divmod(number, columns)
        assert (sheet[10 * row : 10 * row + 10, 20 * column : 20 * column + 20] == number).all()


def test_nothing_to_show_is_no_file(tmp_path: Path) -> None:
    assert Sprite(Thumbnails(), 8).write(tmp_path / "x.webp")["count"] == 0  # type: ignore[arg-type]
    assert not (tmp_path / "x.webp").exists()


# -- lists -------------------------------------------------------------------------------------------------------------

PAIR = "column,cosine,positive_cosine," + ",".join(
    f"{which}_{what}" for which in ("first", "second") for what in ("split", "row", "name", "label")
)
VOTED = "column,label,voted,share,own_share,split,row,name,hue\n"


def test_a_list_is_read_with_its_figures_labels_and_pictures(tmp_path: Path) -> None:
    (tmp_path / "worst_false_negatives.csv").write_text(f"{PAIR}\nlabel,0.9,0.8,test,4,x.png,a,test,5,y.png,a\n")
    (tmp_path / "suspicious_labels.csv").write_text(f"{VOTED}label,a,b,0.9,0.1,train,7,z.png,red\n")
    sprite = Sprite(Thumbnails(), 8)  # type: ignore[arg-type]
    found = lists(tmp_path, {"train": 10, "test": 6}, sprite)
    assert list(found) == ["worst_false_negatives", "suspicious_labels"]
    (pair,) = found["worst_false_negatives"]
    assert pair["figures"] == {"cosine": 0.9, "positive_cosine": 0.8}
    assert pair["column"] == "label"
    assert [(each["split"], each["row"], each["name"], each["labels"]) for each in pair["samples"]] == [
        ("test", 4, "x.png", {"label": "a"}),
        ("test", 5, "y.png", {"label": "a"}),
    ]
    (one,) = found["suspicious_labels"]
    assert (one["label"], one["voted"], one["samples"][0]["labels"]) == ("a", "b", {"hue": "red", "label": "a"})
    assert list(sprite.places) == [("test", 4), ("test", 5), ("train", 7)]


def test_every_column_of_a_list_has_its_share() -> None:
    lines = [{"column": name, "row": str(row)} for name in "ab" for row in range(50)]
    assert [(each["column"], each["row"]) for each in first(lines)][:: SHOWN // 2] == [("a", "0"), ("b", "0")]
    assert len(first(lines)) == SHOWN
    assert len(first([{"row": str(row)} for row in range(50)])) == SHOWN


@pytest.mark.parametrize(
    "line", ["label,0.9,0.8,test,6,x,a,test,5,y,a", "label,0.9,0.8,test,x,x,a", "label,?,1,test,1,x,a,test,2,y,a"]
)
def test_a_list_that_is_not_of_this_data_is_one_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "worst_false_negatives.csv").write_text(f"{PAIR}\n{line}\n")
    with pytest.raises(Refusal, match=r"worst_false_negatives\.csv: damaged"):
        lists(tmp_path, {"train": 10, "test": 6}, Sprite(Thumbnails(), 8))  # type: ignore[arg-type]


# -- everything --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Shards:
    return sharded(tmp_path_factory.mktemp("shards") / "small")


def made(folder: Path, shards: Shards, **changed: Any) -> tuple[Any, dict[str, bytes]]:
    source, target = folder / "embed", folder / "gallery"
    for each in (source, target):
        each.mkdir()
    half = shards.card.splits["test"] // 2
    found = build(target, embedded(source, half, **changed), shards, folder / "none", ["age", "shape"])
    Gallery.model_validate_json(json.dumps(found))  # the report can read it
    return found, {file.name: file.read_bytes() for file in target.iterdir()}


def test_a_gallery_has_maps_labels_and_pictures_of_its_samples_and_is_the_same_again(
    tmp_path: Path, shards: Shards
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    first_, files = made(tmp_path / "one", shards)
    assert (first_, files) == made(tmp_path / "two", shards)
    found = first_["map"]
    count = len(found["rows"])
    assert 4 <= count <= DRAWN
    assert found["column"] == "shape"
    assert len(found["nearby"]["points"]) == len(found["principal"]["points"]) == count
    space = Embeddings(tmp_path / "one/embed")
    assert found["labels"]["shape"]["codes"] == space.labels("test", "shape")[found["rows"]].tolist()
    numbers = space.numbers("test", "age")[found["rows"]]
    assert found["labels"]["age"]["values"] == [None if np.isnan(value) else value for value in numbers]
    sheet = first_["sheets"]["map"]
    assert (sheet["count"], sheet["width"], sheet["height"]) == (count, MAP_SIDE, MAP_SIDE)
    picture = np.asarray(Image.open(tmp_path / "one/gallery/map.webp").convert("RGB"), dtype=int)
    for place, row in enumerate(found["rows"]):
        down, across = divmod(place, sheet["columns"])
        box = picture[down * MAP_SIDE : (down + 1) * MAP_SIDE, across * MAP_SIDE : (across + 1) * MAP_SIDE]
        assert np.abs(box - shards.thumbnail("test", row, MAP_SIDE)).mean() < 8, row


def test_a_collapsed_space_has_no_map_and_says_why(tmp_path: Path, shards: Shards) -> None:
    equal = np.ones((shards.card.splits["test"] // 2, 9), np.float32)
    found, files = made(tmp_path, shards, test_h=equal)
    assert found["map"]["note"] == "all rows are equal"
    assert (found["map"]["rows"], found["map"]["principal"]) == ([], None)
    assert list(files) == ["pictures.webp"]
