"""Spaces that were broken on purpose: the committed measures, judged again, give the verdicts and reasons of the table.

``tests/benchmarks/broken.py`` has made the spaces and measured them; nothing is trained here.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from broken import EXPECTED, SETS, as_made, frozen, judged, table  # noqa: E402

RUNS = json.loads((BENCHMARKS / "results" / "broken.json").read_text())


def test_every_space_was_made_with_one_seed_and_judged_by_what_was_settled_before() -> None:
    wanted = {f"{name}.{made}" for name, of in SETS.items() for made in EXPECTED if made != "wrong" or of.wrong}
    assert set(RUNS) == wanted
    assert {run["seed"] for run in RUNS.values()} == {2}
    for run in RUNS.values():
        assert run["frozen"] == frozen(run["data"]), "thresholds or rules were changed: all spaces must be made anew"


@pytest.mark.parametrize("key", RUNS)
def test_the_verdict_tells_a_good_space_from_a_broken_one_and_names_the_reason(key: str) -> None:
    again = judged(RUNS[key])
    assert again == RUNS[key]
    assert as_made(again), again["sentences"] or again["failed"]


def test_the_table_is_that_of_the_measures() -> None:
    assert (BENCHMARKS / "results" / "broken.md").read_text() == table(RUNS)
