"""Hubness against scikit-learn's neighbours and scipy's skewness, and on graphs whose hubs are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, skew
from sklearn.neighbors import NearestNeighbors

from pipeline.audit.estimate import NotComputable
from pipeline.audit.hubness import antihubs, occurrences, skewness
from pipeline.neighbours import nearest_others, unit


def near(rows, k):
    return nearest_others(rows, np.arange(len(rows)), k)


@given(st.integers(1, 10), st.integers(2, 20), st.integers(0, 999))
def test_occurrences_and_their_skewness_are_scikit_learns_and_scipys(k, d, seed):
    rows = unit(np.random.default_rng(seed).normal(size=(50, d)))
    graph = NearestNeighbors(n_neighbors=k, metric="cosine", algorithm="brute").fit(rows).kneighbors_graph()
    expected = np.asarray(graph.sum(axis=0)).ravel()
    counts = occurrences(near(rows, k))
    np.testing.assert_array_equal(counts, expected)
    assert counts.sum() == 50 * k
    assert skewness(counts).value == pytest.approx(skew(expected))
    assert antihubs(counts).value == pytest.approx((expected == 0).mean())


def test_a_star_has_one_hub_and_its_rest_is_never_found():
    star = np.where(np.arange(20) == 0, 1, 0)[:, None]  # all name row 0, which names row 1
    counts = occurrences(star)
    assert counts.tolist() == [19, 1] + 18 * [0]
    assert antihubs(counts).value == 18 / 20
    assert skewness(counts).value == pytest.approx(skew(counts))


def test_a_ring_has_neither():
    ring = np.stack([(np.arange(12) + 1) % 12, (np.arange(12) - 1) % 12], axis=1)
    found = skewness(occurrences(ring))
    assert (found.value, found.low, found.high) == (0, 0, 0)
    assert found.note == "every row is a nearest one equally often"
    assert antihubs(occurrences(ring)).value == 0


def test_hubs_grow_with_the_number_of_dimensions():
    random = np.random.default_rng(0)
    few, many = (occurrences(near(unit(random.random((1500, d))), 10)) for d in (3, 200))
    assert skewness(few).high < 1 < skewness(many).low
    assert antihubs(few).high < antihubs(many).low


def test_the_error_of_the_skewness_is_that_of_deleting_one_count_after_the_other():
    counts = np.random.default_rng(0).poisson(3, 60).astype(np.float64)
    without = np.array([skew(np.delete(counts, i)) for i in range(60)])
    expected = np.sqrt(59 / 60 * np.square(without - without.mean()).sum())
    found = skewness(counts)
    assert (found.high - found.low) / 2 / norm.ppf(0.975) == pytest.approx(expected)


def test_too_few_rows_are_a_reason():
    with pytest.raises(NotComputable, match="2 rows"):
        skewness(np.ones(2))
    with pytest.raises(NotComputable, match="1 rows"):
        antihubs(np.ones(1))
