"""Similarities of positives and negatives against the whole matrix; purity and loss against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from pipeline.audit import pairs
from pipeline.audit.estimate import NotComputable
from pipeline.audit.loss import loss_below_log_k
from pipeline.audit.purity import neighbour_purity
from pipeline.audit.similarity import BINS, QUANTILES, negative_similarity, positive_similarity
from pipeline.neighbours import nearest_others, unit


def views(n, d, seed=0, noise=0.3):
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, d))
    return unit(x + noise * random.normal(size=(n, d))), unit(x + noise * random.normal(size=(n, d)))


@given(st.integers(3, 60), st.integers(2, 6), st.integers(0, 999))
def test_positives_are_the_diagonal_and_negatives_all_else(n, d, seed):
    a, b = views(n, d, seed)
    matrix = np.clip(a.astype(np.float64) @ b.T, -1, 1)
    others = matrix[~np.eye(n, dtype=bool)]
    positive, negative = positive_similarity(a, b), negative_similarity(a, b)
    assert positive.mean.value == pytest.approx(np.diag(matrix).mean(), abs=1e-6)
    assert negative.mean.value == pytest.approx(others.mean(), abs=1e-6)
    assert positive.histogram.sum() == n
    assert negative.histogram.sum() == n * (n - 1)
    for share in QUANTILES:
        assert positive.quantiles[share] == pytest.approx(np.quantile(np.diag(matrix), share), abs=1e-6)
        oracle = np.quantile(others, share, method="inverted_cdf")
        assert negative.quantiles[share] == pytest.approx(oracle, abs=2e-4)


def test_blocks_change_nothing(monkeypatch):
    a, b = views(50, 3)
    whole = negative_similarity(a, b)
    monkeypatch.setattr(pairs, "ENTRIES", 7 * 50)
    parts = negative_similarity(a, b)
    assert parts.mean.value == pytest.approx(whole.mean.value, rel=1e-9)
    assert np.abs(parts.histogram - whole.histogram).sum() <= 2  # a product's last bit may cross a bin's edge


def test_a_fully_collapsed_space_has_equal_positives_and_negatives():
    x = unit(np.ones((20, 4)))
    assert positive_similarity(x, x).mean.value == pytest.approx(1, abs=1e-6)
    assert negative_similarity(x, x).mean.value == pytest.approx(1, abs=1e-6)
    assert negative_similarity(x, x).histogram[BINS - 1] == 380


def test_the_interval_of_the_negatives_is_that_of_deleting_one_sample_after_the_other():
    a, b = views(40, 3)
    b = unit(b * [1, 0.3, 2] + [0.5, 0, 0])  # a and b unlike, so that rows and columns of the matrix differ
    found = negative_similarity(a, b).mean
    without = [negative_similarity(np.delete(a, i, 0), np.delete(b, i, 0)).mean.value for i in range(40)]
    error = np.sqrt(39 / 40 * np.square(without - np.mean(without)).sum())
    assert found.high - found.value == pytest.approx(1.959964 * error, rel=1e-3)


def test_nineteen_of_twenty_intervals_of_the_negatives_hold_the_true_mean():
    def draw(n, seed):
        random = np.random.default_rng(seed)
        x = random.normal(size=(n, 3)) + 0.7 * np.eye(3)[0]
        return unit(x), unit(x + 0.2 * random.normal(size=(n, 3)))

    truth = np.mean([negative_similarity(*draw(2000, 5000 + seed)).mean.value for seed in range(5)])
    found = [negative_similarity(*draw(100, seed)).mean for seed in range(200)]
    assert 0.9 <= np.mean([each.low <= truth <= each.high for each in found]) <= 0.985


def test_too_few_rows_are_a_reason():
    a, b = views(2, 3)
    with pytest.raises(NotComputable, match="2 rows; at least 3"):
        negative_similarity(a, b)
    with pytest.raises(NotComputable, match="1 rows; at least 2"):
        positive_similarity(a[:1], b[:1])


@given(st.integers(1, 8), st.integers(0, 99))
def test_purity_is_the_share_of_scikit_learns_neighbours_with_the_same_label(k, seed):
    random = np.random.default_rng(seed)
    rows, labels = unit(random.normal(size=(40, 3))), random.integers(0, 3, 40)
    near = NearestNeighbors(n_neighbors=k, metric="cosine", algorithm="brute").fit(rows).kneighbors()[1]
    chosen = np.arange(0, 40, 2)
    found = neighbour_purity(nearest_others(rows, chosen, k), labels, chosen)
    assert found.value == pytest.approx((labels[near] == labels[:, None])[chosen].mean())
    assert found.count == 20


def test_purity_of_separate_classes_is_1_and_of_random_labels_the_sum_of_squared_shares():
    random = np.random.default_rng(0)
    labels = np.arange(900) % 3
    apart = unit(np.eye(3)[labels] + 0.01 * random.normal(size=(900, 3)))
    chosen = np.arange(900)
    assert neighbour_purity(nearest_others(apart, chosen, 10), labels, chosen).value == 1
    mixed = unit(random.normal(size=(900, 3)))
    assert neighbour_purity(nearest_others(mixed, chosen, 10), labels, chosen).value == pytest.approx(1 / 3, abs=0.03)


def test_the_loss_is_measured_from_log_k():
    found = loss_below_log_k({"loss": 1.0, "candidates": 8, "starts_at": 2.0794415})
    assert found.value == pytest.approx(1.0794415)
    assert (found.low, found.high, found.count) == (None, None, 8)


@pytest.mark.parametrize("start", [None, 0.5])
def test_a_loss_that_does_not_start_at_log_k_is_not_measured_from_it(start):
    found = loss_below_log_k({"loss": 0.25, "candidates": 8, "starts_at": start})
    assert found.value is None
    assert found.note == "not computable: the loss of this objective is not log K where nothing is told apart"


@pytest.mark.parametrize("loss", [None, float("nan"), "1.0"])
def test_a_loss_that_is_no_number_is_a_reason(loss):
    found = loss_below_log_k({"loss": loss, "candidates": 8, "starts_at": 2.0794415})
    assert found.value is None
    assert found.note == "not computable: the training's summary has no finite loss"
