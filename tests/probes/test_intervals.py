"""Intervals against scipy, scikit-learn and simulated draws, and what they must never do."""

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import mean_absolute_error, r2_score

from pipeline.probes.intervals import explained, mean_error, over_draws, wilson


@given(st.data(), st.integers(1, 100_000), st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_is_that_of_scipy(data, count, confidence):
    successes = data.draw(st.integers(0, count))
    oracle = binomtest(successes, count).proportion_ci(confidence_level=confidence, method="wilson")
    assert wilson(successes, count, confidence) == pytest.approx((oracle.low, oracle.high), abs=1e-12)


@given(st.data(), st.integers(1, 1000))
def test_the_interval_holds_the_share_stays_inside_and_has_a_width(data, count):
    successes = data.draw(st.integers(0, count))
    low, high = wilson(successes, count)
    assert 0 <= low <= successes / count <= high <= 1
    assert high > low


@pytest.mark.parametrize(("successes", "count", "confidence"), [(0, 0, 0.95), (-1, 3, 0.95), (4, 3, 0.95), (1, 3, 1.0)])
def test_impossible_counts_are_refused(successes, count, confidence):
    with pytest.raises(ValueError, match="must"):
        wilson(successes, count, confidence)


@given(st.integers(0, 10_000), st.integers(2, 9), st.integers(2, 60), st.floats(0, 1))
def test_the_interval_over_draws_holds_the_mean_and_stays_inside(seed, draws, rows, level):
    right = np.random.default_rng(seed).random((draws, rows)) < level
    mean, low, high = over_draws(right)
    assert mean == right.mean()
    assert 0 <= low <= mean <= high <= 1
    assert high > low


def test_draws_that_agree_have_the_interval_of_their_rows():
    right = np.tile(np.arange(400) % 4 > 0, (5, 1))
    assert over_draws(right)[1:] == pytest.approx(wilson(300, 400), abs=1e-3)
    assert over_draws(np.ones((5, 400), bool))[1:] == pytest.approx(wilson(400, 400), abs=1e-12)


def covered(spread_of_draws, spread_of_rows, draws=5, rows=200, trials=1500):
    """How often the interval holds the mean accuracy, where draws and rows differ in difficulty (a probit model)."""
    random = np.random.default_rng(0)

    def answers(draws, rows):
        level = 0.7 + spread_of_draws * random.normal(size=(draws, 1)) + spread_of_rows * random.normal(size=(1, rows))
        return level + random.normal(size=(draws, rows)) > 0

    truth = NormalDist().cdf(0.7 / np.sqrt(1 + spread_of_draws**2 + spread_of_rows**2))
    found = [over_draws(answers(draws, rows)) for _ in range(trials)]
    return np.mean([low <= truth <= high for _, low, high in found])


@pytest.mark.parametrize(("of_draws", "of_rows"), [(0.0, 3.0), (0.3, 0.0), (0.1, 1.0), (0.3, 1.0)])
def test_intervals_over_draws_cover_as_often_as_they_say(of_draws, of_rows):
    assert 0.93 <= covered(of_draws, of_rows) <= 0.995


@given(st.integers(0, 10_000), st.integers(3, 80), st.floats(0, 3))
def test_r2_and_the_mean_error_are_those_of_scikit_learn(seed, n, noise):
    random = np.random.default_rng(seed)
    truth = random.normal(size=n) * 9 + 100
    guess = truth + noise * random.normal(size=n)
    value, low, high = explained(truth - guess, truth - truth.mean())
    assert value == pytest.approx(r2_score(truth, guess), abs=1e-9)
    assert low <= value <= high <= 1
    value, low, high = mean_error(truth - guess)
    assert value == pytest.approx(mean_absolute_error(truth, guess), abs=1e-12)
    assert 0 <= low <= value <= high


@pytest.mark.parametrize("noise", [0.3, 1.0, 2.0])
def test_intervals_of_r2_and_of_the_mean_error_are_those_of_a_bootstrap(noise):
    random = np.random.default_rng(0)
    truth = random.normal(size=600)
    guess = truth + noise * random.normal(size=600)
    picks = random.integers(0, 600, (3000, 600))
    for measured, oracle in (
        (explained(truth - guess, truth - truth.mean()), [r2_score(truth[pick], guess[pick]) for pick in picks]),
        (mean_error(truth - guess), [np.abs(truth[pick] - guess[pick]).mean() for pick in picks]),
    ):
        low, high = np.quantile(oracle, [0.025, 0.975])
        assert measured[1:] == pytest.approx((low, high), abs=0.12 * (high - low))


def test_one_row_has_no_width():
    assert mean_error(np.array([-2.0])) == (2.0, 2.0, 2.0)
