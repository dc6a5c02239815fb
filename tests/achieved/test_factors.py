"""DCI and MIG in closed form: on importances and codes whose answer is known."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from pipeline.achieved.factors import (
    BINS,
    PENALTIES,
    completeness,
    disentanglement,
    factors,
    gap,
    information,
    lasso,
)

N = 2000


def independent(k, seed=0):
    """Numbers (N, k), every column a permutation of the same ranks: independent up to chance, equal shares exact."""
    random = np.random.default_rng(seed)
    return np.stack([random.permutation(N) for _ in range(k)], axis=1) / N


def test_one_direction_a_factor_is_one_and_all_alike_is_none():
    assert disentanglement(np.eye(4)) == completeness(np.eye(4)) == pytest.approx(1)
    assert disentanglement(np.ones((6, 4))) == pytest.approx(0)
    assert completeness(np.ones((6, 4))) == pytest.approx(0)


def test_a_factor_on_two_directions_costs_completeness_alone():
    """Two of four directions for each of two factors: 1 - log 2 / log 4 = 1/2, and every direction has one factor."""
    importance = np.repeat(np.eye(2), 2, axis=0)
    assert disentanglement(importance) == pytest.approx(1)
    assert completeness(importance) == pytest.approx(0.5)


def test_two_factors_on_one_direction_cost_disentanglement_alone():
    importance = np.repeat(np.eye(2), 2, axis=1)  # (2, 4): each direction holds two of four factors
    assert disentanglement(importance) == pytest.approx(0.5)
    assert completeness(importance) == pytest.approx(1)


def test_directions_count_by_their_importance():
    """A pure direction of weight 3 and one shared by both factors of weight 1: 3/4·1 + 1/4·0."""
    assert disentanglement(np.array([[3.0, 0.0], [0.5, 0.5]])) == pytest.approx(0.75)


def test_directions_and_factors_of_no_importance_change_nothing():
    importance = np.concatenate([np.eye(3), np.zeros((5, 3))])
    assert disentanglement(importance) == pytest.approx(1)
    assert completeness(np.concatenate([np.eye(3), np.zeros((3, 1))], axis=1)) == pytest.approx(1)
    assert disentanglement(np.zeros((3, 2))) == completeness(np.zeros((3, 2))) == 0


def test_a_direction_that_is_the_factor_shares_all_of_its_entropy():
    values = independent(2)
    shared, entropy = information(values, {"a": values[:, 0], "b": values[:, 1]})
    np.testing.assert_allclose(entropy, np.log(BINS))
    np.testing.assert_allclose(shared.diagonal(), np.log(BINS), rtol=1e-9)
    assert shared[0, 1] < 0.15  # the bias of a plug-in estimate: about (BINS - 1)² / 2N
    assert gap(shared, entropy) > 0.93


def test_a_factor_that_two_directions_tell_has_no_gap():
    values = independent(2)
    codes = np.concatenate([values, values], axis=1)
    shared, entropy = information(codes, {"a": values[:, 0], "b": values[:, 1]})
    assert gap(shared, entropy) == pytest.approx(0, abs=1e-12)


def test_the_gap_is_the_difference_over_the_entropy():
    shared = np.array([[1.0, 0.1], [0.4, 0.2], [0.3, 0.7]])
    assert gap(shared, np.array([2.0, 1.0])) == pytest.approx(((1.0 - 0.4) / 2 + (0.7 - 0.2) / 1) / 2)


def test_axis_aligned_codes_are_found_and_their_rotation_is_not():
    values = independent(4, seed=1)
    classes = (values[:, 3] * 3).astype(np.int64)
    columns = {"a": values[:, 0], "b": values[:, 1], "c": values[:, 2], "d": classes}
    aligned = values + 0.02 * np.random.default_rng(2).normal(size=values.shape)
    found = factors(aligned, columns)
    assert found.disentanglement > 0.9
    assert found.completeness > 0.9
    assert found.mig > 0.5
    # of three classes in order a line tells the outer ones (R² 2/3 each) and not the middle one
    assert found.informativeness["d"] == pytest.approx(4 / 9, abs=0.02)
    assert found.importance.argmax(axis=0).tolist() == [0, 1, 2, 3]
    turned = np.linalg.qr(np.random.default_rng(3).normal(size=(4, 4)))[0]
    mixed = factors((aligned - aligned.mean(axis=0)) @ turned, columns)
    assert mixed.disentanglement < found.disentanglement - 0.3
    assert mixed.mig < 0.3


def test_noise_informs_of_nothing():
    found = factors(np.random.default_rng(0).normal(size=(N, 6)), {"a": independent(1)[:, 0], "b": np.arange(N) % 3})
    assert max(found.informativeness.values()) < 0.05
    assert found.mig < 0.05


def test_a_constant_direction_is_no_nuisance():
    values = independent(2)
    codes = np.concatenate([values, np.ones((N, 1))], axis=1)
    found = factors(codes, {"a": values[:, 0], "b": values[:, 1]})
    assert found.importance[2].tolist() == [0, 0]
    assert found.disentanglement > 0.9


def test_the_unit_of_the_codes_changes_nothing():
    values = independent(3)
    codes = values @ np.random.default_rng(5).normal(size=(3, 4))
    columns = {"a": values[:, 0], "b": values[:, 1]}
    plain = factors(codes, columns)
    for scale in (1e-30, 1e30):
        found = factors(scale * codes, columns)
        assert found.disentanglement == pytest.approx(plain.disentanglement)
        assert found.mig == pytest.approx(plain.mig)


def test_the_l1_weights_are_those_of_scikit_learn():
    random = np.random.default_rng(0)
    rows = random.normal(size=(300, 20)) @ random.normal(size=(20, 20))
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    targets = rows[:, :2] + random.normal(size=(300, 2))
    targets -= targets.mean(axis=0)
    found = lasso(rows, targets, PENALTIES)
    for place, penalty in enumerate(PENALTIES):
        for column in range(2):
            fit = Lasso(alpha=penalty, fit_intercept=False, tol=1e-8, max_iter=100_000).fit(rows, targets[:, column])
            np.testing.assert_allclose(found[place, :, column], fit.coef_, atol=1e-3)
