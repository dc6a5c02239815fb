"""Ridge probe: scikit-learn's is the oracle; columns share the work and nothing else."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from pipeline.parallel import in_turn, workers
from pipeline.probes import strata
from pipeline.probes.ridge import GRID, fit_ridge
from pipeline.probes.standard import standardise


def problem(n, dimensions, columns=1, seed=0, noise=0.5):
    random = np.random.default_rng(seed)
    features = (random.normal(size=(n, dimensions)) * np.geomspace(1, 0.01, dimensions) * 3 + 7).astype(np.float32)
    slopes = random.normal(size=(dimensions, columns)) / np.geomspace(1, 0.1, dimensions)[:, None]
    numbers = features @ slopes / 3
    return features, 40 * (numbers + noise * numbers.std(0) * random.normal(size=numbers.shape)) - 1000


def scaled(features, of):
    return StandardScaler().fit(of.astype(np.float64)).transform(features.astype(np.float64))


def fitted(features, numbers, regularization=None):
    with workers() as each:
        return fit_ridge(standardise(features, each), numbers, each, regularization)


@pytest.mark.parametrize("regularization", [1e-4, 1e-2, 1.0, 100.0])
@pytest.mark.parametrize(("n", "dimensions"), [(300, 10), (40, 90), (200, 150), (90, 1)])
def test_the_probe_is_scikit_learns_ridge(n, dimensions, regularization):
    features, numbers = problem(n, dimensions)
    new, _ = problem(50, dimensions, seed=1)
    (probe,) = fitted(features, numbers, regularization)
    oracle = Ridge(alpha=n * regularization).fit(scaled(features, features), numbers[:, 0])
    np.testing.assert_allclose(
        probe.predict(new), oracle.predict(scaled(new, features)), atol=2e-3 * numbers.std(), rtol=1e-5
    )


def test_the_regularization_is_that_of_the_least_error_on_the_held_out_rows():
    features, numbers = problem(160, 120, noise=2.0)
    inside, outside = strata.held_out(np.zeros(160, int))
    rows = scaled(features, features)
    errors = [
        np.square(
            numbers[outside, 0]
            - Ridge(alpha=len(inside) * one).fit(rows[inside], numbers[inside, 0]).predict(rows[outside])
        ).sum()
        for one in GRID
    ]
    (probe,) = fitted(features, numbers)
    assert probe.regularization == GRID[int(np.argmin(errors))]
    assert 1e-5 < probe.regularization < 100


def test_columns_are_fitted_as_if_each_were_alone():
    features, numbers = problem(200, 12, columns=3)
    numbers[:, 1] += 5000 * np.random.default_rng(5).normal(size=200)
    together = fitted(features, numbers)
    for column, probe in enumerate(together):
        (alone,) = fitted(features, numbers[:, [column]])
        assert alone.regularization == probe.regularization
        np.testing.assert_allclose(alone.weights, probe.weights, rtol=1e-5)
    assert len({probe.regularization for probe in together}) > 1


def test_units_of_the_numbers_change_nothing_but_their_unit():
    features, numbers = problem(100, 5)
    (one,), (other,) = fitted(features, numbers), fitted(features, 1e6 * numbers + 3)
    assert one.regularization == other.regularization
    np.testing.assert_allclose(other.predict(features), 1e6 * one.predict(features) + 3, rtol=1e-4)


def test_any_number_of_threads_gives_the_same_bits():
    features, numbers = problem(500, 130, columns=2)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, "blas"):
            found.append(fitted(features, numbers))
    assert all((a.weights == b.weights).all() for a, b in zip(*found, strict=True))


def test_two_rows_are_enough():
    features, numbers = problem(2, 3)
    (probe,) = fit_ridge(standardise(features, in_turn), numbers, in_turn)
    assert np.isfinite(probe.predict(features)).all()
