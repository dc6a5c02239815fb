"""kNN probe: scikit-learn's weighted classifier is the oracle; blocks change nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from pipeline import neighbours
from pipeline.neighbours import nearest_others, nearest_rows, unit
from pipeline.probes.knn import vote


def space(n, dimensions, seed=0):
    return np.random.default_rng(seed).normal(size=(n, dimensions)).astype(np.float32)


@given(st.integers(1, 40), st.floats(0.02, 2.0), st.integers(2, 9), st.integers(0, 999))
def test_the_weighted_vote_is_that_of_scikit_learn(k, temperature, dimensions, seed):
    random = np.random.default_rng(seed)
    gallery, queries = unit(space(60, dimensions, seed)), unit(space(25, dimensions, seed + 1))
    labels = random.integers(0, 4, 60)
    oracle = KNeighborsClassifier(
        k, metric="cosine", algorithm="brute", weights=lambda distance: np.exp((1 - distance) / temperature)
    ).fit(gallery.astype(np.float64), labels)
    share = np.sort(oracle.predict_proba(queries.astype(np.float64)), axis=1)
    clear = share[:, -1] - (share[:, -2] if share.shape[1] > 1 else 0) > 1e-4  # rounding decides what is closer
    similarity, index = nearest_rows(queries, gallery, k)
    answer = vote(similarity, labels[index], temperature, 4)
    assert (answer == oracle.predict(queries.astype(np.float64)))[clear].all()


@pytest.mark.parametrize(("block", "width"), [(1, 7), (64, 16), (1000, 300), (1 << 24, 1 << 16)])
def test_blocks_of_any_size_find_the_same_neighbours(block, width, monkeypatch):
    monkeypatch.setattr(neighbours, "WIDTH", width)
    gallery, queries = unit(space(300, 8)), unit(space(41, 8, 1))
    similarity, index = nearest_rows(queries, gallery, 5, block=block)
    oracle = NearestNeighbors(n_neighbors=5, metric="cosine", algorithm="brute").fit(gallery).kneighbors(queries)
    assert (np.sort(index, axis=1) == np.sort(oracle[1], axis=1)).all()
    np.testing.assert_allclose(np.sort(1 - similarity, axis=1), np.sort(oracle[0], axis=1), atol=1e-5)


def test_similarities_in_memory_are_bounded_by_the_block(monkeypatch):
    import torch

    sizes, real = [], torch.mm
    monkeypatch.setattr(torch, "mm", lambda a, b, out: sizes.append(out.numel()) or real(a, b, out=out))
    nearest_rows(unit(space(100, 4)), unit(space(500, 4)), 3, block=2000)
    assert max(sizes) <= 2000
    assert sum(sizes) == 100 * 500


def test_all_rows_vote_when_k_is_the_gallery():
    gallery, queries = unit(space(12, 3)), unit(space(4, 3, 1))
    assert (np.sort(nearest_rows(queries, gallery, 12)[1], axis=1) == np.arange(12)).all()


def test_the_smallest_temperatures_do_not_overflow_and_leave_the_nearest_neighbour():
    similarity = np.array([[0.9, 0.8, 0.8, 0.8]], dtype=np.float32)
    labels = np.array([[1, 0, 0, 0]])
    assert vote(similarity, labels, 1e-6, 2) == 1
    assert vote(similarity, labels, 10.0, 2) == 0


def test_of_equal_votes_the_lowest_code_wins():
    assert vote(np.full((1, 2), 0.5, np.float32), np.array([[3, 1]]), 0.1, 4) == 1


@pytest.mark.parametrize("scale", [1e-38, 1e-20, 1.0, 1e20, 3e38])
def test_unit_rows_have_length_one_at_any_scale(scale):
    rows = space(20, 6) / 10 * np.float32(scale)
    np.testing.assert_allclose(np.linalg.norm(unit(rows), axis=1), 1, atol=1e-3 if scale == 1e-38 else 1e-6)


def test_a_row_of_zeros_stays_zeros():
    assert (unit(np.zeros((2, 3), np.float32)) == 0).all()


def test_a_row_is_never_its_own_neighbour_even_among_duplicates():
    rows = unit(np.repeat(space(3, 4), 5, axis=0))  # each spot five times
    chosen = np.arange(15)
    near = nearest_others(rows, chosen, 4)
    assert (near != chosen[:, None]).all()
    assert (near // 5 == chosen[:, None] // 5).all()
    assert all(len(set(row)) == 4 for row in near.tolist())


@pytest.mark.parametrize("k", [0, 4])
def test_k_outside_the_gallery_is_refused(k):
    with pytest.raises(ValueError, match=f"k = {k}: must lie between 1 and the 3 gallery rows"):
        nearest_rows(unit(space(2, 4)), unit(space(3, 4)), k)


def test_unequal_dimensions_are_refused():
    with pytest.raises(ValueError, match="queries have 4 dimensions, the gallery 5"):
        nearest_rows(unit(space(2, 4)), unit(space(3, 5)), 1)
