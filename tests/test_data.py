"""Data specs: the shipped ones are valid, and every rule between fields is told with its remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from pipeline.data import DataSpec
from pipeline.spec import SpecError, parse, read_spec

SHIPPED = sorted(Path("specs").glob("**/data/*.yaml"))


def told(**changes: Any) -> str:
    plain: dict[str, Any] = {
        "source": {"kind": "digits"},
        "input": {"height": 12, "width": 12, "channels": 1, "fit": "pad", "background": 0},
        "split": {"test": 0.2, "seed": 0},
        "labels": ["label"],
    }
    with pytest.raises(SpecError) as raised:
        parse({**plain, **changes}, DataSpec, "mine.yaml")
    return str(raised.value)


def archive(**changes: Any) -> dict[str, Any]:
    return {"kind": "archive", "train": "a.tar", "test": "b.tar", "classes": "folder", **changes}


def table(**changes: Any) -> dict[str, Any]:
    return {"file": "t.csv", "path": "file", "classes": ["patient"], "numbers": [], "split": None, **changes}


def canvas(**changes: Any) -> dict[str, Any]:
    return {"height": 12, "width": 12, "channels": 1, "fit": "pad", "background": 0, **changes}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_data_spec_is_valid_and_writes_out_every_key(path: Path) -> None:
    spec = read_spec(path, DataSpec)
    assert YAML(typ="safe").load(path) == spec.model_dump(mode="json")


def test_the_shipped_data_specs_are_the_promised_ones() -> None:
    assert {"digits", "shapes", "cifar10", "blood_cells", "satellite"} <= {path.stem for path in SHIPPED}


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"labels": ["labl"]}, "mine.yaml: labels[0] = \"labl\": no such column; did you mean 'label'?"),
        ({"labels": ["label", "label"]}, 'mine.yaml: labels[1] = "label": named twice'),
        ({"split": None}, "mine.yaml: split = null: must be given, as {test: 0.2, seed: 0}"),
        ({"split": {"test": 0.0, "seed": 0}}, "mine.yaml: split.test = 0.0: "),
        ({"source": {"kind": "digit"}}, "mine.yaml: source.kind = \"digit\": unknown kind; did you mean 'digits'?"),
        ({"source": archive()}, "mine.yaml: split = "),
        (
            {"source": archive(), "split": {"test": None, "seed": None, "group": None}},
            "must be null, or name a group: the source has its own split",
        ),
        ({"source": archive(), "split": {"test": None, "seed": 3, "group": "label"}}, "would be silently unused"),
        ({"split": {"test": None, "seed": None, "group": "label"}}, "must be given, as {test: 0.2, seed: 0}"),
        ({"source": archive(classes=None), "split": None}, 'mine.yaml: labels[0] = "label": must be []'),
        ({"source": archive(train=None), "split": None}, "mine.yaml: source.train = null: must name a file"),
        ({"source": archive(test="a.tar"), "split": None}, 'mine.yaml: source.test = "a.tar": must be another file'),
        ({"source": archive(train="../a.tar"), "split": None}, "must lie under the raw path"),
        ({"source": archive(test="/b.tar"), "split": None}, "must lie under the raw path"),
        (
            {"split": {"test": 0.2, "seed": 0, "group": "labl"}},
            'split.group = "labl": no such column of classes; did you',
        ),
        ({"manifest": table()}, ": must be null: the source is embedded"),
        ({"source": archive(), "split": None, "manifest": table(classes=["label"])}, "the source has a column 'label'"),
        ({"source": archive(), "split": None, "manifest": table(split="s")}, 'manifest.split = "s": must be null'),
        ({"source": archive(test=None), "manifest": table(split="s")}, "split = "),
        ({"ledger": {"strict": False, "budget": 1.5, "repeated": "keep"}}, "ledger.budget = 1.5: "),
        ({"ledger": {"strict": False, "budget": None, "repeated": "drop"}}, 'ledger.repeated = "drop": '),
        ({"input": canvas(range=[1, 0])}, "input.range = [1, 0]: must rise"),
        ({"input": canvas(range=[0])}, "input.range"),
    ],
)
def test_each_fault_of_a_data_spec_is_one_line_with_its_remedy(changes: dict[str, Any], line: str) -> None:
    text = told(**changes)
    assert line in text
    assert len(text.splitlines()) == 1


def test_the_group_is_kept_beside_the_labels_and_columns_of_the_table_are_known() -> None:
    spec = parse(
        {
            "source": archive(test=None),
            "manifest": table(classes=["patient", "finding"], numbers=["age"]),
            "input": canvas(),
            "split": {"test": 0.2, "seed": 0, "group": "patient"},
            "labels": ["finding", "age"],
        },
        DataSpec,
        "mine.yaml",
    )
    assert spec.columns() == {"finding": "class", "age": "number", "patient": "class"}
