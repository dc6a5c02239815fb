"""Drift: how often it is told of samples of one distribution, that real shifts are told, and older cards."""

import collections

import numpy as np
import pytest

from pipeline.drift import drift_of_channels, drift_of_vectors, summary

SEEDS = 40
KINDS = 9
"""places that the rows of ``places`` lie in"""
CENTRES = np.random.default_rng(9).normal(size=(KINDS, 12))


def cloud(random, n):
    return (random.normal(size=(n, 8)) * np.linspace(1, 3, 8) + 2).astype(np.float32)


def places(random, n):
    """Rows that lie in few places, some of them tight: their nearest distances are far from independent."""
    at = random.integers(KINDS, size=n)
    return (CENTRES[at] + (0.02 + 0.3 * (at % 2))[:, None] * random.normal(size=(n, 12))).astype(np.float32)


def line(random, n):
    """Rows of one direction and a little of others, as of a collapsed space."""
    along = np.maximum(random.normal(size=(n, 1)) + 1, 0) * np.linspace(0.1, 1, 16)
    return (along + 0.05 * random.normal(size=(n, 16)) + 0.5).astype(np.float32)


def alarms(make, n, m, older=False):
    """How often each measure is told to have drifted, of new draws and new references."""
    told = collections.Counter()
    for seed in range(SEEDS):
        random = np.random.default_rng(seed)
        reference = summary(make(random, m))
        if older:
            reference = reference.model_copy(update={"errors": None})
        for each in drift_of_vectors(make(random, n), reference):
            told[each.measure] += each.beyond
            assert each.found.low is None or each.found.low >= 0
    return told


@pytest.mark.parametrize("make", [cloud, places, line])
@pytest.mark.parametrize(("n", "m"), [(3, 37), (12, 37), (39, 37), (300, 37), (39, 300), (300, 300)])
def test_draws_of_one_distribution_drift_no_oftener_than_their_interval_says(make, n, m):
    told = alarms(make, n, m)
    assert set(told) == {"mean.h", "variance.h", "effective_rank.h", "nearest.h"}
    assert max(told.values()) <= 6, told  # of 40 at 5 %: one measure in 300 would have more by chance
    assert sum(told.values()) <= 14


@pytest.mark.parametrize("make", [cloud, places, line])
@pytest.mark.parametrize(("n", "m"), [(12, 37), (39, 37), (300, 37)])
def test_an_older_card_alarms_no_oftener(make, n, m):
    assert max(alarms(make, n, m, older=True).values()) <= 6


def test_an_older_card_that_cannot_judge_few_rows_says_so():
    random = np.random.default_rng(0)
    reference = summary(cloud(random, 37)).model_copy(update={"errors": None})
    found = {each.measure: each for each in drift_of_vectors(cloud(random, 20), reference)}
    assert "not judged" in found["variance.h"].line()
    assert not found["variance.h"].beyond


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("make", [cloud, places])
def test_a_shift_is_still_found_with_a_reference_of_37_rows(make, older):
    random = np.random.default_rng(0)
    reference = summary(make(random, 37))
    if older:
        reference = reference.model_copy(update={"errors": None})

    def told(rows):
        return {each.measure for each in drift_of_vectors(rows, reference) if each.beyond}

    rows = make(random, 300)
    assert "mean.h" in told(rows + 1)
    assert "variance.h" in told(rows * 2)
    flat = rows.copy()
    flat[:, 2:] = 2
    assert "effective_rank.h" in told(flat)
    assert "nearest.h" in told(rows[np.arange(300) % 5])  # five samples, copied


def test_rows_that_are_copies_have_a_nearest_distance_of_0_and_no_less():
    rows = np.repeat(cloud(np.random.default_rng(0), 20), 20, axis=0)
    (near,) = [each for each in drift_of_vectors(rows, summary(rows)) if each.measure == "nearest.h"]
    assert 0 <= near.found.low <= near.found.value < 1e-6
    assert not near.beyond


@pytest.mark.parametrize(
    ("rows", "kept", "said"),
    [(120, 26, "the reference is of 26 rows; at least 32"), (20, 100, "20 rows; at least 32"), (20, 26, "20 rows")],
)
def test_the_side_that_lacks_rows_is_named(rows, kept, said):
    random = np.random.default_rng(0)
    found = {each.measure: each for each in drift_of_vectors(cloud(random, rows), summary(cloud(random, kept)))}
    for name in ("effective_rank.h", "nearest.h"):
        assert said in found[name].line()


@pytest.mark.parametrize(("n", "kept"), [(4, 100), (300, 50), (300, 300)])
def test_means_of_channels_drift_no_oftener_than_their_interval_says(n, kept):
    """The channels of the reference were measured on samples as well."""
    told = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        levels = random.normal(size=kept)
        means = random.normal(size=n)
        moments = np.stack([means, np.square(means) + 1], 1)[:, :, None]
        mean, _ = drift_of_channels(moments, [levels.mean()], [levels.std()], kept)
        told += mean.beyond
    assert told <= 20  # of 200 at 5 %
