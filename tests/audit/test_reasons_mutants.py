"""Wrong rules of diagnosis, each killed by a law that the right rules keep."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import test_reasons as reasons  # noqa: E402
from mutants import Mutant, Wrong, applied, broken  # noqa: E402

WRONG = (
    Wrong(
        "a collapse does not silence what comes after it",
        "reasons",
        "        if found:\n            return found",
        "        if found:\n            continue",
        reasons.test_one_point_is_a_full_collapse_and_nothing_else_is_told,
    ),
    Wrong(
        "a space that was narrow before training counts as collapsed",
        "reasons",
        "value >= control / 10",
        "False",
        reasons.test_a_narrow_untrained_space_is_no_collapse,
    ),
    Wrong(
        "few directions count, however few there were before",
        "reasons",
        "high >= FEWER * control",
        "False",
        reasons.test_a_narrow_untrained_space_is_no_collapse,
    ),
    Wrong(
        "whoever reads the label better and matches no view is untrained",
        "reasons",
        "if any(of.gained(name) for name in names):",
        "if False:",
        reasons.test_what_is_better_at_one_of_both_is_not_untrained,
    ),
    Wrong(
        "a detail is a shortcut though the label is read",
        "reasons",
        "lacking or all(of.outdone(label, name) for label in labels)",
        "True",
        reasons.test_a_detail_beside_a_label_that_is_read_is_no_shortcut,
    ),
    Wrong(
        "an invariance that h does not have explains what it lacks",
        "reasons",
        "if still is None or still >= STILL:",
        "if False:",
        lambda: reasons.test_it_takes_a_cost_an_achieved_invariance_and_a_lack({"movement__grayscale__h": 0.9}),
    ),
    Wrong(
        "a control counts as declared",
        "reasons",
        'name.startswith(f"{BOUNDARY}.")',
        'name.startswith("movement.noise")',
        reasons.test_a_declared_invariance_that_moves_h_far_is_not_achieved,
    ),
    Wrong(
        "an interval that touches is a difference",
        "evidence",
        'low = self.low(f"{GAIN}.{readable_of(name)}")',
        'low = self.high(f"{GAIN}.{readable_of(name)}")',
        reasons.test_an_interval_that_touches_is_no_difference,
    ),
    Wrong(
        "whoever is ahead of cheap probes is outdone all the same",
        "evidence",
        "return not ahead and own",
        "return own",
        reasons.test_a_detail_that_training_has_added_more_of_than_a_label_that_cheap_probes_read_as_well_is_the_shortcut,
    ),
    Wrong(
        "what was added less outdoes the label",
        "evidence",
        "and least > own",
        "",
        reasons.test_a_detail_that_training_has_added_more_of_than_a_label_that_cheap_probes_read_as_well_is_the_shortcut,
    ),
    Wrong(
        "a label below the pixels is not lacking",
        "evidence",
        "return less or not self.gained(name)",
        "return not self.gained(name)",
        reasons.test_a_label_below_the_pixels_is_lacking_though_it_has_gained_and_a_cost_explains_nothing_then,
    ),
)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_a_law_kills_what_the_right_version_passes(wrong: Wrong) -> None:
    assert not broken(wrong.law)
    with applied(Mutant(wrong.name, "audit", f"pipeline.audit.{wrong.module}", wrong.old, wrong.new)):
        assert broken(wrong.law), f"survived: {wrong.name}"
