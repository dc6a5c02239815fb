"""The sentence on how a space was trained says what the spec says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.report.method import method
from pipeline.spec import read_yaml

METHODS = Path(__file__).resolve().parents[2] / "specs" / "examples" / "methods"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("simclr", ["nt xent", "other samples of the batch", "temperature 0.2"]),
        ("moco_v2", ["a queue of 1024", "earlier steps", "momentum 0.99)"]),
        ("moco_v3", ["slow copy", "rising to 1", "predictor"]),
        ("byol", ["positives alone", "slow copy", "predictor"]),
        ("simsiam", ["positives alone", "without a gradient", "predictor"]),
        ("debiased", ["debiased"]),
        ("hard_negative", ["hard negative"]),
        ("supcon", ["those of the class positives"]),
    ],
)
def test_every_shipped_method_is_told_by_what_makes_it(name: str, words: list[str]) -> None:
    told = method(read_yaml(METHODS / f"{name}.yaml")["space"])
    assert [word for word in words if word not in told] == []
    assert ("predictor" in told) == (name in ("moco_v3", "byol", "simsiam"))
    assert ("slow copy" in told) == (name in ("moco_v2", "moco_v3", "byol"))


@pytest.mark.parametrize("space", [None, [], "x", {}, {"objective": 3, "target": [], "sampler": None}])
def test_a_damaged_spec_has_no_sentence_and_no_error(space: Any) -> None:
    assert method(space) == ""
