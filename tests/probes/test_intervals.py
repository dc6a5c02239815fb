"""Wilson's interval against scipy, and what it must never do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from pipeline.probes.intervals import wilson


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
