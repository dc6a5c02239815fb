"""Linear probe: the optimum of a convex problem, whoever finds it; a regularization chosen without the test rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from pipeline.parallel import in_turn
from pipeline.probes import linear, standard, strata, whitening
from pipeline.probes.linear import GRID, UNCHOSEN, fit, fit_linear
from pipeline.probes.softmax import Solution, cross_entropy, solve
from pipeline.probes.standard import standardise


def objective(features, labels, coefficients, offsets, regularization):
    logits = features @ coefficients + offsets
    loss = (logsumexp(logits, axis=1) - logits[np.arange(len(labels)), labels]).mean()
    return loss + regularization / 2 * np.square(coefficients).sum()


def digits(count=1400):
    features, labels = load_digits(return_X_y=True)
    return (features[:count].astype(np.float32), labels[:count]), (features[1400:].astype(np.float32), labels[1400:])


def scaled(features):
    return StandardScaler().fit(features.astype(np.float64))


def grouped(n, dimensions, classes, seed=0, apart=1.0):
    """Rows of a spectrum that falls over four orders, about the centres of their classes."""
    random = np.random.default_rng(seed)
    labels = random.permutation(np.arange(n) % classes)
    centres = apart * random.normal(size=(classes, dimensions))
    mix = np.linalg.qr(random.normal(size=(dimensions, dimensions)))[0] * np.geomspace(1, 1e-2, dimensions)
    return ((random.normal(size=(n, dimensions)) @ mix + 0.1 * centres[labels]) * 3 + 5).astype(np.float32), labels


def assert_optimal(features, labels, regularization, rel=1e-4):
    """Not above the loss that scikit-learn ends at, but for a share ``rel``; classes more than two."""
    probe = fit_linear(features, labels, regularization)
    rows = scaled(features).transform(features.astype(np.float64))
    oracle = LogisticRegression(C=1 / (len(rows) * regularization), tol=1e-8, max_iter=5000).fit(rows, labels)
    best = objective(rows, labels, oracle.coef_.T, oracle.intercept_, regularization)
    ours = objective(rows, labels, probe.weights.astype(float), probe.offsets, regularization)
    assert probe.converged
    assert best <= ours + 1e-6
    assert ours <= best * (1 + rel) + 1e-6
    return probe, oracle


@pytest.mark.parametrize("regularization", [1e-4, 1e-2, 1.0])
def test_the_probe_is_scikit_learns_optimum_on_digits(regularization):
    (train, labels), (test, _) = digits()
    probe, oracle = assert_optimal(train, labels, regularization, 1e-3)
    agreement = (probe.predict(test) == oracle.predict(scaled(train).transform(test.astype(np.float64)))).mean()
    assert agreement > 0.99


@pytest.mark.parametrize(("n", "dimensions"), [(400, 6), (40, 60), (900, 800), (120, 1000)])
def test_tall_wide_and_very_wide_features_have_their_optimum(n, dimensions):
    assert_optimal(*grouped(n, dimensions, 4), 1e-2)


def test_wide_features_of_many_rows_are_whitened_by_their_leading_directions(monkeypatch):
    monkeypatch.setattr(whitening, "WHOLE", 20)
    monkeypatch.setattr(whitening, "LEADING", 8)
    features, labels = grouped(300, 50, 3)
    assert whitening.whitening(features).directions.shape == (50, 8)
    assert_optimal(features, labels, 1e-3)


def test_few_wide_rows_are_fitted_in_their_span_with_the_same_result(monkeypatch):
    features, labels = grouped(50, 200, 3)
    rows = standardise(features, in_turn)
    few = fit(rows, labels, whitening.whitening(rows.rows), in_turn, regularization=1e-2)
    monkeypatch.setattr(linear, "in_their_span", lambda rows: None)
    whole = fit(rows, labels, whitening.whitening(rows.rows), in_turn, regularization=1e-2)
    np.testing.assert_allclose(few.weights, whole.weights, atol=1e-2 * np.abs(whole.weights).max())


def test_whitening_makes_the_covariance_that_of_the_identity():
    features, _ = grouped(2000, 12, 3)
    rows = standardise(features, in_turn).rows
    white = whitening.whitening(rows)
    turned = white.scaled(np.eye(12, dtype=np.float32), 1e-12, -0.5)
    covariance = turned.T @ (rows.T @ rows / len(rows)) @ turned
    np.testing.assert_allclose(covariance * whitening.CURVATURE, np.eye(12), atol=1e-2)
    back = white.scaled(turned, 1e-12, 0.5)
    np.testing.assert_allclose(back, np.eye(12), atol=1e-3)


def test_white_coordinates_need_few_steps_whatever_the_spectrum(monkeypatch):
    features, labels = grouped(1000, 40, 5)
    calls, real = [], linear.solve.__globals__["cross_entropy"]
    monkeypatch.setitem(linear.solve.__globals__, "cross_entropy", lambda *given: calls.append(0) or real(*given))
    fit_linear(features, labels, 1e-3)
    assert len(calls) < 40


@given(st.integers(0, 10_000), st.integers(2, 5), st.integers(1, 6), st.integers(1, 60))
def test_the_gradient_is_that_of_differences(seed, classes, dimensions, n):
    random = np.random.default_rng(seed)
    rows = random.normal(size=(n, dimensions)).astype(np.float32)
    codes = random.integers(0, classes, n)
    weights, offsets = random.normal(size=(dimensions, classes)), random.normal(size=classes)
    value, slope, lean = cross_entropy(rows, codes, weights.astype(np.float32), offsets, in_turn)
    assert value == pytest.approx(objective(rows.astype(float), codes, weights, offsets, 0), rel=1e-5, abs=1e-6)
    direction, shift, step = random.normal(size=weights.shape), random.normal(size=classes), 1e-5
    ends = [
        objective(rows.astype(float), codes, weights + sign * step * direction, offsets + sign * step * shift, 0)
        for sign in (1, -1)
    ]
    expected = (ends[0] - ends[1]) / (2 * step)
    assert float((slope * direction).sum() + (lean * shift).sum()) == pytest.approx(expected, rel=1e-3, abs=1e-4)


def test_blocks_and_threads_give_the_same_bits(monkeypatch):
    features, labels = grouped(900, 20, 4)
    monkeypatch.setattr(standard, "PART", 1000)
    monkeypatch.setattr(standard, "LEAST", 10)
    found = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads, "blas"):
            found.append(fit_linear(features, labels))
    for probe in found[1:]:
        assert (probe.weights == found[0].weights).all()
        assert (probe.offsets == found[0].offsets).all()


def test_the_regularization_is_the_declared_one_against_the_mean_loss():
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, 90)
    features = (random.normal(size=(90, 2)) + labels[:, None]).astype(np.float32)
    probe = fit_linear(features, labels, 0.1)
    rows = (features.astype(np.float64) - features.mean(0)) / features.std(0)

    def loss(flat):
        return objective(rows, labels, flat[:6].reshape(2, 3), flat[6:], 0.1)

    best = minimize(loss, np.zeros(9), tol=1e-12)
    assert loss(np.concatenate([probe.weights.ravel(), probe.offsets])) == pytest.approx(best.fun, abs=1e-5)
    twice = fit_linear(np.tile(features, (2, 1)), np.tile(labels, 2), 0.1)  # the same data twice is the same problem
    np.testing.assert_allclose(twice.weights, probe.weights, atol=1e-3)


def test_two_classes_are_the_same_problem_as_many():
    features, labels = grouped(200, 4, 2)
    probe = fit_linear(features, labels, 1e-2)
    oracle = LogisticRegression(C=2 / (200 * 1e-2), tol=1e-8, max_iter=5000)  # one vector, of twice the length
    oracle.fit(scaled(features).transform(features.astype(float)), labels)
    np.testing.assert_allclose(probe.weights[:, 1] - probe.weights[:, 0], oracle.coef_[0], atol=5e-3)


def test_a_class_that_no_training_row_has_is_never_answered():
    features, labels = grouped(200, 4, 3)
    codes = np.array([1, 4, 7])[labels]
    assert set(fit_linear(features, codes).predict(features).tolist()) <= {1, 4, 7}
    assert (fit_linear(features, codes, 1e-2).predict(features) == codes[[0]]).any()


def test_the_regularization_is_that_of_most_right_answers_on_the_held_out_rows():
    (train, labels), _ = digits()
    random = np.random.default_rng(0)
    noisy = (train + 6 * random.normal(size=train.shape)).astype(np.float32)
    inside, outside = strata.held_out(labels)
    probe = fit_linear(noisy, labels)
    rows = scaled(noisy).transform(noisy.astype(float))
    right = {}
    for regularization in GRID:
        oracle = LogisticRegression(C=1 / (len(inside) * regularization), max_iter=3000)
        oracle.fit(rows[inside], labels[inside])
        right[regularization] = (oracle.predict(rows[outside]) == labels[outside]).mean()
    assert right[probe.regularization] >= max(right.values()) - 0.008  # two rows: its own search ends a little earlier


def test_the_fit_is_never_far_below_the_best_of_the_grid_on_new_rows():
    features, labels = grouped(1500, 60, 6, seed=3, apart=1.5)

    def right(regularization):
        probe = fit_linear(features[:700], labels[:700], regularization)
        return (probe.predict(features[700:]) == labels[700:]).mean()

    chosen, best = right(None), max(map(right, GRID))
    assert chosen > best - 0.02


def test_what_is_chosen_is_fitted_to_all_rows():
    features, labels = grouped(300, 5, 3, apart=0.5)
    chosen = fit_linear(features, labels)
    again = fit_linear(features, labels, chosen.regularization)
    np.testing.assert_allclose(chosen.weights, again.weights, atol=1e-2 * np.abs(again.weights).max())
    assert chosen.chosen


def test_no_second_row_of_any_class_leaves_the_regularization_unchosen():
    features, _ = grouped(4, 6, 2)
    probe = fit_linear(features, np.arange(4))
    assert (probe.chosen, probe.regularization) == (False, UNCHOSEN)
    assert (probe.predict(features) == np.arange(4)).all()


def test_units_of_a_feature_change_no_answer():
    random = np.random.default_rng(1)
    labels = random.integers(0, 2, 80)
    features = (random.normal(size=(80, 4)) + labels[:, None]).astype(np.float32)
    moved = (features * np.array([1, 100, 0.01, 7]) + np.array([0, 5, 1, -3])).astype(np.float32)
    assert (
        fit_linear(features, labels, 0.01).predict(features) == fit_linear(moved, labels, 0.01).predict(moved)
    ).all()


@pytest.mark.parametrize("scale", [1e-40, 1e-30, 1e30, 1e37])
def test_no_scale_of_the_features_is_too_small_or_too_large(scale):
    features, labels = grouped(90, 6, 3, apart=2)
    scaled = (features * scale).astype(np.float32)
    assert np.isfinite(scaled).all()
    probe, plain = fit_linear(scaled, labels, 0.01), fit_linear(features, labels, 0.01)
    np.testing.assert_allclose(probe.weights, plain.weights, rtol=1e-2, atol=1e-3)  # 1e-40 has few digits
    assert (probe.predict(scaled) == plain.predict(features)).mean() > 0.95
    assert fit_linear(features, labels, 0.01).standard.orders is None  # usual features are taken as they are


@pytest.mark.parametrize("level", [0.0, 1.0, 1e4, -1e30, 3e38])
def test_a_constant_dimension_is_ignored(level):
    random = np.random.default_rng(2)
    labels = random.integers(0, 2, 60)
    features = (random.normal(size=(60, 3)) + 2 * labels[:, None]).astype(np.float32)
    wide = np.hstack([features, np.full((60, 1), level, np.float32)])
    probe = fit_linear(wide, labels, 0.01)
    assert np.isfinite(probe.weights).all()
    assert (probe.predict(wide) == fit_linear(features, labels, 0.01).predict(features)).all()


def test_one_dimension_is_enough():
    features, labels = grouped(90, 1, 3, apart=30)
    assert_optimal(features, labels, 1e-3)


def test_a_start_changes_how_soon_and_not_where():
    features, labels = grouped(200, 6, 3)
    rows = standardise(features, in_turn).rows
    white = whitening.whitening(rows)
    cold = solve(rows, labels, 3, 1e-2, white, in_turn)
    far = Solution(np.ones((6, 3), np.float32), np.ones(3), True)
    warm = solve(rows, labels, 3, 1e-2, white, in_turn, far)
    np.testing.assert_allclose(warm.weights - warm.weights.mean(1, keepdims=True), cold.weights, atol=2e-3)
    again = solve(rows, labels, 3, 1e-2, white, in_turn, cold, iterations=1)
    np.testing.assert_allclose(again.weights, cold.weights, atol=2e-3)


def test_a_fit_that_stops_early_says_so():
    (train, labels), _ = digits()
    assert not fit_linear(train, labels, 1e-9, iterations=2).converged


def test_the_training_rows_are_not_changed():
    features = np.random.default_rng(3).normal(size=(30, 2)).astype(np.float32)
    before = features.copy()
    features.flags.writeable = False
    fit_linear(features, np.arange(30) % 2).predict(features)
    assert (features == before).all()
