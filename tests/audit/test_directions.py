"""RankMe, anisotropy, and ranks within classes and neighbourhoods: definitions, scikit-learn, scipy, closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import svdvals
from scipy.stats import entropy, norm, ortho_group, vonmises_fisher
from sklearn.metrics.pairwise import cosine_similarity

from pipeline.audit import classes, local
from pipeline.audit import rankme as rankme_module
from pipeline.audit.anisotropy import anisotropy
from pipeline.audit.classes import class_ranks, mean_rank, shares_of
from pipeline.audit.estimate import NotComputable
from pipeline.audit.local import anywhere, local_dimensions
from pipeline.audit.rankme import rankme
from pipeline.audit.spectrum import spectrum
from pipeline.neighbours import nearest_others, unit


def error_of(estimate):
    return (estimate.high - estimate.low) / 2 / norm.ppf(0.975)


def jackknifed(value_of, rows):
    n = len(rows)
    without = np.array([value_of(np.delete(rows, i, axis=0)) for i in range(n)])
    return np.sqrt((n - 1) / n * np.square(without - without.mean()).sum())


# RankMe


@given(st.integers(3, 40), st.integers(1, 8), st.integers(0, 999), st.floats(0, 5))
def test_rankme_is_the_papers_formula_on_singular_values(n, d, seed, offset):
    rows = np.random.default_rng(seed).normal(size=(n, d)) * np.arange(1, d + 1) + offset
    singular = svdvals(rows)
    shares = singular / singular.sum() + 1e-7
    assert rankme(rows).value == pytest.approx(np.exp(-(shares * np.log(shares)).sum()), rel=1e-5)


@pytest.mark.parametrize("rank", [1, 3, 8])
def test_rankme_of_r_equal_directions_is_r(rank):
    rows = np.tile(np.eye(8)[:rank], (5, 1)) @ ortho_group.rvs(8, random_state=0)
    assert rankme(rows).value == pytest.approx(rank, rel=1e-4)


def test_rankme_weighs_small_directions_more_than_the_covariance_and_is_moved_by_an_offset():
    rows = np.random.default_rng(0).normal(size=(500, 6)) * [9, 3, 1, 1, 1, 1]
    assert rankme(rows).value > spectrum(rows).effective_rank.value + 0.5
    assert rankme(rows + 100).value < rankme(rows).value - 1
    assert spectrum(rows + 100).effective_rank.value == pytest.approx(spectrum(rows).effective_rank.value)


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e200])
def test_the_size_of_the_space_changes_nothing(scale):
    rows = np.random.default_rng(0).normal(size=(50, 4)) * [3, 2, 1, 0.5]
    whole, scaled = rankme(rows), rankme(rows * scale)
    assert (scaled.value, scaled.low, scaled.high) == pytest.approx((whole.value, whole.low, whole.high))


def test_the_error_of_rankme_is_that_of_deleting_one_row_after_the_other():
    rows = np.random.default_rng(2).normal(size=(200, 4)) * [4, 3, 2, 1] + [1, 0, 0, 0]
    expected = jackknifed(lambda part: rankme(part).value, rows)
    assert error_of(rankme(rows)) == pytest.approx(expected, rel=0.03)


def test_blocks_of_rows_change_nothing(monkeypatch):
    rows = np.random.default_rng(1).normal(size=(100, 5)) * [5, 4, 3, 2, 1]
    whole, shares = rankme(rows), shares_of(rows)
    monkeypatch.setattr(rankme_module, "ROWS", 7)
    monkeypatch.setattr(classes, "ROWS", 7)
    assert rankme(rows).high == pytest.approx(whole.high)
    np.testing.assert_allclose(shares_of(rows), shares)


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
def test_rankme_of_broken_or_empty_rows_is_a_reason(value):
    with pytest.raises(NotComputable, match=r"NaN or infinity|all zero"):
        rankme(np.full((10, 3), value))
    with pytest.raises(NotComputable, match="2 rows"):
        rankme(np.ones((2, 3)))


# anisotropy


@given(st.integers(3, 40), st.integers(2, 6), st.integers(0, 999))
def test_anisotropy_is_the_mean_of_scikit_learns_cosines(n, d, seed):
    rows = unit(np.random.default_rng(seed).normal(size=(n, d)) + 0.5)
    cosines = cosine_similarity(rows.astype(np.float64))[~np.eye(n, dtype=bool)]
    assert anisotropy(rows).value == pytest.approx(cosines.mean(), abs=1e-6)


@pytest.mark.parametrize("concentration", [0.5, 3.0, 30.0])
def test_anisotropy_of_a_von_mises_fisher_cloud_is_its_mean_length_squared(concentration):
    rows = vonmises_fisher([0, 0, 1], concentration).rvs(4000, random_state=0).astype(np.float32)
    length = 1 / np.tanh(concentration) - 1 / concentration  # in three dimensions
    found = anisotropy(rows)
    assert found.low <= length**2 <= found.high


def test_anisotropy_of_a_simplex_is_that_of_its_angles():
    centred = np.eye(6) - 1 / 6
    assert anisotropy(unit(centred)).value == pytest.approx(-1 / 5, abs=1e-6)
    assert anisotropy(np.eye(6, dtype=np.float32)).value == pytest.approx(0, abs=1e-7)
    assert anisotropy(unit(np.ones((6, 3)))).value == pytest.approx(1, abs=1e-6)


def test_the_error_of_anisotropy_is_that_of_deleting_one_row_after_the_other():
    rows = unit(np.random.default_rng(0).normal(size=(40, 3)) + np.eye(3)[0])
    assert error_of(anisotropy(rows)) == pytest.approx(jackknifed(lambda part: anisotropy(part).value, rows), rel=1e-3)


def test_anisotropy_of_rows_that_are_not_of_length_one_is_a_reason():
    with pytest.raises(NotComputable, match="only rows of length one"):
        anisotropy(np.full((5, 3), 2, dtype=np.float32))


# classes


@pytest.mark.parametrize("d", [4, 60])
def test_the_rank_of_a_class_is_that_of_its_own_rows(d):
    random = np.random.default_rng(0)
    labels = np.repeat([0, 2, 5], [30, 50, 40])
    rows = (10 * labels[:, None] + random.normal(size=(120, d)) * np.geomspace(1, 0.1, d)).astype(np.float32)
    found = class_ranks(rows, labels)
    assert [(each.code, each.count) for each in found] == [(0, 30), (2, 50), (5, 40)]
    for each in found:
        values = np.linalg.eigvalsh(np.cov(rows[labels == each.code].T.astype(np.float64)))
        shares = np.maximum(values, 0) / values.sum()
        assert each.effective_rank == pytest.approx(np.exp(entropy(shares)), rel=1e-4)
        assert each.participation_ratio == pytest.approx(1 / np.square(shares).sum(), rel=1e-4)
    mean = mean_rank(found)
    assert mean.value == pytest.approx(np.mean([each.effective_rank for each in found]))
    assert (mean.low, mean.count) == (None, 120)


def test_a_class_that_is_a_point_is_told_beside_the_others():
    random = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [20, 20, 2])
    rows = np.where(labels[:, None] == 1, 3.0, random.normal(size=(42, 3)))
    found = class_ranks(rows, labels)
    assert [each.note for each in found] == [
        "",
        "not computable: its rows are equal",
        "not computable: 2 rows; at least 3 are needed",
    ]
    assert mean_rank(found).value == pytest.approx(found[0].effective_rank)
    assert "1 classes" in mean_rank(found).note
    with pytest.raises(NotComputable, match="no class has three different rows"):
        mean_rank(found[1:])


def test_only_the_largest_classes_are_measured_where_there_are_many(monkeypatch):
    monkeypatch.setattr(classes, "MOST", 2)
    labels = np.repeat([0, 1, 2], [5, 9, 7])
    found = class_ranks(np.random.default_rng(0).normal(size=(21, 2)), labels)
    assert [each.code for each in found] == [1, 2]


def test_broken_numbers_have_no_shares():
    with np.errstate(invalid="ignore"), pytest.raises(NotComputable, match="NaN"):
        shares_of(np.full((10, 3), np.nan))


# neighbourhoods


def naive_ratio(rows):
    values = np.maximum(np.linalg.eigvalsh(np.cov(rows.T.astype(np.float64))), 0)
    return values.sum() ** 2 / np.square(values).sum()


@pytest.mark.parametrize("d", [3, 40])
def test_local_dimensions_are_the_participation_ratio_of_each_neighbourhoods_covariance(d, monkeypatch):
    rows = unit(np.random.default_rng(0).normal(size=(80, d)))
    near = nearest_others(rows, np.arange(80), 12)
    expected = [naive_ratio(rows[each]) for each in near]
    np.testing.assert_allclose(local_dimensions(rows, near), expected, rtol=1e-4)
    monkeypatch.setattr(local, "ENTRIES", 5 * 12 * d)
    np.testing.assert_allclose(local_dimensions(rows, near), expected, rtol=1e-4)


def test_a_curve_that_winds_through_all_dimensions_has_one_dimension_at_each_place():
    angles = np.linspace(0, 2 * np.pi, 2000, endpoint=False)
    rows = unit(np.concatenate([[np.cos(m * angles), np.sin(m * angles)] for m in range(1, 6)]).T)
    found = local_dimensions(rows, nearest_others(rows, np.arange(2000), 20))
    assert spectrum(rows).participation_ratio.value == pytest.approx(10, abs=0.1)
    assert found.max() < 1.1
    assert anywhere(rows, 20, 50, 0) > 5


def test_k_rows_drawn_from_an_isotropic_cloud_read_low_by_the_closed_form():
    d, k = 30, 20
    rows = np.random.default_rng(0).normal(size=(5000, d)).astype(np.float32)
    # of a Wishart matrix with k - 1 degrees of freedom, E tr(S)² / E tr(S²) = (m·d + 2)·d·m / (d·m·(m + d + 1))
    m = k - 1
    assert anywhere(rows, k, 400, 0) == pytest.approx((m * d + 2) / (m + d + 1), rel=0.02)


def test_rows_that_coincide_have_no_dimensions():
    rows = unit(np.repeat(np.eye(4), 10, axis=0) + 0.0)
    near = nearest_others(rows, np.arange(40), 5)
    assert local_dimensions(rows, near).max() == 0


def test_one_neighbour_spans_nothing():
    with pytest.raises(NotComputable, match=r"audit\.purity_at"):
        local_dimensions(np.eye(4, dtype=np.float32), np.ones((4, 1), dtype=np.int64))
