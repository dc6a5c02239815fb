"""Linear probe: the optimum of a convex problem, whoever finds it."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from pipeline.probes.linear import fit_linear


def objective(features, labels, coefficients, offsets, regularization):
    logits = features @ coefficients.T + offsets
    loss = (logsumexp(logits, axis=1) - logits[np.arange(len(labels)), labels]).mean()
    return loss + regularization / 2 * np.square(coefficients).sum()


@pytest.mark.parametrize("regularization", [1e-4, 1e-2])
def test_the_probe_is_scikit_learns_optimum_on_digits(regularization):
    features, labels = load_digits(return_X_y=True)
    train, test = features[:1400].astype(np.float32), features[1400:].astype(np.float32)
    probe = fit_linear(train, labels[:1400], regularization)
    scaler = StandardScaler().fit(train.astype(np.float64))
    oracle = LogisticRegression(C=1 / (1400 * regularization), tol=1e-8, max_iter=5000)
    oracle.fit(scaler.transform(train.astype(np.float64)), labels[:1400])
    agreement = (probe.predict(test) == oracle.predict(scaler.transform(test.astype(np.float64)))).mean()
    assert probe.converged
    assert agreement > 0.99
    scaled = scaler.transform(train.astype(np.float64))
    ours = objective(scaled, labels[:1400], probe.classifier.coef_, probe.classifier.intercept_, regularization)
    best = objective(scaled, labels[:1400], oracle.coef_, oracle.intercept_, regularization)
    assert best <= ours + 1e-9
    assert ours < best * 1.001


def test_the_regularization_is_the_declared_one_against_the_mean_loss():
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, 90)
    features = (random.normal(size=(90, 2)) + labels[:, None]).astype(np.float32)
    probe = fit_linear(features, labels, 0.1)
    scaled = (features.astype(np.float64) - features.mean(0)) / features.std(0)

    def loss(flat):
        return objective(scaled, labels, flat[:6].reshape(3, 2), flat[6:], 0.1)

    best = minimize(loss, np.zeros(9), tol=1e-12)
    found = loss(np.concatenate([probe.classifier.coef_.ravel(), probe.classifier.intercept_]))
    assert found == pytest.approx(best.fun, abs=1e-5)
    twice = fit_linear(np.tile(features, (2, 1)), np.tile(labels, 2), 0.1)  # the same data twice is the same problem
    np.testing.assert_allclose(twice.classifier.coef_, probe.classifier.coef_, atol=1e-3)


def test_units_of_a_feature_change_no_answer():
    random = np.random.default_rng(1)
    labels = random.integers(0, 2, 80)
    features = (random.normal(size=(80, 4)) + labels[:, None]).astype(np.float32)
    moved = (features * np.array([1, 100, 0.01, 7]) + np.array([0, 5, 1, -3])).astype(np.float32)
    assert (
        fit_linear(features, labels, 0.01).predict(features) == fit_linear(moved, labels, 0.01).predict(moved)
    ).all()


def test_a_constant_dimension_is_ignored():
    random = np.random.default_rng(2)
    labels = random.integers(0, 2, 60)
    features = (random.normal(size=(60, 3)) + 2 * labels[:, None]).astype(np.float32)
    wide = np.hstack([features, np.full((60, 1), 1e4, np.float32)])
    probe = fit_linear(wide, labels, 0.01)
    assert np.isfinite(probe.classifier.coef_).all()
    assert (probe.predict(wide) == fit_linear(features, labels, 0.01).predict(features)).all()


def test_a_fit_that_stops_early_says_so():
    features, labels = load_digits(return_X_y=True)
    assert not fit_linear(features.astype(np.float32), labels, 1e-9, iterations=2).converged


def test_the_training_rows_are_not_changed():
    features = np.random.default_rng(3).normal(size=(30, 2)).astype(np.float32)
    before = features.copy()
    features.flags.writeable = False
    fit_linear(features, np.arange(30) % 2, 0.1).predict(features)
    assert (features == before).all()
