"""probe, audit and judge as a user meets them: whole folders, stated figures, and every bad input on one line."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler, normalize

import stages
from pipeline.achieved.found import Found
from pipeline.embeddings import Embeddings, unusable
from pipeline.rounding import rounded
from pipeline.spec import Refusal
from stages import audit, judge, probe

SPEC = """
probe: {labels: [label], k: 5, temperature: 0.07, few_labels: null}
audit:
  samples: 50
  neighbours: 5
  purity_at: [1, 20]
  thresholds:
    - {measure: effective_rank.h, at_least: 2}
    - {measure: probe.label.knn.h.view0, at_least: 0.6}
    - {measure: uniformity.z, at_most: -0.5}
  accept: []
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a spec, vectors of four separate classes, and a training's summary."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(audit, "transformed", lambda *_: Found())  # needs pictures: tests/achieved
    monkeypatch.setattr(audit, "curate", lambda *_: None)  # likewise
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs/x.yaml").write_text(SPEC)
    embed, random = tmp_path / "work/embed/x", np.random.default_rng(0)
    embed.mkdir(parents=True)
    counts = {"train": 120, "test": 60}
    labels = {split: random.integers(0, 4, count) for split, count in counts.items()}
    np.savez(embed / "labels.npz", **{f"{split}.label": codes for split, codes in labels.items()})
    columns = {"label": {"kind": "class", "classes": ["a", "b", "c", "d"]}}
    (embed / "columns.json").write_text(json.dumps(columns))
    for layer in ("h", "z", "raw", "untrained"):
        spread = 0.2 if layer in ("h", "z") else 2.0
        for split in ("train", "test", "view0", "view1"):
            codes = labels["train" if split == "train" else "test"]
            rows = np.eye(6)[codes] + spread * random.normal(size=(len(codes), 6))
            np.save(embed / f"{split}.{layer}.npy", rows.astype(np.float32))
    pretrain = tmp_path / "work/pretrain/x"
    pretrain.mkdir(parents=True)
    (pretrain / "summary.json").write_text(json.dumps({"loss": 1.0, "candidates": 8, "starts_at": 2.0794415}))
    return tmp_path


def spoil(place, layer, change, splits=("train", "test", "view0", "view1")):
    for split in splits:
        path = place / f"work/embed/x/{split}.{layer}.npy"
        np.save(path, np.ascontiguousarray(change(np.load(path)), dtype=np.float32))


def run_all():
    for stage in (probe, audit, judge):
        stage.main(["x"])


def read(stage, file):
    return json.loads(Path(f"work/{stage}/x/{file}").read_text())


def figure(**wanted):
    (row,) = [row for row in read("probe", "figures.json")["rows"] if wanted.items() <= row.items()]
    return row


def test_a_separated_space_passes_and_every_figure_is_stated(place, capsys):
    run_all()
    rows = read("probe", "figures.json")["rows"]
    assert len(rows) == 2 * 2 * 4 + 2 * 2  # probes, splits, layers; and the shuffled control on h
    for row in rows:
        assert 0 <= row["low"] <= row["accuracy"] <= row["high"] <= 1
        assert (row["count"], row["gallery"], row["classes"], row["confidence"]) == (60, 120, 4, 0.95)
        assert (row["k"] is None) == (row["probe"] == "linear") == (row["regularization"] is not None)
    good = figure(layer="h", probe="knn", split="test", control=None)
    shuffled = figure(layer="h", probe="knn", split="test", control="shuffled labels")
    assert good["accuracy"] > 0.95
    assert shuffled["accuracy"] < 0.5
    assert figure(layer="raw", probe="linear", split="view0")["accuracy"] < good["accuracy"]
    measures = read("audit", "measures.json")["measures"]
    names = ("positive_similarity", "negative_similarity", "alignment", "uniformity", "effective_rank")
    for name in [f"{name}.{layer}" for name in names for layer in "hz"] + ["neighbour_purity.label.h"]:
        entry = measures[name]
        assert entry["low"] <= entry["value"] <= entry["high"]
        assert entry["count"]
        assert entry["split"]
    assert measures["alignment.h"]["count"] == 50  # audit.samples of the 60
    assert measures["loss_below_log_k"]["value"] == pytest.approx(1.07944)
    assert read("judge", "verdict.json")["verdict"] == "passed"
    assert read("judge", "gate.json") == {"gate": "pass"}
    assert "label" in capsys.readouterr().out


def test_each_measure_is_of_the_rows_that_it_states(place):
    (place / "specs/x.yaml").write_text(SPEC.replace("samples: 50", "samples: 60"))
    audit.main(["x"])
    measures, space = read("audit", "measures.json")["measures"], Embeddings(place / "work/embed/x")
    for layer in "hz":
        rows = {split: space.features(split, layer) for split in ("test", "view0", "view1")}
        a, b = (normalize(rows[split].astype(np.float64)) for split in ("view0", "view1"))
        assert measures[f"positive_similarity.{layer}"]["value"] == pytest.approx((a * b).sum(1).mean(), abs=1e-5)
        assert measures[f"alignment.{layer}"]["value"] == pytest.approx(np.square(a - b).sum(1).mean(), abs=1e-5)
        kernel = np.exp(-2 * np.square(a[:, None] - a).sum(-1))[~np.eye(60, dtype=bool)].mean()
        assert measures[f"uniformity.{layer}"]["value"] == pytest.approx(np.log(kernel), abs=1e-5)
        shares = np.linalg.eigvalsh(np.cov(rows["test"].T))
        shares /= shares.sum()
        assert measures[f"effective_rank.{layer}"]["value"] == pytest.approx(
            np.exp(-(shares * np.log(shares)).sum()), rel=1e-5
        )
        np.testing.assert_allclose(read("audit", "measures.json")["spectra"][layer], shares[::-1], rtol=1e-4)


def test_each_probe_figure_is_scikit_learns_on_the_rows_that_it_states(place):
    probe.main(["x"])
    space = Embeddings(place / "work/embed/x")
    known, truth = space.labels("train", "label"), space.labels("test", "label")
    for layer in ("h", "z", "raw", "untrained"):
        oracle = KNeighborsClassifier(
            5, metric="cosine", algorithm="brute", weights=lambda distance: np.exp((1 - distance) / 0.07)
        ).fit(space.features("train", layer), known)
        scaler = StandardScaler().fit(space.features("train", layer))
        strength = figure(layer=layer, probe="linear", split="test", control=None)["regularization"]
        lines = LogisticRegression(C=1 / (120 * strength), max_iter=1000)
        lines.fit(scaler.transform(space.features("train", layer)), known)
        for split in ("test", "view0"):
            rows = space.features(split, layer)
            knn = figure(layer=layer, probe="knn", split=split, control=None)
            linear = figure(layer=layer, probe="linear", split=split, control=None)
            assert knn["accuracy"] == pytest.approx((oracle.predict(rows) == truth).mean(), abs=1e-5)
            expected = (lines.predict(scaler.transform(rows)) == truth).mean()
            assert linear["accuracy"] == pytest.approx(expected, abs=1.01 / 60)
            assert knn["chance"] == pytest.approx(np.bincount(known).max() / 120, abs=1e-6)


def test_the_same_input_writes_the_same_bytes(place):
    files = ("probe/x/figures.json", "audit/x/measures.json", "judge/x/verdict.json")
    run_all()
    first = [Path("work", file).read_bytes() for file in files]
    run_all()
    assert [Path("work", file).read_bytes() for file in files] == first


def test_a_changed_threshold_changes_the_verdict_and_needs_no_vector(place):
    run_all()
    before = read("judge", "verdict.json")["thresholds"]
    for file in (place / "work/embed/x").iterdir():
        file.unlink()
    (place / "specs/x.yaml").write_text(SPEC.replace("at_least: 2", "at_least: 5.9"))
    judge.main(["x"])
    assert read("judge", "verdict.json")["verdict"] == "failed"
    assert read("judge", "verdict.json")["thresholds"] != before
    assert read("judge", "gate.json") == {"gate": "fail"}
    waived = SPEC.replace("at_least: 2", "at_least: 5.9").replace(
        "accept: []", "accept: [{measure: effective_rank.h, reason: four classes}]"
    )
    (place / "specs/x.yaml").write_text(waived)
    judge.main(["x"])
    assert read("judge", "gate.json") == {"gate": "accepted"}
    assert read("judge", "verdict.json")["rows"][0]["accepted"] == "four classes"


def test_a_refused_training_is_passed_on_and_is_no_error(place, capsys):
    for stage in ("embed", "pretrain"):
        (place / f"work/{stage}/x/refused.json").write_text(json.dumps({"stage": "check", "reason": "erased"}))
    run_all()
    for stage in ("probe", "audit", "judge"):
        assert [path.name for path in Path(f"work/{stage}/x").iterdir()] == ["refused.json"]
        assert read(stage, "refused.json") == {"stage": "check", "reason": "erased"}


def test_broken_numbers_in_one_layer_are_named_and_the_rest_is_reported(place):
    def scratch(rows):
        rows[3, 1] = np.nan
        return rows

    spoil(place, "h", scratch)
    run_all()
    assert figure(layer="h", probe="linear", split="test", control=None)["note"] == (
        "not computable: 1 of 120 rows hold NaN or infinity"
    )
    assert figure(layer="z", probe="knn", split="test")["accuracy"] > 0.9
    measures = read("audit", "measures.json")["measures"]
    for name in ("alignment.h", "uniformity.h", "effective_rank.h", "neighbour_purity.label.h"):
        assert measures[name]["note"].startswith("not computable: 1 of 60 rows hold NaN or infinity")
        assert measures[name]["value"] is None
    assert measures["uniformity.z"]["value"] < 0
    assert read("judge", "verdict.json")["verdict"] == "failed"
    assert "NaN" in read("judge", "verdict.json")["rows"][0]["note"]


@pytest.mark.parametrize("value", [0.0, 1.0, 300.0])
def test_a_collapsed_space_fails_for_the_right_reason(place, value):
    spoil(place, "h", lambda rows: value * (1 + 1e-7 * np.random.default_rng(0).normal(size=rows.shape)))
    run_all()
    row = read("judge", "verdict.json")["rows"][0]
    assert (row["verdict"], row["note"]) == ("failed", "not computable: all rows are equal")
    assert figure(layer="h", probe="knn", split="view0", control=None)["note"] == "not computable: all rows are equal"


def test_one_dimension_has_a_spectrum_and_a_linear_probe_but_no_directions(place):
    spoil(place, "z", lambda rows: rows[:, :1])
    run_all()
    measures = read("audit", "measures.json")["measures"]
    assert measures["effective_rank.z"]["value"] == 1
    assert measures["uniformity.z"]["note"] == "not computable: one dimension has no directions to compare"
    assert figure(layer="z", probe="linear", split="test")["accuracy"] is not None
    assert figure(layer="z", probe="knn", split="test")["accuracy"] is None


def test_rows_of_length_zero_have_no_direction(place):
    spoil(place, "z", lambda rows: rows * (np.arange(len(rows)) > 1)[:, None])
    run_all()
    note = read("audit", "measures.json")["measures"]["alignment.z"]["note"]
    assert note == "not computable: 2 of 60 rows have length zero"


def test_fewer_training_rows_than_k_are_named_and_the_linear_probe_is_reported(place):
    (place / "specs/x.yaml").write_text(SPEC.replace("k: 5", "k: 200"))
    probe.main(["x"])
    knn = figure(layer="h", probe="knn", split="test", control=None)
    assert knn["note"] == "not computable: 120 training rows are fewer than probe.k = 200"
    assert figure(layer="h", probe="linear", split="test", control=None)["accuracy"] > 0.9


def test_fewer_test_rows_than_neighbours_are_named(place):
    (place / "specs/x.yaml").write_text(SPEC.replace("neighbours: 5", "neighbours: 60"))
    audit.main(["x"])
    note = read("audit", "measures.json")["measures"]["neighbour_purity.label.h"]["note"]
    assert note == "not computable: 60 rows have fewer than 60 others"


def test_one_class_is_named(place):
    np.savez("work/embed/x/labels.npz", **{"train.label": np.zeros(120, int), "test.label": np.zeros(60, int)})
    probe.main(["x"])
    audit.main(["x"])
    assert figure(layer="h", probe="knn", split="test", control=None)["note"] == (
        "not computable: all training rows are of one class"
    )
    note = read("audit", "measures.json")["measures"]["neighbour_purity.label.h"]["note"]
    assert note == "not computable: all test rows are of one class of label"


def refused(stage):
    with pytest.raises(Refusal) as caught:
        stage.main(["x"])
    assert "\n" not in str(caught.value)
    assert not Path(f"work/{stage.__name__.split('.')[-1]}/x").exists()
    return str(caught.value)


@pytest.mark.parametrize("stage", [probe, audit])
def test_labels_that_do_not_match_the_rows_are_refused(place, stage):
    np.savez("work/embed/x/labels.npz", **{"train.label": np.zeros(7, int), "test.label": np.zeros(9, int)})
    told = refused(stage)
    assert "rows, but" in told
    assert "labels in column label; delete its folder and run `dvc repro`" in told


@pytest.mark.parametrize(
    ("codes", "words"),
    [(np.full(120, 4), "codes of its 4 classes"), (np.full(120, -1), "codes"), (np.zeros(120), "int64")],
)
def test_codes_outside_the_classes_are_refused(place, codes, words):
    np.savez("work/embed/x/labels.npz", **{"train.label": codes, "test.label": np.zeros(60, int)})
    assert words in refused(probe)


def test_unknown_columns_are_refused_together(place):
    (place / "specs/x.yaml").write_text(SPEC.replace("[label]", "[lable, label, kind]"))
    with pytest.raises(Refusal) as caught:
        probe.main(["x"])
    assert str(caught.value).splitlines() == [
        "specs/x.yaml: probe.labels[0] = \"lable\": no such label column; did you mean 'label'?",
        'specs/x.yaml: probe.labels[2] = "kind": no such label column; known: label',
    ]


def test_a_stage_that_has_not_run_is_named(place):
    assert refused(judge).endswith("run `dvc repro` or `python -m stages.audit` first")
    Path("work/embed/x/columns.json").unlink()
    assert refused(probe).endswith("run `dvc repro` or `python -m stages.embed x` first")


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"nonsense"])
def test_a_damaged_array_is_named(place, content):
    Path("work/embed/x/test.h.npy").write_bytes(content)
    assert "test.h.npy: damaged" in refused(probe)


@pytest.mark.parametrize("array", [np.zeros((60, 6)), np.zeros(60, np.float32), np.zeros((60, 0), np.float32)])
def test_an_array_of_another_type_or_shape_is_named(place, array):
    np.save("work/embed/x/test.h.npy", array)
    assert "not float32 rows (N, D)" in refused(probe)


def test_vectors_are_read_only_and_not_copied_into_memory(place):
    rows = Embeddings(place / "work/embed/x").features("test", "h")
    assert isinstance(rows, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        rows[0] = 0


def test_a_file_in_the_place_of_an_output_folder_is_named(place):
    Path("work/probe").mkdir()
    Path("work/probe/x").write_text("")
    with pytest.raises(Refusal, match="is a file where an output folder should be"):
        probe.main(["x"])


def test_a_folder_appears_whole_or_not_at_all(place, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(probe, "write_json", full)
    with pytest.raises(OSError, match="No space left"):
        probe.main(["x"])
    assert list(Path("work/probe").iterdir()) == []
    assert "free some space" in stages.told(OSError(28, "No space left on device", "f"))


def test_the_spread_of_one_row_is_no_reason():
    assert unusable(np.ones((1, 3), np.float32)) is None


def test_figures_are_written_to_six_digits_and_never_as_nan():
    content = {"a": [1.23456789, np.float32(0.1)], "b": (-0.0, 3, None, "x", True), "c": np.array([1e-9 / 3])}
    assert rounded(content) == {"a": [1.23457, 0.1], "b": [0.0, 3, None, "x", True], "c": [3.33333e-10]}
    assert str(rounded(-0.0)) == "0.0"
    with pytest.raises(ValueError, match="nan is no figure"):
        rounded({"x": float("nan")})
