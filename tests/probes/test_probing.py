"""The stage probe on whole folders: every row that there should be, held against scikit-learn, and every bad input."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.preprocessing import StandardScaler

from pipeline.audit.probed import OF_CLASSES
from pipeline.embeddings import Embeddings
from pipeline.probes import LAYERS, SPLITS, Probe
from pipeline.probes.linear import fit_linear
from pipeline.probes.strata import few_labels
from pipeline.probing import probe_layer
from pipeline.report.forms import measured
from pipeline.spec import Refusal, SpecError, parse
from stages import judge, probe

TRAIN, TEST = 240, 80
SECTION = {"labels": ["kind", "size"], "k": 5, "temperature": 0.07, "few_labels": {"percent": [1, 10], "draws": 3}}
ROW = {
    *("label", "layer", "control", "chance", "classes", "confidence", "k", "temperature", "regularization", "draws"),
    *("regularizations", "probe", "gallery", "split", "accuracy", "low", "high", "count", "note"),
}
NUMBER_ROW = {
    *("label", "split", "layer", "probe", "control", "confidence", "count", "gallery", "regularization", "note"),
    *("r2", "r2_low", "r2_high", "mae", "mae_low", "mae_high", "chance_r2", "chance_mae"),
}


def section(**changes):
    return {**SECTION, **changes}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a spec and vectors of which h and z tell three classes and a number, and the controls less."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs").mkdir()
    write_spec()
    write_space()
    return tmp_path


def write_spec(audit=None, **changes):
    audit = audit or {"samples": 50, "neighbours": 5, "purity_at": [1], "thresholds": [], "accept": []}
    Path("specs/x.yaml").write_text(json.dumps({"probe": section(**changes), "audit": audit}))


def write_space(classes=("a", "b", "c"), **labels):
    random = np.random.default_rng(0)
    given = {
        "train.kind": np.arange(TRAIN) % 3,
        "test.kind": np.arange(TEST) % 3,
        "train.size": random.normal(size=TRAIN) * 4 + 20,
        "test.size": random.normal(size=TEST) * 4 + 20,
        **{name.replace("_", ".", 1): values for name, values in labels.items()},
    }
    folder = Path("work/embed/x")
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "labels.npz", **given)
    columns = {"kind": {"kind": "class", "classes": list(classes)}, "size": {"kind": "number", "classes": []}}
    (folder / "columns.json").write_text(json.dumps(columns))
    for layer in LAYERS:
        spread = 0.2 if layer in ("h", "z") else 2.0
        for split in ("train", "test", "view0", "view1"):
            of = "train" if split == "train" else "test"
            kinds, sizes = (
                np.asarray(given[f"{of}.kind"]) % 3,
                np.nan_to_num(np.asarray(given[f"{of}.size"], float), posinf=0),
            )
            rows = np.hstack([np.eye(5)[kinds], (sizes[:, None] - 20) / 4])
            rows = rows + spread * random.normal(size=rows.shape)
            np.save(folder / f"{split}.{layer}.npy", rows.astype(np.float32))


def spoil(layer, change, splits=("train", "test", "view0", "view1")):
    for split in splits:
        path = Path(f"work/embed/x/{split}.{layer}.npy")
        np.save(path, np.ascontiguousarray(change(np.load(path)), dtype=np.float32))


def figures():
    probe.main(["x"])
    return json.loads(Path("work/probe/x/figures.json").read_text())


def one(rows, **wanted):
    (row,) = [row for row in rows if wanted.items() <= row.items()]
    return row


def test_every_label_layer_split_probe_and_control_has_its_row(place, capsys):
    found = figures()
    places = [(layer, split, None) for layer in LAYERS for split in SPLITS]
    places += [("h", split, "shuffled labels") for split in SPLITS]
    expected = {(*where, each) for where in places for each in (*OF_CLASSES, "few_1", "few_10")}
    assert {(row["layer"], row["split"], row["control"], row["probe"]) for row in found["rows"]} == expected
    assert len(found["rows"]) == len(expected)
    assert {(row["layer"], row["split"], row["control"]) for row in found["numbers"]} == set(places)
    assert len(found["numbers"]) == len(places)
    assert {row["label"] for row in found["rows"]} == {"kind"}
    assert {row["label"] for row in found["numbers"]} == {"size"}
    for row in found["rows"]:
        assert row.keys() == ROW
        assert 0 <= row["low"] <= row["accuracy"] <= row["high"] <= 1
        assert (row["count"], row["classes"], row["confidence"]) == (TEST, 3, 0.95)
        assert row["gallery"] == {"knn": TRAIN, "linear": TRAIN, "few_1": 3, "few_10": 24}[row["probe"]]
        assert (row["k"] is not None) == (row["temperature"] is not None) == (row["probe"] == "knn")
        assert (row["regularization"] is not None) == (row["probe"] == "linear")
        assert (row["draws"] == 3) == (row["regularizations"] is not None) == row["probe"].startswith("few")
    for row in found["numbers"]:
        assert row.keys() == NUMBER_ROW
        assert row["r2_low"] <= row["r2"] <= row["r2_high"] <= 1
        assert 0 <= row["mae_low"] <= row["mae"] <= row["mae_high"]
        assert (row["count"], row["gallery"], row["probe"]) == (TEST, TRAIN, "ridge")
    said = capsys.readouterr().out
    assert all(word in said for word in ("kind", "few_10", "linear", "size", "ridge", "r2"))


def test_good_layers_are_told_from_controls(place):
    found = figures()
    for each in ("knn", "linear", "few_10"):
        good = one(found["rows"], probe=each, layer="h", split="test", control=None)
        assert good["low"] > 0.85
        assert one(found["rows"], probe=each, layer="raw", split="test")["high"] < 0.85
        assert one(found["rows"], probe=each, layer="h", split="test", control="shuffled labels")["low"] < 0.4
    good = one(found["numbers"], layer="h", split="test", control=None)
    assert good["r2_low"] > 0.9
    assert good["mae_high"] < 1.5 < 2.5 < good["chance_mae"]
    assert -0.1 < good["chance_r2"] <= 0
    assert one(found["numbers"], layer="raw", split="test")["r2_high"] < 0.6
    shuffled = one(found["numbers"], layer="h", split="test", control="shuffled labels")
    assert shuffled["r2_low"] < 0.05


def test_few_labels_are_the_mean_over_their_draws(place):
    found, space = figures(), Embeddings(place / "work/embed/x")
    rows, known, truth = space.features("train", "raw"), space.labels("train", "kind"), space.labels("test", "kind")
    shares = []
    for draw in range(3):
        drawn = few_labels(known, 10, draw)
        centre, scale = rows.mean(0), rows.std(0)  # of all rows: a row without a label is still a row
        probe = fit_linear(np.vstack([(rows[drawn] - centre) / scale]).astype(np.float32), known[drawn])
        shares.append((probe.predict((space.features("test", "raw") - centre) / scale) == truth).mean())
    row = one(found["rows"], probe="few_10", layer="raw", split="test")
    assert row["accuracy"] == pytest.approx(np.mean(shares), abs=0.05)  # fit_linear standardises the few once more
    wide = one(found["rows"], probe="few_1", layer="raw", split="test")
    assert wide["high"] - wide["low"] > row["high"] - row["low"]


def test_each_regression_figure_is_scikit_learns_at_the_regularization_that_it_states(place):
    found, space = figures(), Embeddings(place / "work/embed/x")
    known, truth = space.numbers("train", "size"), space.numbers("test", "size")
    for layer in LAYERS:
        scaler = StandardScaler().fit(space.features("train", layer).astype(float))
        for split in SPLITS:
            row = one(found["numbers"], layer=layer, split=split, control=None)
            oracle = Ridge(alpha=TRAIN * row["regularization"])
            oracle.fit(scaler.transform(space.features("train", layer).astype(float)), known)
            guess = oracle.predict(scaler.transform(space.features(split, layer).astype(float)))
            assert row["r2"] == pytest.approx(r2_score(truth, guess), abs=1e-4)
            assert row["mae"] == pytest.approx(mean_absolute_error(truth, guess), rel=1e-3)
            assert row["chance_r2"] == pytest.approx(r2_score(truth, np.full(TEST, known.mean())), rel=1e-4, abs=1e-6)
            assert row["chance_mae"] == pytest.approx(np.abs(truth - known.mean()).mean(), rel=1e-4)


def test_the_same_input_writes_the_same_bytes(place):
    figures()
    before = Path("work/probe/x/figures.json").read_bytes()
    figures()
    assert Path("work/probe/x/figures.json").read_bytes() == before


def test_what_is_probed_is_never_changed(place):
    before = {path.name: path.read_bytes() for path in Path("work/embed/x").iterdir()}
    figures()
    assert {path.name: path.read_bytes() for path in Path("work/embed/x").iterdir()} == before


def test_a_space_that_cannot_be_written_to_is_probed_all_the_same(place):
    space = Embeddings(place / "work/embed/x")  # arrays are mapped read-only: a write would raise
    rows, numbers = probe_layer(space, "h", parse(section(), Probe, "x"))
    assert rows
    assert numbers


def test_columns_of_one_kind_leave_the_others_rows_empty(place):
    write_spec(labels=["size"])
    assert figures()["rows"] == []
    write_spec(labels=["kind"], few_labels=None)
    found = figures()
    assert found["numbers"] == []
    assert {row["probe"] for row in found["rows"]} == {"knn", "linear"}
    write_spec(labels=[])
    assert figures() == {"rows": [], "numbers": []}


def notes(rows, **wanted):
    (note,) = {row["note"] for row in rows if wanted.items() <= row.items()}
    return note


def test_a_class_that_a_draw_misses_is_named_and_the_other_probes_go_on(place):
    kinds = np.zeros(TRAIN, int)
    kinds[:40], kinds[40:200] = 1, 2
    write_space(train_kind=kinds)
    found = figures()["rows"]
    expected = 'not computable: 1 % of the 40 training rows of class "a" is no row'
    assert notes(found, probe="few_1", layer="h", control=None) == expected
    assert one(found, probe="few_10", layer="h", split="test", control=None)["accuracy"] > 0.8
    assert one(found, probe="linear", layer="h", split="test", control=None)["accuracy"] > 0.9


def test_one_row_of_each_class_leaves_no_choice_and_says_so(place):
    row = one(figures()["rows"], probe="few_1", layer="h", split="test", control=None)
    assert row["note"] == "no class has a second row to choose the regularization by"
    assert row["accuracy"] is not None


def test_one_class_is_named(place):
    write_space(train_kind=np.zeros(TRAIN, int))
    found = figures()
    for each in ("knn", "linear", "few_1", "few_10"):
        assert notes(found["rows"], probe=each) == "not computable: all training rows are of one class"
    assert one(found["numbers"], layer="h", split="test", control=None)["r2"] > 0.9


def test_a_class_without_training_rows_is_no_trouble(place):
    write_space(classes=("a", "b", "c", "d"), train_kind=np.array([1, 2, 3] * (TRAIN // 3)))
    assert one(figures()["rows"], probe="linear", layer="h", split="test", control=None)["accuracy"] > 0.5


@pytest.mark.parametrize(
    ("values", "note"),
    [
        (np.full(TRAIN, 3.0), "not computable: all training values are equal"),
        (
            np.r_[np.nan, np.inf, np.ones(TRAIN - 2)],
            f"not computable: 2 of {TRAIN} training values are no finite number",
        ),
    ],
)
def test_numbers_that_teach_nothing_are_named(place, values, note):
    write_space(train_size=values)
    found = figures()
    assert notes(found["numbers"]) == note
    assert one(found["rows"], probe="knn", layer="h", split="test", control=None)["accuracy"] > 0.9


def test_test_numbers_that_are_not_known_or_all_equal_are_named(place):
    write_space(test_size=np.r_[np.nan, np.ones(TEST - 1)])
    assert notes(figures()["numbers"]) == f"not computable: 1 of {TEST} test values are no finite number"
    write_space(test_size=np.full(TEST, 19.0))
    row = one(figures()["numbers"], layer="h", split="test", control=None)
    assert (row["r2"], row["note"]) == (None, "R² is not computable: all test values are equal")
    assert row["mae"] is not None


def broken(rows):
    rows[3, 1] = np.nan
    return rows


@pytest.mark.parametrize(
    ("change", "note"),
    [(broken, "1 of {} rows hold NaN or infinity"), (lambda rows: 0 * rows + 3, "all rows are equal")],
)
def test_rows_that_cannot_be_read_are_named_split_by_split(place, change, note):
    spoil("z", change, ("view0",))
    spoil("h", change, ("train",))
    found = figures()
    for kind in ("rows", "numbers"):
        assert notes(found[kind], layer="z", split="view0") == "not computable: " + note.format(TEST)
        assert notes(found[kind], layer="h") == "not computable: " + note.format(TRAIN)
    assert one(found["rows"], probe="few_10", layer="z", split="test")["accuracy"] > 0.85
    assert one(found["numbers"], layer="z", split="test")["r2"] > 0.9


def test_one_dimension_has_no_directions_and_every_other_probe(place):
    spoil("z", lambda rows: rows[:, 5:])
    found = figures()
    assert notes(found["rows"], probe="knn", layer="z") == "not computable: one dimension has no directions to compare"
    assert one(found["rows"], probe="linear", layer="z", split="test")["accuracy"] is not None
    assert one(found["rows"], probe="few_10", layer="z", split="test")["accuracy"] is not None
    assert one(found["numbers"], layer="z", split="test")["r2"] > 0.9


def test_fewer_rows_than_neighbours_are_named_for_knn_alone(place):
    write_spec(k=500)
    found = figures()["rows"]
    assert notes(found, probe="knn") == f"not computable: {TRAIN} training rows are fewer than probe.k = 500"
    assert one(found, probe="linear", layer="h", split="test", control=None)["accuracy"] > 0.9


@pytest.mark.parametrize("column", ["kind", "size"])
def test_labels_that_do_not_match_the_rows_are_refused(place, column):
    write_space()
    given = dict(np.load("work/embed/x/labels.npz"))
    given[f"train.{column}"] = given[f"train.{column}"][:-1]
    np.savez("work/embed/x/labels.npz", **given)
    with pytest.raises(Refusal, match=f"{TRAIN} rows, but {TRAIN - 1} labels in column {column}"):
        probe.main(["x"])


def test_a_column_has_values_or_codes_by_its_kind(place):
    space = Embeddings(place / "work/embed/x")
    with pytest.raises(Refusal, match='the column "kind" holds classes; only a column of numbers has values'):
        space.numbers("train", "kind")
    with pytest.raises(Refusal, match="did you mean 'size'"):
        space.numbers("train", "sise")
    given = dict(np.load("work/embed/x/labels.npz"))
    np.savez("work/embed/x/labels.npz", **{**given, "train.size": np.array(["x"] * TRAIN)})
    with pytest.raises(Refusal, match=r"train\.size holds <U1, not numbers"):
        Embeddings(place / "work/embed/x").numbers("train", "size")


def test_thresholds_may_name_every_figure(place):
    names = [f"probe.kind.{each}.h" for each in ("knn", "linear", "few_1", "few_10")] + ["probe.size.r2.z.view0"]
    thresholds = [{"measure": name, "at_least": 0.3} for name in names]
    thresholds += [{"measure": "probe.size.mae.h", "at_most": 2.0}, {"measure": "probe.size.mae.raw", "at_most": 0.1}]
    audit = {"samples": 50, "neighbours": 5, "purity_at": [1], "thresholds": thresholds, "accept": []}
    write_spec(audit)
    figures()
    Path("work/audit/x").mkdir(parents=True)
    Path("work/audit/x/measures.json").write_text(json.dumps({"measures": {}}))
    judge.main(["x"])
    rows = json.loads(Path("work/judge/x/verdict.json").read_text())["rows"]
    assert [row["measure"] for row in rows] == [threshold["measure"] for threshold in thresholds]
    assert [row["verdict"] for row in rows] == ["passed"] * 6 + ["failed"]


def refused(**changes):
    with pytest.raises(SpecError) as caught:
        parse({key: value for key, value in section(**changes).items() if value != "gone"}, Probe, "x.yaml", "probe")
    return str(caught.value).splitlines()


def test_an_earlier_spec_is_told_what_to_write():
    assert refused(regularization=1e-3, few_labels="gone") == [
        "x.yaml: probe.regularization = 0.001: the probes choose it inside the training rows now; delete this line",
        "x.yaml: probe.few_labels: missing; write {percent: [1, 10], draws: 5}, or null for no such probe",
    ]
    (told,) = refused(regularization=1e-3)
    assert told.endswith("delete this line")


@pytest.mark.parametrize(
    ("changes", "start", "end"),
    [
        (
            {"few_labels": {"percent": [10, 1], "draws": 5}},
            "x.yaml: probe.few_labels.percent",
            "must rise; write [1, 10]",
        ),
        ({"few_labels": {"percent": [], "draws": 5}}, "x.yaml: probe.few_labels.percent", "at least 1 item(s)"),
        ({"few_labels": {"percent": [100], "draws": 5}}, "x.yaml: probe.few_labels.percent[0] = 100", "equal to 99"),
        ({"few_labels": {"percent": [1], "draws": 1}}, "x.yaml: probe.few_labels.draws = 1", "equal to 2"),
        ({"few_labels": "gone"}, "x.yaml: probe.few_labels: missing", "(null where it does not apply)"),
        ({"labels": ["a", "a"]}, "x.yaml: probe.labels[1]", "named twice; delete one"),
    ],
)
def test_settings_that_mean_nothing_are_refused(changes, start, end):
    (told,) = refused(**changes)
    assert told.startswith(start)
    assert told.endswith(end)


def test_what_is_read_of_numbers_is_no_percentage_in_the_report():
    forms = {name: measured(f"probe.age.{name}") for name in ("r2.h", "mae.z.view0", "knn.h", "few_10.h.view0")}
    assert forms == {"r2.h": "number", "mae.z.view0": "number", "knn.h": "percent", "few_10.h.view0": "percent"}
