"""A spec without one invariance: which variants there are, how DVC is told of them, and what the table says."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dvc.utils.hydra import apply_overrides, to_hydra_overrides
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from small import whole
from test_end_to_end import CHANGES, Repository
from test_stages import Call, call, mine, place, write  # noqa: F401

from pipeline.leaving_out import hydra, variants
from pipeline.leaving_out.figures import beside, sentence, table
from pipeline.spec import parse, read_yaml
from pipeline.specification import Specification

SHIFT, TURN = {"kind": "shift", "pixels": 1.5}, {"kind": "rotation", "degrees": 15}

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0", exclude_categories=("Cc", "Cs")), max_size=12)
WORD = st.from_regex(r"[a-z]{1,6}", fullmatch=True)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(-1e9, 1e9) | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.from_regex(r"[a-z]{1,6}", fullmatch=True), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.lists(PLAIN, max_size=3))
def test_plain_data_comes_back_from_hydras_grammar(value: Any) -> None:
    (parsed,) = to_hydra_overrides([f"x={hydra(value)}"])
    assert plain(parsed.value()) == value


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value.text if hasattr(value, "text") else value


def of_preset(name: str) -> dict[str, Any]:
    return {"space__preset": name, "space__invariances": None, "space__views": None}


def labels(content: dict[str, Any]) -> dict[str, str | None]:
    return {variant.label: variant.reason for variant in variants(content, "x.yaml")}


def test_each_invariance_is_left_out_once_and_the_rest_stays() -> None:
    made = {each.label: each for each in variants(whole(), "x.yaml")}
    assert list(made) == ["whole", "shift", "rotation"]
    assert made["whole"].overrides == {}
    assert made["shift"].overrides == {"space.invariances": [TURN]}
    assert made["rotation"].removed == TURN


def test_invariances_of_one_kind_are_told_apart_and_equal_ones_leave_together() -> None:
    asymmetric = {"kind": "asymmetric", "first": [SHIFT], "second": [{"kind": "shift", "pixels": 3}, SHIFT]}
    content = whole(space__invariances=[TURN], space__views=asymmetric)
    made = {each.label: each for each in variants(content, "x.yaml")}
    assert list(made) == ["whole", "rotation", "shift-1", "shift-2"]
    assert made["shift-1"].overrides == {
        "space.views.first": [],
        "space.views.second": [{"kind": "shift", "pixels": 3}],
    }
    assert made["rotation"].overrides == {"space.invariances": []}


def test_the_last_one_and_the_crops_of_multi_crop_say_why_they_stay() -> None:
    assert "or a view is the picture itself" in str(labels(whole(space__invariances=[SHIFT]))["shift"])
    made = labels(
        whole(
            space__preset="multi_crop", space__invariances=None, space__views=None, space__sampler={"kind": "in_batch"}
        )
    )
    assert made["global_crop"] == made["local_crop"] == "the views of multi_crop are made by it"
    assert made["blur"] is None


def test_a_preset_is_written_out_and_unused_acceptances_go() -> None:
    made = {
        each.label: each
        for each in variants(whole(space__preset="byol", space__invariances=None, space__views=None), "x")
    }
    changed = made["solarize"].overrides
    assert changed["space.preset"] is None
    assert [each["kind"] for each in changed["space.views"]["second"]] == ["blur"]
    gray = {"kind": "grayscale", "probability": 0.2}
    accepted = [
        {"finding": "contradiction", "invariance": "grayscale", "preserved": "hue", "reason": "a stain's \\ 'hue'"}
    ]
    content = mine(space__invariances=[gray, SHIFT], space__preserves=["shape", "hue"], check__accept=accepted)
    made = {each.label: each for each in variants(content, "x")}
    assert made["grayscale"].overrides == {"space.invariances": [SHIFT], "check.accept": []}
    assert made["shift"].overrides == {"space.invariances": [gray]}


def test_what_dvc_writes_by_these_overrides_is_the_variant(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    for content in (
        mine(),
        whole(**of_preset("byol")),
        whole(space__views={"kind": "asymmetric", "first": [SHIFT], "second": []}),
    ):
        for variant in variants(content, "x.yaml"):
            with file.open("w") as stream:
                YAML().dump(content, stream)
            if variant.reason is not None:
                continue
            told = variant.parameters(file)
            assert told[::2] == ["-S"] * len(variant.overrides)
            overrides = [word.partition(":")[2] for word in told[1::2]]
            if overrides:
                apply_overrides(file, overrides)
            found = parse(read_yaml(file), Specification, "x")
            kinds = [each.kind for each in found.space.declared()]
            before = [each.kind for each in parse(content, Specification, "x").space.declared()]
            left_out = [] if variant.removed is None else [variant.removed["kind"]]
            assert sorted([*kinds, *left_out]) == sorted(before)


# -- the table ---------------------------------------------------------------------------------------------------------


def right(*shares: float) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    order = random.permutation(400)
    return {name: order < share * 400 for name, share in zip(("label.test", "label.moved"), shares, strict=True)}


def test_a_difference_is_paired_and_says_whether_it_paid() -> None:
    rows = list(beside(right(0.8, 0.8), right(0.8, 0.5)))
    assert rows[0]["paid"]["value"] == 0
    assert rows[1]["paid"]["value"] == pytest.approx(0.3)
    assert rows[1]["paid"]["low"] < 0.3 < rows[1]["paid"]["high"]
    assert sentence(rows) == "paid (label.moved)"
    assert sentence(list(beside(right(0.5, 0.8), right(0.8, 0.5)))) == "paid (label.moved); cost (label.test)"
    assert sentence(list(beside(right(0.8, 0.8), right(0.8, 0.799)))) == "cannot be told apart"
    refused = list(beside(right(0.8, 0.8), "check refused it: a shortcut"))
    assert "a shortcut" in sentence(refused)
    found = [
        {"removed": "shift", "rows": rows, "sentence": "paid (label.moved)"},
        {"removed": "blur", "rows": refused, "sentence": "x"},
        {"removed": "last", "rows": [], "sentence": "cannot be left out"},
    ]
    lines = list(table(found))
    assert any("+30.0%" in line for line in lines)
    assert lines[-1].split(maxsplit=1) == ["last", "cannot be left out"]


# -- the stage ---------------------------------------------------------------------------------------------------------


def test_the_commands_are_shown_and_nothing_runs(call: Call) -> None:  # noqa: F811
    code, lines = call("leave_one_out", "mine", "--print")
    assert code == 0
    assert lines[0] == "dvc exp run --name mine-whole judge@mine"
    assert len(lines) == 3
    assert re.match(
        r"dvc exp run --name mine-without-shift -S 'specs/mine.yaml:space.invariances=\[\{amount: 0.3", lines[1]
    )
    assert not Path("work").exists()


def test_what_cannot_be_run_is_one_line(call: Call) -> None:  # noqa: F811
    assert call("leave_one_out", "mien") == (1, ["specs/mien.yaml: no such spec; did you mean 'mine'?"])
    code, lines = call("leave_one_out", "mine")
    assert (code, len(lines)) == (1, 1)
    assert "no git repository" in lines[0]
    write(Path("specs/other.yaml"), mine())
    code, lines = call("leave_one_out", "other")
    assert (code, len(lines)) == (1, 1)
    assert "is not in specs/index.yaml" in lines[0]
    write(Path("specs/mine.yaml"), mine(training__epochs=0))
    code, lines = call("leave_one_out", "mine")
    assert (code, len(lines)) == (1, 1)
    assert "training.epochs" in lines[0]
    assert not Path("work").exists()


@pytest.mark.thorough
def test_experiments_are_made_in_a_clone_and_the_working_tree_is_not_touched(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "clone")
    root = repository.root
    specs = root / "specs"
    code = {
        "kind": "code",
        "file": "mine/vignette.py",
        "name": "Vignette",
        "arguments": {"amount": 0.2},
        "removes": ["brightness"],
    }
    repository.write("one", whole(**CHANGES, space__invariances=[SHIFT, code]))
    (specs / "two.yaml").unlink()
    index = {"data": {"digits": {"raw": "specs/none"}}, "specs": {"one": {"data": "digits", "files": "mine"}}}
    repository.dump(specs / "index.yaml", index)
    repository.commit()
    (root / "notes.txt").write_text("not in git")
    before = {path: path.read_bytes() for path in (*specs.rglob("*.yaml"), root / "dvc.yaml")}
    status = repository.git("status", "--porcelain")
    output = repository.run(sys.executable, "-m", "stages.leave_one_out", "one")
    assert repository.git("status", "--porcelain") == status
    assert {path: path.read_bytes() for path in before} == before
    found = json.loads((root / "work/leave_one_out/one/table.json").read_text())["found"]
    assert [each["removed"] for each in found] == ["shift", "code"]
    for each in found:
        assert {row["question"] for row in each["rows"]} == {"label.test", "label.moved", "itself.moved"}
        assert all(row["paid"]["low"] <= row["paid"]["value"] <= row["paid"]["high"] for row in each["rows"])
        assert each["sentence"] in output
    listed = repository.dvc("exp", "list", "--name-only")
    assert set(listed.split()) == {"one-whole", "one-without-shift", "one-without-code"}
    assert not (root / "work/pretrain").exists(), "nothing was made here"

    # an uncommitted edit counts, and what was made comes from the cache
    repository.write("one", whole(**{**CHANGES, "probe__k": 5}, space__invariances=[SHIFT, code]))
    output = repository.run(sys.executable, "-m", "stages.leave_one_out", "one")
    assert "dvc exp apply" not in output, "their commit is not in this repository"
    assert (specs / "one.yaml").read_text() != before[specs / "one.yaml"].decode()
    assert repository.git("stash", "list") == ""
