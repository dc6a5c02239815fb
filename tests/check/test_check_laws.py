"""The check holds its laws and finds what is known; wrong versions of it do not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

import laws_of_check
from laws_of_check import LAWS
from mutants import Mutant, applied

from pipeline.check.features import KINDS, features

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("law", LAWS)
def test_a_law(law: str) -> None:
    LAWS[law]()


@pytest.mark.parametrize(("channels", "height", "width"), [(1, 1, 1), (4, 1, 1), (2, 3, 50), (3, 32, 32), (7, 40, 33)])
def test_features_of_any_channels_and_size_are_finite(channels: int, height: int, width: int) -> None:
    images = torch.rand(5, channels, height, width, generator=torch.Generator().manual_seed(0))
    found = features(images)
    assert tuple(found) == KINDS
    for rows in found.values():
        assert len(rows) == 5
        assert bool(rows.isfinite().all())
    assert found["all"].shape[1] == sum(found[kind].shape[1] for kind in KINDS if kind != "all")
    torch.testing.assert_close(features(images[2:3])["all"], found["all"][2:3])


CHECK = "pipeline.check."
MUTANTS = (
    Mutant(
        "views are of other pictures",
        "an_identity_keeps_everything",
        CHECK + "moving",
        "starts = [source[rows]] * count",
        "starts = [source[rows].flip(-1)] * count",
    ),
    Mutant(
        "mirrors start from the picture",
        "a_mirror_merges_left_and_right_and_erases_nothing",
        CHECK + "merged",
        "< 0.5",
        "< 0.0",
    ),
    Mutant(
        "a loss is not relative to chance",
        "grayscale_erases_a_colour_of_equal_grey",
        CHECK + "interval",
        "return (after - chance) / (before - chance).clamp",
        "return after / before.clamp",
    ),
    Mutant(
        "rows are resampled, not groups",
        "an_interval_is_paired",
        CHECK + "interval",
        "_, group = np.unique(groups, return_inverse=True)",
        "group = np.arange(len(groups))",
    ),
    Mutant(
        "a collapse to one class is a change of meaning",
        "turning_over_changes_the_meaning_of_up_and_down",
        CHECK + "transported",
        "or stays > MAJORITY",
        "or stays <= MAJORITY",
    ),
    Mutant(
        "ties are matches",
        "partners_are_found_at_chance_where_views_say_nothing",
        CHECK + "retrieval",
        "alone & (distance",
        "(distance",
    ),
    Mutant(
        "folds see themselves",
        "folds_predict_what_they_have_not_seen",
        CHECK + "reading",
        "gram - grams[fold], cross - crosses[fold]",
        "gram, cross",
    ),
    Mutant(
        "the control is not looked at",
        "a_label_dealt_out_at_random_was_never_readable",
        CHECK + "ground",
        "[1] > 0",
        "[1] > -1",
    ),
    Mutant(
        "a probability is not told from always",
        "a_probability_is_judged_as_declared_and_beside_it_as_always",
        CHECK + "moving",
        '.uniform("declared") < probability',
        '.uniform("declared") < 1',
    ),
    Mutant(
        "equal inputs collide",
        "inputs_that_collide_are_reported",
        CHECK + "collisions",
        "and before[left] != before[right]",
        "",
    ),
    Mutant(
        "unknown numbers are numbers",
        "what_cannot_be_read_says_why",
        CHECK + "labels",
        "np.isfinite(train), np.flatnonzero(np.isfinite(test))",
        "np.isfinite(train) | True, np.flatnonzero(np.isfinite(test) | True)",
    ),
    Mutant(
        "groups are cut through",
        "groups_stay_on_one_side",
        CHECK + "sample",
        "group[rows[cut]] == group[rows[cut - 1]]",
        "False",
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_law_kills(mutant: Mutant) -> None:
    laws_of_check.base.cache_clear()
    with applied(mutant), pytest.raises((AssertionError, RuntimeError, ValueError, IndexError, KeyError)):
        LAWS[mutant.kind]()
    laws_of_check.base.cache_clear()
