"""geometry.json and the measures beside it, as a user meets them: from arrays to plain data, and every bad input."""

import json
import math
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from pipeline import auditing
from pipeline.audit import BY_COLUMN, GEOMETRY, Audit, range_of
from pipeline.audit.false_negatives import chance
from pipeline.auditing import measure_layer, measure_rows, measure_views
from pipeline.auditing import pairs as auditing_pairs
from pipeline.auditing import rows as auditing_rows
from pipeline.auditing.report import Report, choose
from pipeline.embeddings import Embeddings
from pipeline.neighbours import nearest_others
from pipeline.rounding import rounded
from pipeline.spec import parse

pytestmark = pytest.mark.usefixtures("one_thread")
CLASSES = ("a", "b", "c")
OF_DIRECTIONS = sorted(set(GEOMETRY) - {"effective_rank", "participation_ratio", "dimensions_99", "rankme"})
"""Measures that a layer without directions does not have."""


def audit(**changes):
    content = {"samples": 40, "neighbours": 3, "purity_at": [1, 10], "thresholds": [], "accept": []} | changes
    return parse(content, Audit, "specs/x.yaml", "audit")


def space(tmp_path, count=60, change=lambda rows: rows, labels=None):
    """work/embed/x of three separate classes; ``change`` is made to every array."""
    folder, random = tmp_path / "x", np.random.default_rng(0)
    folder.mkdir()
    codes = np.arange(count) % 3 if labels is None else labels
    np.savez(folder / "labels.npz", **{"train.kind": codes, "test.kind": codes})
    (folder / "columns.json").write_text(json.dumps({"kind": {"kind": "class", "classes": CLASSES}}))
    centre = np.eye(6)[codes] + 0.1 * random.normal(size=(count, 6))
    for layer in "hz":
        for split in ("train", "test", "view0", "view1"):
            rows = (centre + 0.1 * random.normal(size=(count, 6))).astype(np.float32)
            np.save(folder / f"{split}.{layer}.npy", np.ascontiguousarray(change(rows), dtype=np.float32))
    return Embeddings(folder)


def measured(embeddings, **changes):
    report = Report()
    for layer in "hz":
        measure_layer(embeddings, layer, audit(**changes), report)
    content = rounded(report.content()), rounded(report.geometry())  # raises where a number is not finite
    json.dumps(content, allow_nan=False)
    return content[0]["measures"], content[1]["layers"]


def test_every_measure_is_there_in_its_range_within_its_interval(tmp_path):
    measures, _ = measured(space(tmp_path))
    names = [f"{name}.{layer}" for name in GEOMETRY for layer in "hz"]
    names += [f"{name}.kind.{layer}" for name in BY_COLUMN for layer in "hz"]
    assert set(measures) == set(names)
    for name, entry in measures.items():
        low, high = range_of(name)
        assert low <= entry["value"] <= high, name
        assert (entry["low"] is None) == (entry["high"] is None) == name.startswith("class_effective_rank")
        if entry["low"] is not None:
            assert low <= entry["low"] <= entry["value"] <= entry["high"] <= high
        assert entry["count"] >= 20
        assert entry["split"] in ("test", "view0", "view0, view1")


def test_the_geometry_says_what_stands_behind_the_measures(tmp_path):
    measures, layers = measured(space(tmp_path))
    assert set(layers) == {"h", "z"}
    for layer, found in layers.items():
        assert set(found) == {"pairs", "splits", "purity", "hubness", "neighbourhoods", "classes"}
        pairs = found["pairs"]
        assert (pairs["count"], pairs["split"], pairs["bins"]) == (40, "view0, view1", 100)
        assert sum(pairs["positive_similarity"]) == 40
        assert sum(pairs["negative_similarity"]) == 40 * 39
        assert pairs["false_negatives"]["kind"]["among_nearest"]["value"] == 1
        assert [row["temperature"] for row in pairs["temperatures"]] == [0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0]
        for row in pairs["temperatures"]:
            assert row["negatives"] == 39
            assert 1 <= row["effective_negatives"]["value"] <= 39
            assert row["same_label"]["kind"]["value"] > row["same_label"]["kind"]["chance"]
        assert set(found["splits"]) == {"train", "test", "view0"}
        for split in found["splits"].values():
            assert (split["count"], split["dimensions"]) == (60, 6)
            assert sum(split["shares"]) == pytest.approx(1, abs=1e-5)
        for name in ("effective_rank", "rankme", "anisotropy"):
            assert found["splits"]["test"][name]["value"] == measures[f"{name}.{layer}"]["value"]
        purity = found["purity"]["kind"]
        assert [row["neighbours"] for row in purity["at"]] == [1, 3, 10]
        assert purity["at"][1]["value"] == measures[f"neighbour_purity.kind.{layer}"]["value"]
        assert purity["chance"] == pytest.approx(19 / 59, abs=1e-5)
        assert found["hubness"]["neighbours"] == 3
        assert found["hubness"]["largest"] >= 3
        assert found["neighbourhoods"]["neighbours"] == 10
        assert found["neighbourhoods"]["quantiles"]["0.05"] == measures[f"local_dimensions_low.{layer}"]["value"]
        assert [(row["class"], row["count"]) for row in found["classes"]["kind"]] == [(name, 20) for name in CLASSES]


def test_the_nearest_rows_are_looked_up_once_a_layer_and_pairs_are_walked_once(tmp_path, monkeypatch):
    looked, walked = [], []
    walk = auditing_pairs.walk
    monkeypatch.setattr(
        auditing_rows, "nearest_others", lambda *given: looked.append(given[2]) or nearest_others(*given)
    )
    monkeypatch.setattr(auditing_pairs, "walk", lambda *given: walked.append(1) or walk(*given))
    measured(space(tmp_path))
    assert looked == [10, 10]
    assert len(walked) == 2


def test_the_same_arrays_give_the_same_bytes(tmp_path):
    embeddings = space(tmp_path)
    assert json.dumps(measured(embeddings)) == json.dumps(measured(embeddings))


def test_arrays_without_labels_and_without_views_are_measured_alone():
    random, report = np.random.default_rng(0), Report()
    rows = random.normal(size=(50, 4)).astype(np.float32)
    measure_rows(rows, {}, {}, "h", audit(), report)
    assert "effective_rank.h" in report.measures
    assert "hubness.h" in report.measures
    assert not [name for name in report.measures if "similarity" in name or "purity" in name]
    measure_views(rows, rows, {}, "h", audit(), report)
    assert report.measures["nearer_negatives.h"]["value"] == 0


def test_the_matrix_of_all_pairs_is_never_held():
    n, report = 8000, Report()
    rows = np.random.default_rng(0).normal(size=(n, 8)).astype(np.float32)
    labels = {"kind": np.arange(n) % 3}
    tracemalloc.start()
    measure_rows(rows, labels, {"kind": CLASSES}, "h", audit(), report)
    measure_views(rows, rows + 0.1, labels, "h", audit(samples=2500), report)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**27 < n * n * 4
    assert (report.measures["hubness.h"]["count"], report.measures["overlap.h"]["count"]) == (n, 2500)


def test_a_sample_stands_for_a_larger_space_and_says_how_large_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(auditing, "MOST", 30)
    monkeypatch.setattr(auditing, "SPLIT", 25)
    measures, layers = measured(space(tmp_path))
    assert measures["effective_rank.h"]["count"] == 30
    assert measures["hubness.h"]["count"] == 30
    assert layers["h"]["splits"]["train"]["count"] == 25
    assert choose(5, 9).tolist() == [0, 1, 2, 3, 4]
    assert len(np.unique(choose(1000, 30))) == 30


def nan(rows):
    rows[3, 1] = np.nan
    return rows


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (nan, "1 of 60 rows hold NaN or infinity"),
        (lambda rows: rows * np.float32(np.inf), "60 of 60 rows hold NaN or infinity"),
        (lambda rows: np.full_like(rows, 0.3), "all rows are equal"),
        (np.zeros_like, "all rows are equal"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_broken_or_constant_space_has_no_measure_and_each_says_why(tmp_path, change, reason):
    measures, layers = measured(space(tmp_path, change=change))
    assert len(measures) == 2 * (len(GEOMETRY) + len(BY_COLUMN))
    assert {entry["note"] for entry in measures.values()} == {f"not computable: {reason}"}
    assert {entry["value"] for entry in measures.values()} == {None}
    assert layers["h"]["pairs"]["note"] == f"not computable: {reason}"
    assert layers["h"]["splits"]["train"]["shares"] == []
    assert layers["h"]["neighbourhoods"]["note"] == f"not computable: {reason}"


def test_one_dimension_has_ranks_but_no_directions(tmp_path):
    measures, _ = measured(space(tmp_path, change=lambda rows: rows[:, :1]))
    for name in ("effective_rank", "participation_ratio", "rankme", "dimensions_99"):
        assert measures[f"{name}.h"]["value"] == pytest.approx(1, abs=1e-4)
    assert measures["class_effective_rank.kind.h"]["value"] == 1
    for name in [*OF_DIRECTIONS, *(f"{name}.kind" for name in BY_COLUMN if name != "class_effective_rank")]:
        assert measures[f"{name}.h"]["note"] == "not computable: one dimension has no directions to compare"


def test_rows_of_length_zero_in_one_view_leave_the_others_measures(tmp_path):
    embeddings = space(tmp_path)
    path = tmp_path / "x/view1.h.npy"
    np.save(path, np.load(path) * (np.arange(60) > 1)[:, None].astype(np.float32))
    measures, _ = measured(embeddings)
    assert measures["alignment.h"]["note"] == "not computable: 2 of 60 rows have length zero"
    assert measures["hubness.h"]["value"] is not None
    assert measures["alignment.z"]["value"] is not None


def test_one_class_leaves_what_needs_no_labels(tmp_path):
    measures, layers = measured(space(tmp_path, labels=np.zeros(60, dtype=np.int64)))
    for name in ("neighbour_purity", "cluster_nmi", "cluster_ari"):
        assert measures[f"{name}.kind.h"]["note"] == "not computable: all test rows are of one class of kind"
    assert measures["false_negatives.kind.h"]["note"] == "not computable: all rows are of one class of kind"
    assert measures["class_effective_rank.kind.h"]["value"] > 1
    assert measures["hubness.h"]["value"] is not None
    assert layers["h"]["pairs"]["temperatures"][0]["same_label"] == {}


def test_fewer_rows_than_neighbours_leave_the_smaller_neighbourhoods(tmp_path):
    measures, layers = measured(space(tmp_path, count=9))
    told = {row["neighbours"]: row["note"] for row in layers["h"]["purity"]["kind"]["at"]}
    assert told == {1: "", 3: "", 10: "not computable: 9 rows have fewer than 10 others"}
    assert measures["local_dimensions.h"]["note"] == "not computable: 9 rows have fewer than 10 others"
    assert measures["neighbour_purity.kind.h"]["value"] is not None


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_handful_of_rows_gives_values_or_reasons_and_never_a_broken_number(tmp_path, count):
    measures, _ = measured(space(tmp_path, count=count))
    for name, entry in measures.items():
        assert (entry["value"] is None) == entry["note"].startswith("not computable: "), name
        assert entry["value"] is None or math.isfinite(entry["value"])
    if count < 3:
        assert measures["uniformity.h"]["value"] is None


def test_two_equal_rows_in_every_place_are_measured(tmp_path):
    measures, _ = measured(space(tmp_path, change=lambda rows: np.repeat(np.eye(3), 20, axis=0)))
    assert measures["local_dimensions.h"]["value"] == 0
    assert measures["local_dimensions.h"]["low"] == 0
    assert measures["cluster_nmi.kind.h"]["value"] is not None


def test_more_clusters_than_different_rows_are_a_reason(tmp_path):
    measures, _ = measured(space(tmp_path, change=lambda rows: np.eye(2)[np.arange(60) % 2]))
    assert measures["cluster_nmi.kind.h"]["note"] == "not computable: fewer than 3 different rows"


def test_chance_is_of_the_labels_alone():
    assert chance(np.array([0, 0, 1, 1])) == pytest.approx(1 / 3)


def test_no_file_of_the_audit_grows_beyond_its_idea():
    files = [*Path(auditing.__file__).parent.glob("audit/*.py"), *Path(auditing.__file__).parent.glob("auditing*.py")]
    assert [file.name for file in files if len(file.read_text().splitlines()) > 200] == []
