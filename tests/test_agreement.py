"""CKA, Procrustes and neighbour overlap against dense loops, scipy and scikit-learn, and what they must not see."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.spatial
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ortho_group
from sklearn.neighbors import NearestNeighbors

from pipeline.agreement import linear_cka, neighbour_overlap, procrustes_distance
from pipeline.audit.estimate import NotComputable

SEEDS = st.integers(0, 10_000)


def spaces(n, d, e, seed):
    """Two spaces that share some of what they hold."""
    random = np.random.default_rng(seed)
    a = random.normal(size=(n, d)) * random.uniform(0.2, 3, d) + random.normal(size=d)
    return a, a @ random.normal(size=(d, e)) + random.normal(size=(n, e))


def hsic_by_loops(x, y):
    """Gretton's HSIC with centred kernels, term by term."""
    n = len(x)
    k = np.array([[p @ q for q in x] for p in x])
    l = np.array([[p @ q for q in y] for p in y])  # noqa: E741
    centre = np.eye(n) - 1 / n
    k, l = centre @ k @ centre, centre @ l @ centre  # noqa: E741
    return sum(k[i, j] * l[j, i] for i in range(n) for j in range(n))


def hsic_unbiased_by_loops(x, y):
    """The U-statistic by its definition: distinct quadruples (Song et al. 2012, section 2.2), no closed form."""
    n = len(x)
    k, l = x @ x.T, y @ y.T  # noqa: E741
    total = count = 0
    for i in range(n):
        for j in range(n):
            for q in range(n):
                for r in range(n):
                    if len({i, j, q, r}) == 4:
                        total += k[i, j] * (l[i, j] + l[q, r] - 2 * l[i, q])
                        count += 1
    return total / count


@given(st.integers(3, 15), st.integers(1, 6), st.integers(1, 6), SEEDS)
def test_cka_is_the_normalised_hsic_of_the_dense_kernels(n, d, e, seed):
    a, b = spaces(n, d, e, seed)
    oracle = hsic_by_loops(a, b) / np.sqrt(hsic_by_loops(a, a) * hsic_by_loops(b, b))
    assert linear_cka(a, b) == pytest.approx(oracle, rel=1e-7)


@given(st.integers(5, 9), st.integers(1, 4), st.integers(1, 4), SEEDS)
def test_unbiased_cka_is_the_mean_over_distinct_quadruples(n, d, e, seed):
    a, b = spaces(n, d, e, seed)
    own, other = hsic_unbiased_by_loops(a, a), hsic_unbiased_by_loops(b, b)
    oracle = hsic_unbiased_by_loops(a, b) / np.sqrt(own * other) if own > 0 and other > 0 else None
    if oracle is None:
        with pytest.raises(NotComputable, match="more rows"):
            linear_cka(a, b, unbiased=True)
    else:
        assert linear_cka(a, b, unbiased=True) == pytest.approx(oracle, rel=1e-5, abs=1e-8)


def test_only_the_unbiased_form_is_near_0_for_unrelated_wide_spaces():
    random = np.random.default_rng(0)
    a, b = random.normal(size=(60, 400)), random.normal(size=(60, 400))
    assert linear_cka(a, b) > 0.8
    assert abs(linear_cka(a, b, unbiased=True)) < 0.05


@given(st.integers(3, 30), st.integers(1, 6), st.integers(1, 6), SEEDS)
def test_procrustes_is_what_scipys_rotation_leaves(n, d, e, seed):
    a, b = spaces(n, d, e, seed)
    width = max(d, e)
    x, y = (np.pad(rows - rows.mean(0), ((0, 0), (0, width - rows.shape[1]))) for rows in (a, b))
    x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
    rotation, _ = scipy.linalg.orthogonal_procrustes(x, y)
    distance = procrustes_distance(a, b)
    assert distance == pytest.approx(np.linalg.norm(x @ rotation - y), abs=1e-7)
    *_, disparity = scipy.spatial.procrustes(x, y)  # there the second may be scaled as well
    assert disparity == pytest.approx(1 - (1 - distance**2 / 2) ** 2, abs=1e-7)


@given(st.integers(8, 40), st.integers(2, 5), st.integers(1, 7), SEEDS)
def test_the_overlap_counts_scikit_learns_common_neighbours(n, d, k, seed):
    a, b = spaces(n, d, d, seed)
    shares = []
    near = [
        NearestNeighbors(n_neighbors=k, metric="cosine", algorithm="brute").fit(rows).kneighbors() for rows in (a, b)
    ]
    for one, other in zip(near[0][1], near[1][1], strict=True):
        shares.append(len(set(one) & set(other)) / k)
    found = neighbour_overlap(a, b, k)
    assert found.value == pytest.approx(np.mean(shares), abs=1e-9)
    assert found.count == n
    assert f"{k / (n - 1):.3g} by chance" in found.note


@given(st.integers(12, 30), st.integers(2, 5), SEEDS, st.floats(0.01, 100), st.floats(-5, 5))
def test_rotations_scales_and_shifts_change_no_answer(n, d, seed, scale, shift):
    a, b = spaces(n, d, d, seed)
    turned = scale * a @ ortho_group.rvs(d, random_state=seed)
    for answer in (linear_cka, lambda p, q: linear_cka(p, q, unbiased=True), procrustes_distance):
        try:
            expected = answer(a, b)
        except NotComputable:
            continue
        assert answer(turned + shift, b) == pytest.approx(expected, abs=1e-5)
        assert answer(b, turned + shift) == pytest.approx(expected, abs=1e-5)
    assert neighbour_overlap(turned, b, 5).value == pytest.approx(neighbour_overlap(a, b, 5).value, abs=0.05)


@given(st.integers(12, 30), st.integers(2, 5), SEEDS)
def test_a_space_agrees_with_itself(n, d, seed):
    a, _ = spaces(n, d, d, seed)
    assert linear_cka(a, a) == pytest.approx(1)
    assert procrustes_distance(a, a) == pytest.approx(0, abs=1e-6)
    assert neighbour_overlap(a, 3 * a, 4).value == 1


def test_the_order_of_rows_in_common_changes_nothing_and_another_order_all():
    a, b = spaces(200, 6, 6, 1)
    order = np.random.default_rng(0).permutation(200)
    assert linear_cka(a[order], b[order]) == pytest.approx(linear_cka(a, b))
    assert linear_cka(a[order], b) < 0.1 < linear_cka(a, b)
    assert neighbour_overlap(a[order], b, 5).value < 0.1


def test_an_invertible_map_that_is_no_rotation_is_seen():
    a, _ = spaces(100, 4, 4, 3)
    assert linear_cka(a, a * [10, 1, 0.1, 0.01]) < 0.99
    assert procrustes_distance(a, a * [10, 1, 0.1, 0.01]) > 0.1


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        (np.ones((5, 3)), np.eye(5), "all rows are equal"),
        (np.eye(5), np.eye(4), "5 rows against 4"),
        (np.eye(1), np.eye(1), "1 rows; at least"),
        (np.full((6, 2), np.nan), np.eye(6), "NaN"),
    ],
)
def test_what_cannot_be_compared_says_why(a, b, reason):
    for answer in (linear_cka, procrustes_distance):
        with pytest.raises(NotComputable, match=reason):
            answer(a, b)


def test_too_few_rows_for_k_neighbours_say_so():
    with pytest.raises(NotComputable, match="5 rows have fewer than 5 others"):
        neighbour_overlap(np.eye(5), np.eye(5), 5)
