"""Alignment and uniformity: exact values, naive references, and no infinity anywhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from scipy.special import ive, loggamma

from pipeline.audit import sphere
from pipeline.audit.estimate import NotComputable
from pipeline.audit.sphere import alignment, uniformity
from pipeline.neighbours import unit


def points(n, d, seed=0):
    return unit(np.random.default_rng(seed).normal(size=(n, d)))


def test_alignment_is_0_for_equal_2_for_orthogonal_and_4_for_opposite_views():
    x = np.tile(np.eye(2, dtype=np.float32), (5, 1))
    assert alignment(x, x).value == 0
    assert alignment(x, x[:, ::-1]).value == pytest.approx(2)
    assert alignment(x, -x).value == pytest.approx(4)
    assert alignment(x, -x).high <= 4


def test_alignment_of_known_angles_is_the_mean_of_2_minus_2_cos():
    angles = np.linspace(0, np.pi, 9)
    a = np.tile(np.float32([1, 0]), (9, 1))
    b = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    found = alignment(a, b)
    values = 2 - 2 * np.cos(angles)
    assert found.value == pytest.approx(values.mean(), abs=1e-6)
    assert found.high - found.value == pytest.approx(1.959964 * values.std(ddof=1) / 3, abs=1e-5)


def test_uniformity_of_one_spot_is_0():
    assert uniformity(np.tile(points(1, 5), (20, 1))).value == pytest.approx(0, abs=1e-6)


def test_uniformity_of_antipodes_is_its_closed_form():
    n = 10  # each row has n/2 - 1 others on its spot and n/2 opposite, at squared distance 4
    x = np.concatenate([np.tile(np.float32([1, 0]), (n // 2, 1)), np.tile(np.float32([-1, 0]), (n // 2, 1))])
    assert uniformity(x).value == pytest.approx(np.log((n / 2 - 1 + n / 2 * np.exp(-8)) / (n - 1)))


def test_uniformity_of_orthogonal_axes_is_minus_4():
    assert uniformity(np.eye(12, dtype=np.float32)).value == pytest.approx(-4)


@pytest.mark.parametrize("d", [2, 3, 8, 32])
def test_uniformity_of_the_uniform_sphere_is_the_bessel_function_and_lies_in_the_interval(d):
    # E exp(4·cos - 4) over the sphere: Gamma(d/2)·2^(d/2-1)·4^(1-d/2)·I_{d/2-1}(4)·exp(-4)
    order = d / 2 - 1
    truth = loggamma(d / 2).real + order * np.log(2) - order * np.log(4) + np.log(ive(order, 4))
    found = uniformity(points(3000, d))
    assert found.value == pytest.approx(truth, abs=0.03)
    assert found.low - 0.01 <= truth <= found.high + 0.01


@given(st.integers(3, 40), st.integers(2, 6), st.integers(0, 999))
def test_uniformity_is_the_log_mean_kernel_over_pairs(n, d, seed):
    x = points(n, d, seed)
    expected = np.log(np.exp(-2 * np.square(pdist(x.astype(np.float64)))).mean())
    assert uniformity(x).value == pytest.approx(expected, abs=1e-5)


def test_the_interval_of_uniformity_is_that_of_deleting_one_row_after_the_other():
    x = points(40, 3)
    found = uniformity(x)
    without = [uniformity(np.delete(x, i, axis=0)).value for i in range(40)]
    error = np.sqrt(39 / 40 * np.square(without - np.mean(without)).sum())
    assert found.high - found.value == pytest.approx(1.959964 * error, rel=1e-3)


def test_nineteen_of_twenty_intervals_of_uniformity_hold_the_true_number():
    def draw(n, seed):
        return unit(np.random.default_rng(seed).normal(size=(n, 3)) + np.eye(3)[0])

    truth = np.mean([uniformity(draw(3000, 10_000 + seed)).value for seed in range(4)])
    found = [uniformity(draw(200, seed)) for seed in range(200)]
    assert 0.9 <= np.mean([each.low <= truth <= each.high for each in found]) <= 0.985


def test_blocks_change_nothing(monkeypatch):
    x = points(50, 4)
    whole = uniformity(x)
    monkeypatch.setattr(sphere, "ROWS", 7)
    assert uniformity(x).value == pytest.approx(whole.value, rel=1e-6)


@pytest.mark.parametrize("scale", [0.0, 1e-30, 0.9, 3.0, np.nan, np.inf])
def test_rows_that_are_not_of_length_one_are_a_reason_and_no_infinity(scale):
    with np.errstate(invalid="ignore"):
        x = points(20, 4) * np.float32(scale)
    for measure in (uniformity, lambda rows: alignment(rows, rows)):
        with pytest.raises(NotComputable, match=r"rows hold NaN or infinity|only rows of length one have directions"):
            measure(x)


@pytest.mark.parametrize("measure", [uniformity, lambda x: alignment(x[:1], x[:1])])
def test_too_few_rows_are_a_reason_and_no_infinity(measure):
    with pytest.raises(NotComputable, match="at least"):
        measure(points(2, 3))
