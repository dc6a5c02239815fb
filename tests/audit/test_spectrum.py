"""Spectrum: closed forms, spaces of known geometry, and intervals that cover what they claim."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy, ortho_group

from pipeline.audit import spectrum as module
from pipeline.audit.estimate import NotComputable
from pipeline.audit.spectrum import spectrum


def exact(variances):
    """Rows whose covariance is exactly diag(variances), turned by a random rotation."""
    d = len(variances)
    corners = np.concatenate([np.eye(d), -np.eye(d)]) * np.sqrt(d * np.asarray(variances, dtype=np.float64))
    return corners @ (ortho_group.rvs(d, random_state=0) if d > 1 else np.eye(1))


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=12))
def test_the_numbers_of_a_known_spectrum_are_its_closed_forms(variances):
    shares = np.sort(np.asarray(variances))[::-1] / np.sum(variances)
    found = spectrum(exact(variances))
    np.testing.assert_allclose(found.shares, shares, atol=1e-9)
    assert found.variance == pytest.approx(np.sum(variances))
    assert found.effective_rank.value == pytest.approx(np.exp(entropy(shares)))
    assert found.participation_ratio.value == pytest.approx(1 / np.square(shares).sum())
    directions = int(np.searchsorted(np.cumsum(shares), 0.99 - 1e-9)) + 1
    assert found.dimensions_99.value == pytest.approx(directions / len(variances))


@pytest.mark.parametrize("rank", [1, 3, 8])
def test_a_space_of_rank_r_with_equal_variances_has_ranks_r(rank):
    found = spectrum(exact([1.0] * rank + [0.0] * (8 - rank)))
    assert found.effective_rank.value == pytest.approx(rank)
    assert found.participation_ratio.value == pytest.approx(rank)
    assert found.dimensions_99.value == pytest.approx(rank / 8)


def test_an_isotropic_gaussian_fills_its_dimensions_and_has_numpys_eigenvalues():
    rows = np.random.default_rng(0).normal(size=(20_000, 16)).astype(np.float32)
    found = spectrum(rows)
    oracle = np.linalg.eigvalsh(np.cov(rows.T, bias=True))[::-1]
    np.testing.assert_allclose(found.shares, oracle / oracle.sum(), rtol=1e-4)
    assert found.effective_rank.value == pytest.approx(16, abs=0.02)


@given(st.integers(0, 99), st.floats(0.01, 100))
def test_moving_scaling_and_rotating_the_space_changes_nothing(seed, scale):
    random = np.random.default_rng(seed)
    rows = random.normal(size=(50, 4)) * [3, 2, 1, 0.5]
    moved = scale * rows @ ortho_group.rvs(4, random_state=seed) + random.normal(size=4)
    for name in ("effective_rank", "participation_ratio", "dimensions_99"):
        a, b = getattr(spectrum(rows), name), getattr(spectrum(moved), name)
        assert (a.value, a.low, a.high) == pytest.approx((b.value, b.low, b.high))


def test_blocks_of_rows_change_nothing(monkeypatch):
    rows = np.random.default_rng(1).normal(size=(100, 5)) * [5, 4, 3, 2, 1]
    whole = spectrum(rows)
    monkeypatch.setattr(module, "ROWS", 7)
    parts = spectrum(rows)
    assert parts.effective_rank.low == pytest.approx(whole.effective_rank.low)
    assert parts.participation_ratio.high == pytest.approx(whole.participation_ratio.high)
    assert parts.dimensions_99 == whole.dimensions_99


@pytest.mark.parametrize("name", ["effective_rank", "participation_ratio"])
def test_the_errors_are_those_of_deleting_one_row_after_the_other(name):
    rows = np.random.default_rng(2).normal(size=(200, 3)) * [3, 2, 1]
    found = getattr(spectrum(rows), name)
    without = [getattr(spectrum(np.delete(rows, i, axis=0)), name).value for i in range(200)]
    jackknife = np.sqrt(199 / 200 * np.square(without - np.mean(without)).sum())
    assert (found.high - found.low) / 2 / 1.959964 == pytest.approx(jackknife, rel=0.03)


def test_nineteen_of_twenty_intervals_hold_the_true_number():
    variances = np.array([8.0, 4, 2, 1, 0.5])
    shares = variances / variances.sum()
    truth = {"effective_rank": np.exp(entropy(shares)), "participation_ratio": 1 / np.square(shares).sum()}
    random = np.random.default_rng(3)
    found = [spectrum(random.normal(size=(1000, 5)) * np.sqrt(variances)) for _ in range(300)]
    for name, true in truth.items():
        held = np.mean([getattr(each, name).low <= true <= getattr(each, name).high for each in found])
        assert 0.91 <= held <= 0.98


def test_directions_near_the_border_are_uncertain_and_far_from_it_certain():
    random = np.random.default_rng(4)
    border = spectrum(random.normal(size=(300, 3)) * np.sqrt([60, 39, 1]))
    clear = spectrum(random.normal(size=(300, 3)) * np.sqrt([60, 30, 10]))
    assert (border.dimensions_99.low, border.dimensions_99.high) == pytest.approx((2 / 3, 1))
    assert (clear.dimensions_99.low, clear.dimensions_99.high) == pytest.approx((1, 1))


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e4])
def test_a_constant_space_has_no_spectrum(offset):
    noise = 1e-8 * offset * np.random.default_rng(0).normal(size=(50, 4))
    with pytest.raises(NotComputable, match="the rows are constant"):
        spectrum(offset + noise)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_broken_numbers_are_a_reason(value):
    rows = np.random.default_rng(0).normal(size=(20, 3))
    rows[4, 1] = value
    with np.errstate(invalid="ignore"), pytest.raises(NotComputable, match="rows hold NaN or infinity"):
        spectrum(rows)


def test_two_rows_are_too_few():
    with pytest.raises(NotComputable, match="2 rows; at least 3 are needed"):
        spectrum(np.eye(2))


def test_one_dimension_has_rank_one():
    found = spectrum(np.random.default_rng(0).normal(size=(30, 1)))
    assert (found.effective_rank.value, found.dimensions_99.value) == pytest.approx((1, 1))
