"""Two runs side by side: one space or two, what differs in their specs, and how their vectors agree."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from small import DATA
from test_stages import Call, call, left_over, mine, place, ran, write  # noqa: F401

from pipeline.comparing import SHUFFLED, differences, sameness, sample

TRAINED = ("shard", "check", "pretrain", "embed")


@pytest.fixture
def two(call: Call) -> Call:  # noqa: F811
    """``mine``, and ``other`` with another temperature, on the same data."""
    write(Path("specs/other.yaml"), mine(space__temperature=0.5, probe__k=3))
    ran(call, *TRAINED)
    for stage in TRAINED[1:]:
        assert call(stage, "other")[0] == 0
    return call


def figures(name):
    content = json.loads(Path(f"work/compare/{name}/agreement.json").read_text())
    return content, {(row["first"], row["second"]): row for row in content["rows"]}


def test_two_runs_on_the_same_pictures_are_compared(two: Call):
    code, lines = two("compare", "mine", "other")
    assert code == 0
    assert lines[0] == (
        "different spaces: other declaration and weights (equal network); their vectors must not be mixed"
    )
    assert "--- specs/mine.yaml" in lines
    assert "@@ space @@" in lines
    assert "@@ probe @@" in lines
    assert not [line for line in lines if line.startswith(("@@ data", "@@ training"))]
    changed = [line for line in lines if line.startswith(("-  ", "+  "))]
    assert any("0.2" in line and line.startswith("-") for line in changed)
    assert any("0.5" in line and line.startswith("+") for line in changed)
    content, rows = figures("mine--other")
    assert content["same"] is False
    h, shuffled = rows["mine.h", "other.h"], rows["mine.h", f"other.h, {SHUFFLED}"]
    assert h["cka"]["value"] > 0.5 > shuffled["cka_unbiased"]["value"]
    assert 0 <= h["procrustes"]["value"] < shuffled["procrustes"]["value"]
    assert h["neighbours"]["low"] <= h["neighbours"]["value"] <= h["neighbours"]["high"]
    assert set(rows) == {
        ("mine.h", "other.h"),
        ("mine.z", "other.z"),
        ("mine.h", "mine.untrained"),
        ("mine.h", f"other.h, {SHUFFLED}"),
    }
    assert left_over() == []


def test_a_run_agrees_with_itself(two: Call):
    code, lines = two("compare", "mine", "mine")
    assert code == 0
    assert lines[:2] == ["the same space: equal declaration, network and weights", "the specs are equal"]
    content, rows = figures("mine--mine")
    assert content["same"] is True
    row = next(iter(rows.values()))
    assert (row["cka"]["value"], row["procrustes"]["value"], row["neighbours"]["value"]) == (
        1,
        pytest.approx(0, abs=1e-5),
        1,
    )


def test_other_test_images_are_refused_by_their_fingerprint(two: Call):
    write(Path("specs/data/else.yaml"), {**DATA, "source": {**DATA["source"], "seed": 1}})
    write(Path("specs/other.yaml"), mine(data="else"))
    assert two("shard", "else")[0] == 0
    shutil.rmtree("work/embed/other")
    shutil.copytree("work/embed/mine", "work/embed/other")
    code, lines = two("compare", "mine", "other")
    assert (code, len(lines)) == (1, 1)
    assert "other test images, so no row has a partner; give both the same data set" in lines[0]
    assert not Path("work/compare").exists()


def test_what_was_not_embedded_or_was_refused_is_one_line(two: Call):
    shutil.rmtree("work/embed/other")
    code, lines = two("compare", "mine", "other")
    assert (code, lines) == (
        1,
        ["work/embed/other/columns.json: not there; run `dvc repro` or `python -m stages.embed other` first"],
    )
    Path("work/embed/other").mkdir()
    Path("work/embed/other/refused.json").write_text('{"stage": "check", "reason": "it contradicts itself"}')
    code, lines = two("compare", "mine", "other")
    assert (code, lines) == (1, ["other: has no vectors; check refused it: it contradicts itself"])
    assert two("compare", "mine", "othre") == (1, ["specs/othre.yaml: no such spec; did you mean 'other'?"])


def test_vectors_of_another_sharding_are_refused(two: Call):
    for split in ("test", "view0", "view1"):
        file = Path(f"work/embed/other/{split}.h.npy")
        np.save(file, np.load(file)[:-1])
    with np.load("work/embed/other/labels.npz") as arrays:
        labels = {name: value[:-1] if name.startswith("test") else value for name, value in arrays.items()}
    np.savez("work/embed/other/labels.npz", **labels)
    code, lines = two("compare", "mine", "other")
    assert (code, len(lines)) == (1, 1)
    assert "test rows, but the data set has" in lines[0]


# -- files -------------------------------------------------------------------------------------------------------------


def test_two_files_of_the_same_rows_are_compared(call: Call):  # noqa: F811
    random = np.random.default_rng(0)
    rows = random.normal(size=(300, 5))
    np.save("a.npy", rows)
    np.save("b.npy", rows @ np.linalg.qr(random.normal(size=(5, 5)))[0] * 3)
    np.savez("c.npz", rows=random.normal(size=(300, 9)))
    assert call("compare", "a.npy", "b.npy")[0] == 0
    row = figures("a--b")[1]["a", "b"]
    assert row["cka"]["value"] == pytest.approx(1, abs=1e-5)
    assert row["procrustes"]["value"] == pytest.approx(0, abs=1e-3)
    assert row["neighbours"]["value"] > 0.99
    code, lines = call("compare", "a.npy", "c.npz")
    assert code == 0
    assert "taken on trust" in lines[0]
    assert figures("a--c")[1]["a", "c"]["cka_unbiased"]["value"] < 0.1
    assert call("compare", "a.npy", "a.npy")[1][0] == "the same vectors"


def test_a_constant_file_says_why_it_cannot_be_compared(call: Call):  # noqa: F811
    np.save("a.npy", np.eye(20))
    np.save("b.npy", np.ones((20, 3)))
    code, lines = call("compare", "a.npy", "b.npy")
    assert code == 0
    assert "not computable: all rows are equal" in lines
    assert figures("a--b")[1]["a", "b"]["cka"]["value"] is None


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["a.npy", "short.npy"], "a.npy has 20 rows, short.npy 3: row i must be the same sample in both files"),
        (["a.npy", "mine"], "give two specs, or two .npy files of the same rows"),
        (["a.npy", "none.npy"], "none.npy: no such file"),
    ],
)
def test_files_that_cannot_be_compared_are_one_line(call: Call, arguments, line):  # noqa: F811
    np.save("a.npy", np.eye(20))
    np.save("short.npy", np.eye(3))
    code, lines = call("compare", *arguments)
    assert (code, len(lines)) == (1, 1)
    assert line in lines[0]
    assert not Path("work/compare").exists()


def test_what_makes_a_space_is_named_where_it_differs():
    one = {"declaration": "a", "network": "b", "weights": "c"}
    assert sameness(one, dict(one)) == (True, "the same space: equal declaration, network and weights")
    same, told = sameness(one, {**one, "weights": "d"})
    assert not same
    assert told.startswith("different spaces: other weights (equal declaration and network)")
    assert sameness(one, dict.fromkeys(one, "x"))[1].startswith(
        "different spaces: other declaration, network and weights;"
    )


def test_hunks_are_named_by_their_section():
    first = "data: x\nspace:\n  a: 1\n  b: 2\n  c: 3\nprobe:\n  k: 1\n"
    lines = differences(first, first.replace("b: 2", "b: 5").replace("k: 1", "k: 9"), ("p", "q"))
    assert [line for line in lines if line.startswith("@@")] == ["@@ space @@", "@@ probe @@"]
    assert differences(first, first, ("p", "q")) == []


def test_the_sample_is_the_same_for_every_pair_and_bounded():
    assert len(sample(10**5)) == 2000
    assert (np.diff(sample(10**5)) > 0).all()
    np.testing.assert_array_equal(sample(5), np.arange(5))
