"""Every mutant is killed by a law, and every objective and every law has work to do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "objectives"))

from laws import LAWS
from mutants import MUTANTS, applied
from table import MEMBERS

pytestmark = pytest.mark.usefixtures("one_thread")
SEEDS = range(12)


def killer(kind: str) -> str | None:
    """The first law that fails for some seed, or None."""
    for seed in SEEDS:
        for name, law in LAWS.items():
            try:
                law(kind, seed)
            except AssertionError:
                return name
    return None


def test_every_objective_has_a_mutant():
    assert {mutant.kind for mutant in MUTANTS} == set(MEMBERS)


def test_names_are_told_apart():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("kind", MEMBERS)
def test_the_right_version_passes_the_seeds_that_judge_the_mutants(kind):
    assert killer(kind) is None


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_law_kills(mutant):
    with applied(mutant):
        found = killer(mutant.kind)
    assert found is not None, f"survived: {mutant.name}"
