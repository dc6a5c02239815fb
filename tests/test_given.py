"""People audit what they have: vectors and labels of any origin, whatever is wrong with them told on one line."""

from __future__ import annotations

import csv
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from test_stages import Call, call, place  # noqa: F401

from pipeline.audit.estimate import NotComputable
from pipeline.drift import drift_of_channels, drift_of_vectors, summary
from pipeline.given import read_rows
from pipeline.given.labels import matched, read_labels
from pipeline.given.measures import NO_VIEWS, trained_rows
from pipeline.given.rows import given as taken
from pipeline.ledger import Ledger
from pipeline.spec import Refusal

# -- arrays ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", "<f2", "<i4", "u1"])
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_vectors_of_any_real_type_are_read_as_float32(tmp_path, dtype, suffix):
    rows = np.arange(12).reshape(4, 3).astype(dtype)
    (np.save if suffix == ".npy" else np.savez)(tmp_path / f"h{suffix}", rows)
    found = read_rows(tmp_path / f"h{suffix}")
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.arange(12).reshape(4, 3))


class Hostile:
    """Loading this as a pickle writes a file."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


def broken(tmp_path):
    """Name of a file -> why it is refused."""
    np.save(tmp_path / "flat.npy", np.arange(4.0))
    np.save(tmp_path / "deep.npy", np.zeros((4, 3, 1, 1)))
    np.save(tmp_path / "none.npy", np.zeros((0, 3)))
    np.save(tmp_path / "words.npy", np.array([["a", "b"]]))
    np.save(tmp_path / "complex.npy", np.zeros((2, 2), complex))
    np.savez(tmp_path / "two.npz", a=np.zeros((2, 2)), b=np.zeros((2, 2)))
    np.save(tmp_path / "objects.npy", np.array([[Hostile(tmp_path / "ran")]]), allow_pickle=True)
    (tmp_path / "pickle.npy").write_bytes(pickle.dumps(Hostile(tmp_path / "ran")))
    np.save(tmp_path / "cut.npy", np.zeros((50, 50)))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "cut.npy").read_bytes()[:900])
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "two.npz").read_bytes()[:200])
    (tmp_path / "h.pt").write_bytes(b"x")
    (tmp_path / "folder.npy").mkdir()
    return {
        "flat.npy": "an array of 4, not one vector a row (N, D); save it as rows.reshape(4, -1)",
        "deep.npy": "save it as rows.reshape(4, -1)",
        "none.npy": "an array of 0 x 3",
        "words.npy": "not real numbers",
        "complex.npy": "not real numbers",
        "two.npz": "2 arrays (a, b)",
        "objects.npy": "holds Python objects, which are never loaded",
        "pickle.npy": "holds Python objects, which are never loaded",
        "cut.npy": "cut or damaged",
        "empty.npy": "cut or damaged",
        "cut.npz": "cut or damaged",
        "h.pt": "neither .npy nor .npz",
        "folder.npy": "is a folder",
        "missing.npy": "no such file",
    }


def test_arrays_that_cannot_be_read_are_one_line_and_nothing_is_unpickled(tmp_path):
    for name, reason in broken(tmp_path).items():
        with pytest.raises(Refusal) as told:
            read_rows(tmp_path / name)
        assert reason in str(told.value), name
        assert "\n" not in str(told.value)
    assert not (tmp_path / "ran").exists()


# -- labels ------------------------------------------------------------------------------------------------------------

ANIMALS, ROWS = ["cat", "dog", "cat"], ["1", "2", "3"]
TABLES = {
    "one column": ("cat\ndog\ncat\n", {"label": ANIMALS}, []),
    "one column with a header": ("animal\ncat\ndog\ncat\n", {"animal": ANIMALS}, []),
    "names and labels": ("a.png,cat\nb.png,dog\nc.png,cat\n", {"label": ANIMALS}, ["a.png", "b.png", "c.png"]),
    "names and labels with a header": (
        "id;kind;size\n1;cat;1.5\n2;dog;2\n3;cat;3\n",
        {"kind": ANIMALS, "size": ["1.5", "2", "3"]},
        ROWS,
    ),
    "two columns of labels": ("x,1\ny,1\nx,2\n", {"label1": ["x", "y", "x"], "label2": ["1", "1", "2"]}, []),
    "numbers that differ are no names": (
        "age,weight\n1,5\n2,6\n3,5\n",
        {"age": ROWS, "weight": ["5", "6", "5"]},
        [],
    ),
    "a missing label of one column": ("cat\n\ncat\n", {"label": ["cat", "", "cat"]}, []),
    "empty lines at the end": ("a,cat\n\nb,dog\nc,cat\n\n\n", {"label": ANIMALS}, ["a", "b", "c"]),
    "a missing label": ("a,cat\nb,\nc,cat\n", {"label": ["cat", "", "cat"]}, ["a", "b", "c"]),
    "tabs, a byte order mark, quotes": (
        '\ufeffid\tkind\n1\t"big\tcat"\n2\tdog\n3\tdog\n',
        {"kind": ["big\tcat", "dog", "dog"]},
        ROWS,
    ),
}


@pytest.mark.parametrize(("text", "columns", "names"), TABLES.values(), ids=TABLES)
def test_a_table_of_labels_is_understood(tmp_path, text, columns, names):
    (tmp_path / "y.csv").write_text(text, encoding="utf-8")
    found = read_labels(tmp_path / "y.csv", 3, "h.npy")
    assert (found.columns, found.names) == (columns, names)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a\nb\n", "2 labels, but h.npy has 3 rows"),
        ("a\nb\nc\nd\ne\n", "5 labels, but h.npy has 3 rows"),
        ("a\na\nb\nc\n", "4 rows for 3, and the first is no header: 'a' is a value"),
        ("a,1\nb\nc,2\n", "row 2 has 1 column(s), row 1 has 2"),
        ("", "is empty"),
        ("x,x\n1,2\n1,4\n3,6\n", "two columns are called 'x'"),
    ],
)
def test_a_table_that_does_not_fit_the_rows_is_one_line(tmp_path, text, reason):
    (tmp_path / "y.csv").write_text(text, encoding="utf-8")
    with pytest.raises(Refusal) as told:
        read_labels(tmp_path / "y.csv", 3, "h.npy")
    assert reason in str(told.value)
    assert "\n" not in str(told.value)


def test_labels_may_be_an_array(tmp_path):
    np.save(tmp_path / "y.npy", np.array([2, 0, 1]))
    assert read_labels(tmp_path / "y.npy", 3, "h").columns == {"label": ["2", "0", "1"]}
    np.save(tmp_path / "z.npy", np.array([0.5, np.nan, 1]))
    labels = read_labels(tmp_path / "z.npy", 3, "h")
    assert labels.columns == {"label": ["0.5", "", "1.0"]}
    assert labels.kind("label") == "number"


def test_classes_and_numbers_are_told_apart(tmp_path):
    lines = [f"r{i},{i % 3},{i * 0.37},{i},{'xy'[i % 2]}" for i in range(300)]
    (tmp_path / "y.csv").write_text("id,few,share,count,word\n" + "\n".join(lines) + "\n")
    labels = read_labels(tmp_path / "y.csv", 300, "h")
    assert {name: labels.kind(name) for name in labels.columns} == {
        "few": "class", "share": "number", "count": "number", "word": "class",
    }  # fmt: skip


def test_a_table_is_joined_to_pictures_by_name_in_any_order(tmp_path):
    (tmp_path / "y.csv").write_text("file,kind\nb.png,dog\n./x/a.png,cat\nq/same.png,cat\n")
    labels = read_labels(tmp_path / "y.csv", None, "")
    names = ["x/a.png", "x/b.png", "x/c.png", "p/same.png", "q/same.png"]
    assert matched(labels, names) == {"kind": ["cat", "dog", "", "", "cat"]}
    with pytest.raises(Refusal, match="names none of the 1 samples"):
        matched(labels, ["z.png"])
    (tmp_path / "z.csv").write_text("cat\ndog\n")
    with pytest.raises(Refusal, match="have no names"):
        matched(read_labels(tmp_path / "z.csv", None, ""), ["a.png", "b.png"])


# -- rows --------------------------------------------------------------------------------------------------------------


def test_rows_that_cannot_be_measured_are_in_the_ledger_and_the_rest_goes_on():
    rows, view = np.eye(5, dtype=np.float32), np.ones((5, 5), np.float32)
    rows[1, 0], view[3, 3] = np.nan, np.inf
    texts = {"kind": ("class", ["a", "b", "", "a", "b"]), "size": ("number", ["1", "2", "3", "4", "nan"])}
    found = taken("h", rows, (view, view), texts, list("vwxyz"), None, Ledger(), [])
    assert found.names == ["v"]
    assert found.labels["kind"].tolist() == [0]
    assert found.columns["kind"].classes == ("a", "b")
    plain = found.ledger.plain()
    assert (plain["seen"], plain["kept"], plain["refused"]) == (5, 1, {"no label": 2, "not finite": 2})
    assert [file["name"] for file in plain["files"]] == ["w", "x", "y", "z"]
    with pytest.raises(Refusal, match="no row can be measured"):
        taken("h", rows[1:2], None, {}, None, None, Ledger(), [])


@given(st.integers(2, 200))
def test_probes_train_on_four_fifths_that_are_drawn(count):
    space = taken("h", np.eye(count, dtype=np.float32), None, {}, None, None, Ledger(), [])
    train = trained_rows(space)
    assert 0 < train.sum() < count
    assert abs((~train).sum() - count / 5) <= 1


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(place):  # noqa: F811
    """h.npy, two views and labels of three separate classes, in the working folder."""
    random = np.random.default_rng(0)
    codes = random.integers(0, 3, 150)
    rows = np.eye(3, 6)[codes] + 0.2 * random.normal(size=(150, 6))
    np.save("h.npy", rows)
    for number in range(2):
        np.save(f"v{number}.npy", (rows + 0.05 * random.normal(size=rows.shape)).astype(np.float32))
    Path("y.csv").write_text("animal\n" + "\n".join(np.array(["ant", "bee", "cow"])[codes]) + "\n")
    return place


def read(file):
    return json.loads(Path(file).read_text())


def test_vectors_alone_are_measured_and_what_needs_views_says_so(files, call: Call):  # noqa: F811
    code, lines = call("audit", "--embeddings", "h.npy")
    assert code == 0
    measures = read("work/given/h/measures.json")["measures"]
    assert measures["alignment.h"]["note"] == f"not computable: {NO_VIEWS}"
    assert (
        measures["effective_rank.h"]["low"]
        <= measures["effective_rank.h"]["value"]
        <= measures["effective_rank.h"]["high"]
    )
    unit = np.load("h.npy") / np.linalg.norm(np.load("h.npy"), axis=1, keepdims=True)
    others = (unit @ unit.T)[~np.eye(150, dtype=bool)]
    assert measures["negative_similarity.h"]["value"] == pytest.approx(others.mean(), abs=1e-5)
    assert measures["uniformity.h"]["value"] == pytest.approx(np.log(np.exp(4 * others - 4).mean()), abs=1e-5)
    assert {entry["split"] for entry in measures.values()} == {"all"}
    assert not Path("work/given/h/figures.json").exists()
    assert read("work/given/h/ledger.json")["kept"] == 150
    assert any(line.startswith("effective_rank.h") for line in lines)
    assert lines[-1].endswith("150 rows, in work/given/h")


def test_labels_and_views_give_probes_and_every_measure(files, call: Call):  # noqa: F811
    arguments = ["--embeddings", "h.npy", "--labels", "y.csv", "--views", "v0.npy", "v1.npy", "--output", "out/of"]
    code, _ = call("audit", *arguments)
    assert code == 0
    measures = read("out/of/measures.json")["measures"]
    assert [name for name, entry in measures.items() if entry["value"] is None] == []
    a, b = (np.load(f"v{number}.npy").astype(float) for number in range(2))
    a, b = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (a, b))
    assert measures["alignment.h"]["value"] == pytest.approx(np.square(a - b).sum(1).mean(), abs=1e-5)
    rows = {(row["probe"], row["split"], row["control"]): row for row in read("out/of/figures.json")["rows"]}
    assert {split for _, split, _ in rows} == {"test", "view0"}
    assert rows["linear", "test", None]["accuracy"] > 0.95 > rows["linear", "test", "shuffled labels"]["accuracy"]
    names = {path.name for path in Path("out/of/curation").iterdir()}
    lists = ("near_duplicates", "outliers", "suspicious_labels", "worst_false_negatives")
    assert names == {"lists.json", *(f"{name}.csv" for name in lists)}
    assert call("audit", *arguments)[0] == 0  # its own output is written anew
    assert sorted(path.name for path in Path("out").iterdir()) == ["of"]


def test_the_probes_are_scikit_learns_on_the_rows_that_were_drawn(files, call: Call):  # noqa: F811
    assert call("audit", "--embeddings", "h.npy", "--labels", "y.csv")[0] == 0
    rows, labels = np.load("h.npy"), Path("y.csv").read_text().split()[1:]
    train = trained_rows(taken("h", rows.astype(np.float32), None, {}, None, None, Ledger(), []))
    labels = np.array(labels)
    knn = KNeighborsClassifier(20, metric="cosine", weights=lambda distance: np.exp((1 - distance) / 0.1))
    found = {row["probe"]: row for row in read("work/given/h/figures.json")["rows"] if row["control"] is None}
    right = knn.fit(rows[train], labels[train]).predict(rows[~train]) == labels[~train]
    assert found["knn"]["accuracy"] == pytest.approx(right.mean(), abs=1e-5)
    line = LogisticRegression(C=10).fit(rows[train], labels[train]).score(rows[~train], labels[~train])
    assert found["linear"]["accuracy"] == pytest.approx(line, abs=2.1 / (~train).sum())


def test_a_column_of_numbers_is_regressed(files, call: Call):  # noqa: F811
    rows = np.load("h.npy")
    Path("n.csv").write_text("size\n" + "\n".join(f"{value:.6f}" for value in rows @ np.arange(6)) + "\n")
    code, lines = call("audit", "--embeddings", "h.npy", "--labels", "n.csv")
    assert code == 0
    (row,) = [row for row in read("work/given/h/figures.json")["numbers"] if row["control"] is None]
    assert row["r2"] > 0.99
    assert any("ridge of size" in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--labels", "y.csv"], "give a spec's name, or one of --embeddings FILE"),
        (["--embeddings", "h.npy", "--bundle", "x"], "give a spec's name, or one of"),
        (["mine", "--embeddings", "h.npy"], "a spec's name goes alone"),
        (["--embeddings", "h.npy", "--images", "x"], "--samples: does not go with --embeddings"),
        (["--encoder", "timm:resnet18"], "give what it is to read, as --samples FOLDER"),
        (["--embeddings", "nothing.npy"], "nothing.npy: no such file"),
        (["--embeddings", "h.npy", "--labels", "nothing.csv"], "nothing.csv: no such file"),
        (["--embeddings", "h.npy", "--views", "v0.npy", "short.npy"], "short.npy: 3 rows, but h.npy has 150"),
        (["--embeddings", "h.npy", "--views", "v0.npy", "thin.npy"], "must have the 6 dimensions of h.npy"),
        (["--embeddings", "h.npy", "--labels", "short.csv"], "short.csv: 2 labels, but h.npy has 150 rows"),
        (["--embeddings", "h.npy", "--output", "specs"], "--output specs: holds other files, as data"),
        (["--embeddings", "h.npy", "--output", "h.npy"], "--output h.npy: is a file"),
        (["--encoder", "clip", "--samples", "specs"], "--encoder clip: name timm:MODEL"),
        (["--encoder", "timm:resnett18", "--samples", "specs"], "did you mean 'resnet18'?"),
        (["--encoder", "torchvision:resnett18", "--samples", "specs"], "did you mean 'resnet18'?"),
        (["--encoder", "x.onnx", "--samples", "specs"], "--encoder x.onnx: no such file"),
        (["--bundle", "specs", "--samples", "specs"], "specs: no bundle: card.json is missing"),
    ],
)
def test_what_cannot_be_audited_is_one_line_and_leaves_nothing(files, call: Call, arguments, line):  # noqa: F811
    np.save("short.npy", np.eye(3, 6))
    np.save("thin.npy", np.ones((150, 2)))
    Path("short.csv").write_text("a\nb\n")
    before = sorted(map(str, Path().rglob("*")))
    code, lines = call("audit", *arguments)
    assert code == 1
    assert len(lines) == 1
    assert line in lines[0]
    left = {path for path in map(str, Path().rglob("*")) if not path.startswith(("work", "out"))}
    assert left <= set(before)
    assert [path for path in Path("work").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("rows", "note"),
    [
        (np.ones((20, 4)), "all rows are equal"),
        (np.arange(20.0).reshape(20, 1), "one dimension has no directions"),
        (np.zeros((20, 4)), "all rows are equal"),
        (np.eye(2), "at least"),
        (np.eye(1, 5), "at least"),
    ],
)
def test_a_broken_space_is_named_and_the_rest_is_reported(files, call: Call, rows, note):  # noqa: F811
    np.save("b.npy", rows)
    Path("b.csv").write_text("\n".join("ab"[row % 2] for row in range(len(rows))) + "\n")
    code, lines = call("audit", "--embeddings", "b.npy", "--labels", "b.csv")
    assert code == 0, lines
    measures = read("work/given/b/measures.json")["measures"]
    for entry in measures.values():
        assert entry["value"] is None or np.isfinite(entry["value"])
    assert any(note in entry["note"] for entry in measures.values())
    assert any(note in line for line in lines)


def test_nan_rows_are_named_and_the_others_measured(files, call: Call):  # noqa: F811
    rows = np.load("h.npy")
    rows[[3, 77]] = np.nan
    np.save("n.npy", rows)
    code, lines = call("audit", "--embeddings", "n.npy", "--labels", "y.csv")
    assert code == 0
    assert any("2 refused: not finite" in line for line in lines)
    ledger = read("work/given/n/ledger.json")
    assert [file["name"] for file in ledger["files"]] == ["3", "77"]
    with open("work/given/n/curation/outliers.csv") as file:
        assert {"3", "77"}.isdisjoint(line["name"] for line in csv.DictReader(file))


# -- drift -------------------------------------------------------------------------------------------------------------


def cloud(n, seed=0, d=8):
    return (np.random.default_rng(seed).normal(size=(n, d)) * np.linspace(1, 3, d) + 2).astype(np.float32)


def drifted(rows, reference):
    return {each.measure for each in drift_of_vectors(rows, reference) if each.beyond}


def test_another_sample_of_the_same_seldom_drifts_and_a_moved_one_does():
    reference = summary(cloud(1000))
    flagged = sum(len(drifted(cloud(400, seed), reference)) for seed in range(1, 41))
    assert flagged <= 16  # of 160 figures at 95 %
    assert "mean.h" in drifted(cloud(400, 1) + 0.5, reference)
    assert "variance.h" in drifted(cloud(400, 1) * 1.5 - 1, reference)
    flat = cloud(400, 1)
    flat[:, 2:] = 2
    assert {"effective_rank.h", "nearest.h", "variance.h"} <= drifted(flat, reference)


def test_the_mean_moves_by_what_it_was_moved():
    rows = cloud(3000)
    reference = summary(rows)
    spread = np.sqrt(rows.var(axis=0).sum())
    (mean,) = [each for each in drift_of_vectors(rows + 1, reference) if each.measure == "mean.h"]
    assert mean.found.value == pytest.approx(np.sqrt(8) / spread, rel=1e-3)
    assert mean.expected == pytest.approx(np.sqrt(2 / 3000))


def test_what_no_drift_can_be_told_of_says_why():
    reference = summary(cloud(100))
    for rows, reason in ((cloud(2), "at least 3"), (cloud(50, d=3), "the reference has 8"), (cloud(9) * np.nan, "NaN")):
        assert all(reason in each.found.note for each in drift_of_vectors(rows, reference))
    few = {each.measure: each for each in drift_of_vectors(cloud(20), reference)}
    assert "at least 32" in few["nearest.h"].found.note
    assert few["mean.h"].found.value is not None
    with pytest.raises(NotComputable):
        summary(np.ones((9, 3), np.float32))


def test_channels_are_held_against_the_card_in_its_own_spread():
    random = np.random.default_rng(0)
    pictures = random.uniform(size=(200, 2, 16, 16))
    pictures[:, 1] = pictures[:, 1] * 0.5
    moments = np.stack([pictures.mean((2, 3)), np.square(pictures).mean((2, 3))], 1)
    found = {each.measure: each for each in drift_of_channels(moments, [0.5, 0.5], [0.29, 0.29])}
    assert not found["channel.0.mean"].beyond
    assert found["channel.1.mean"].beyond
    assert found["channel.1.mean"].found.value == pytest.approx(-0.25 / 0.29, abs=0.01)
    assert found["channel.0.std"].found.value == pytest.approx(pictures[:, 0].std(), abs=1e-6)
