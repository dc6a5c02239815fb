"""The curation lists against brute force, and on spaces in which what is wrong was put there on purpose."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from sklearn.neighbors import NearestNeighbors

from pipeline.contact_sheet import SIDE, Entry, contact_sheet, fitted
from pipeline.curation import false_negatives, near_duplicates, nearest_sorted, outliers, suspicious_labels
from pipeline.curation.lists import Space
from pipeline.curation.writing import write_curation
from pipeline.images import thumbnail
from pipeline.neighbours import unit

SEEDS = st.integers(0, 10_000)


def clouds(n, classes=3, d=6, seed=0, spread=0.15):
    """Rows around one direction a class, and their codes."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, classes, n)
    return unit(np.eye(d)[codes] + spread * random.normal(size=(n, d))), codes


def same_order(cosines):
    return np.all(np.diff(cosines) <= 0)


@given(st.integers(5, 40), st.integers(2, 5), st.integers(1, 4), SEEDS)
def test_neighbours_are_scikit_learns_nearest_first(n, d, k, seed):
    rows = unit(np.random.default_rng(seed).normal(size=(n, d)))
    similarity, index = nearest_sorted(rows, rows, k)
    oracle = NearestNeighbors(n_neighbors=k, metric="cosine", algorithm="brute").fit(rows)
    distance, _ = oracle.kneighbors()
    np.testing.assert_allclose(similarity, 1 - distance, atol=2e-6)
    assert not (index == np.arange(n)[:, None]).any()
    assert same_order(similarity)


def test_more_copies_than_neighbours_never_make_a_row_its_own_neighbour():
    rows = unit(np.ones((8, 3)))
    _, index = nearest_sorted(rows, rows, 3)
    assert not (index == np.arange(8)[:, None]).any()


@given(st.integers(6, 40), st.floats(0, 1), SEEDS)
def test_near_duplicates_are_every_pair_of_neighbours_above_the_border_once(n, quantile, seed):
    rows = unit(np.random.default_rng(seed).normal(size=(n, 4)))
    similarity, index = nearest_sorted(rows, rows, 3)
    pairs, border = near_duplicates(similarity, index, quantile)
    expected = {
        (min(i, j), max(i, j)) for i in range(n) for j, s in zip(index[i], similarity[i], strict=True) if s >= border
    }
    found = list(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
    assert set(found) == expected
    assert len(found) == len(expected)
    assert same_order(pairs.similarity)
    assert (similarity[:, 0] >= border).mean() >= 1 - quantile - 1 / n


def test_a_copied_row_is_the_first_near_duplicate_and_a_lonely_one_the_first_outlier():
    rows, _ = clouds(60)
    rows[7] = rows[31]
    rows[50] = unit(-np.ones((1, 6)))
    similarity, index = nearest_sorted(rows, rows, 5)
    pairs, _ = near_duplicates(similarity, index, 0.99)
    assert (pairs.first[0], pairs.second[0]) == (7, 31)
    order, distance = outliers(similarity)
    assert order[0] == 50
    assert distance[0] == pytest.approx(1 - np.sort(rows @ rows[50])[-6], abs=2e-6)
    assert same_order(distance)


def test_labels_that_were_changed_are_the_suspicious_ones():
    rows, codes = clouds(200, seed=3)
    wrong = [4, 90, 151]
    labels = codes.copy()
    labels[wrong] = (labels[wrong] + 1) % 3
    similarity, index = nearest_sorted(rows, rows, 10)
    found = suspicious_labels(similarity, index, labels, 3, 0.1, 0.8)
    assert sorted(found.rows.tolist()) == wrong
    np.testing.assert_array_equal(found.voted, codes[found.rows])
    assert (found.share >= 0.8).all()
    assert (found.own <= 0.2).all()


@given(st.integers(8, 30), SEEDS)
def test_a_vote_is_the_softmax_over_neighbours(n, seed):
    random = np.random.default_rng(seed)
    rows, labels = unit(random.normal(size=(n, 3))), random.integers(0, 3, n)
    similarity, index = nearest_sorted(rows, rows, 4)
    found = suspicious_labels(similarity, index, labels, 3, 0.1, 0.0)
    for row, voted, share, own in zip(found.rows, found.voted, found.share, found.own, strict=True):
        weights = np.exp(similarity[row].astype(float) / 0.1)
        votes = [weights[labels[index[row]] == code].sum() / weights.sum() for code in range(3)]
        assert voted == np.argmax(votes)
        assert share == pytest.approx(votes[voted])
        assert own == pytest.approx(votes[labels[row]])


@given(st.integers(5, 25), SEEDS, st.booleans())
def test_false_negatives_are_those_of_the_whole_matrix(n, seed, labelled):
    random = np.random.default_rng(seed)
    a, b = unit(random.normal(size=(n, 3))), unit(random.normal(size=(n, 3)))
    labels = random.integers(0, 2, n) if labelled else None
    similarity, index = nearest_sorted(a, b, n - 1)
    pairs, positive = false_negatives(a, b, similarity, index, labels)
    whole, expected = np.round((a @ b.T).astype(float), 6), {}
    for i in range(n):
        others = [j for j in range(n) if j != i]
        others = [j for j in others if (whole[i, j] > whole[i, i] if labels is None else labels[i] == labels[j])]
        if others:
            nearest = max(others, key=lambda j: whole[i, j])
            worth = whole[i, nearest] - (whole[i, i] if labels is None else 0)
            pair = (min(i, nearest), max(i, nearest))
            expected[pair] = max(expected.get(pair, -9), worth)
    found = {(min(i, j), max(i, j)) for i, j in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)}
    assert found == set(expected)
    assert len(pairs.first) == len(expected)
    np.testing.assert_allclose(positive, whole[pairs.first, pairs.first], atol=2e-6)
    np.testing.assert_allclose(pairs.similarity, whole[pairs.first, pairs.second], atol=2e-6)
    assert same_order(np.round(pairs.similarity - (positive if labels is None else 0), 5))


# -- what is written ---------------------------------------------------------------------------------------------------


def space(n=60, views=True, labelled=True, **changes):
    rows, codes = clouds(n)
    codes = codes.astype(np.int64)
    random = np.random.default_rng(1)
    moved = tuple(unit(rows + 0.05 * random.normal(size=rows.shape)) for _ in range(2))
    given = {
        "rows": {"train": rows[:40], "test": rows[40:]},
        "views": tuple(each[40:] for each in moved) if views else None,
        "viewed": "test",
        "classes": {"label": ("ant", "bee", "cow")} if labelled else {},
        "codes": {("label", "train"): codes[:40], ("label", "test"): codes[40:]} if labelled else {},
    }
    return Space(**{**given, **changes})


def look(split, row):
    return np.full((3, 20, 30), (row * 7) % 256, np.uint8)


def read(folder, name):
    with (folder / "curation" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_each_list_names_its_images_and_has_a_picture(tmp_path):
    made = space()
    made.codes["label", "train"][3] = (made.codes["label", "train"][3] + 1) % 3
    counts = write_curation(tmp_path, made, look, lambda split, row: f"{split}/{row}\n.png")
    assert counts["outliers"] == 60
    (suspicious,) = read(tmp_path, "suspicious_labels")
    assert (suspicious["split"], suspicious["row"], suspicious["name"]) == ("train", "3", r"train/3\n.png")
    assert suspicious["label"] != suspicious["voted"]
    for line in read(tmp_path, "near_duplicates") + read(tmp_path, "worst_false_negatives"):
        assert {"first_split", "first_row", "second_name", "first_label", "cosine"} <= line.keys()
    for line in read(tmp_path, "worst_false_negatives"):
        assert line["first_label"] == line["second_label"]
        assert line["first_split"] == "test"
    told = json.loads((tmp_path / "curation" / "lists.json").read_text())
    assert {name: entry["entries"] for name, entry in told.items()} == counts
    for name in counts:
        with Image.open(tmp_path / "curation" / f"{name}.png") as picture:
            assert picture.width <= 1130
            assert len(picture.getcolors(2**16)) > 3


def test_the_same_space_gives_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_curation(tmp_path / name, space(), look, lambda split, row: f"{split}{row}")
    files = sorted(path.name for path in (tmp_path / "one" / "curation").iterdir())
    assert files
    for file in files:
        one, two = ((tmp_path / name / "curation" / file).read_bytes() for name in ("one", "two"))
        assert one == two, file


def test_without_labels_negatives_nearer_than_the_positive_are_listed(tmp_path):
    made = space(labelled=False)
    first, second = made.views
    second[5], second[9] = first[9], -first[5]  # 9's second view is far, and 5's lies on 9's first
    counts = write_curation(tmp_path, made)
    assert "suspicious_labels" not in counts
    worst = read(tmp_path, "worst_false_negatives")[0]
    assert (worst["first_row"], worst["second_row"]) == ("9", "5")
    assert float(worst["cosine"]) > float(worst["positive_cosine"])
    assert not list((tmp_path / "curation").glob("*.png"))


@pytest.mark.parametrize(
    ("made", "without", "reason"),
    [
        (space(views=False, labelled=False), "worst_false_negatives", "neither labels nor two views"),
        (space(labelled=False), "suspicious_labels", "no label column of classes"),
        (space(rows={"test": np.full((9, 4), np.nan, np.float32)}, labelled=False), "outliers", "NaN"),
        (space(rows={"test": np.ones((9, 4), np.float32)}, labelled=False), "near_duplicates", "all rows are equal"),
        (space(rows={"test": np.eye(2, dtype=np.float32)}, labelled=False), "outliers", "2 rows; at least 3"),
    ],
)
def test_a_list_that_cannot_be_made_says_why_and_the_rest_is_made(tmp_path, made, without, reason):
    counts = write_curation(tmp_path, made)
    told = json.loads((tmp_path / "curation" / "lists.json").read_text())
    assert without not in counts
    assert told[without]["entries"] is None
    assert reason in told[without]["note"]
    assert not (tmp_path / "curation" / f"{without}.csv").exists()
    assert len(told) == 4


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 200, 50), (2, 88, 88), (12, 9, 30)])
def test_a_contact_sheet_shows_every_picture_in_full_whatever_its_shape(tmp_path, shape):
    contact_sheet("", [Entry([np.zeros(shape, np.uint8)] * 2, ())], tmp_path / "x.png")
    black = (np.asarray(Image.open(tmp_path / "x.png")) == 0).all(axis=2)  # paper is white, and nothing is written
    assert black.sum() == 2 * thumbnail(np.zeros(shape, np.uint8), SIDE)[..., 0].size


def test_words_that_do_not_fit_keep_their_ends(tmp_path):
    from PIL import ImageFont

    short = fitted("a/very/long/name/of/a/file/0001.png", ImageFont.load_default(11), 100)
    assert short.startswith("a/")
    assert short.endswith(".png")
    contact_sheet("title", [Entry([np.zeros((3, 9, 9), np.uint8)], ("word",))], tmp_path / "x.png")
