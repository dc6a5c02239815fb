"""kNN probe: scikit-learn and dense float64 loops are the oracles; blocks, floors and threads change nothing."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from threadpoolctl import threadpool_limits

from pipeline import neighbours
from pipeline.neighbours import nearest_others, nearest_rows, unit
from pipeline.probes import knn
from pipeline.probes.knn import vote


def space(n, dimensions, seed=0):
    return np.random.default_rng(seed).normal(size=(n, dimensions)).astype(np.float32)


def assert_nearest(queries, gallery, k):
    """Against all cosines in float64: the k largest, each with its own place, no place twice."""
    similarity, index = nearest_rows(queries, gallery, k)
    whole = (np.asarray(rows, np.float64) for rows in (queries, gallery))
    a, b = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in whole)
    cosines = a @ b.T
    np.testing.assert_allclose(np.take_along_axis(cosines, index, 1), similarity, atol=2e-6)
    np.testing.assert_allclose(np.sort(similarity, 1), np.sort(cosines, 1)[:, -k:], atol=2e-6)
    assert all(len(set(row)) == k for row in index.tolist())
    assert index.dtype == np.int64


def small_blocks(monkeypatch, height=7, width=32, spare=4, sample=64):
    for name, value in {"HEIGHT": height, "WIDTH": width, "SPARE": spare, "SAMPLE": sample}.items():
        monkeypatch.setattr(neighbours, name, value)


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


@pytest.mark.parametrize("k", [1, 2, 5, 60, 299, 300])
@pytest.mark.parametrize(("height", "width", "spare", "sample"), [(1, 7, 1, 4), (64, 16, 9, 64), (7, 32, 4, 64)])
def test_blocks_of_any_size_find_the_same_neighbours(k, height, width, spare, sample, monkeypatch):
    small_blocks(monkeypatch, height, width, spare, sample)
    assert_nearest(space(41, 8, 1), space(300, 8), k)


@pytest.mark.parametrize("order", ["nearer and nearer", "farther and farther", "by class", "every eighth", "all alike"])
def test_no_order_of_the_gallery_misleads_the_search(order, monkeypatch):
    small_blocks(monkeypatch)
    gallery, queries = space(400, 6), space(20, 6, 1)
    along = gallery @ queries[0]
    if order == "nearer and nearer":
        gallery = gallery[np.argsort(along)]
    elif order == "farther and farther":
        gallery = gallery[np.argsort(-along)]
    elif order == "by class":
        gallery = gallery * 0.2 + np.repeat(space(4, 6, 2), 100, axis=0)
        queries = queries * 0.2 + np.repeat(space(4, 6, 2), 5, axis=0)
    elif order == "every eighth":
        gallery[::8] += 3 * queries[0]
    else:
        gallery = np.repeat(space(2, 6), 200, axis=0)
    for k in (1, 3, 10, 30):
        assert_nearest(queries, gallery, k)


def test_a_sample_that_promises_too_much_is_searched_again(monkeypatch):
    small_blocks(monkeypatch)
    gallery, queries = space(400, 6), space(20, 6, 1)
    real, again = neighbours._search, []
    best = np.array([(unit(gallery) @ unit(queries)[0]).argmax()])  # nothing lies above the first query's floor
    monkeypatch.setattr(neighbours, "_sample", lambda count, k: neighbours._Sample(best, 1))
    monkeypatch.setattr(
        neighbours, "_search", lambda *given, **how: again.append(how.get("estimated", True)) or real(*given, **how)
    )
    assert_nearest(queries, gallery, 5)
    assert again == [True, False]


@given(st.integers(0, 10_000))
def test_many_equal_similarities_are_no_trouble(seed):
    random = np.random.default_rng(seed)
    gallery, queries = random.integers(-1, 2, (200, 3)) + 0.0, random.integers(-1, 2, (30, 3)) + 0.0
    gallery[~gallery.any(1)] = queries[~queries.any(1)] = 1
    with pytest.MonkeyPatch.context() as patch:
        small_blocks(patch)
        assert_nearest(queries.astype(np.float32), gallery.astype(np.float32), int(random.integers(1, 60)))


def test_any_number_of_threads_gives_the_same_bits(monkeypatch):
    small_blocks(monkeypatch, height=16, width=64, sample=64)
    found = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads, "blas"):
            found.append(nearest_rows(space(100, 16, 1), space(900, 16), 9))
    for similarity, index in found[1:]:
        assert (similarity == found[0][0]).all()
        assert (index == found[0][1]).all()


def test_memory_does_not_hold_all_similarities():
    gallery, queries = space(60_000, 4), space(1500, 4, 1)
    tracemalloc.start()
    nearest_rows(queries, gallery, 10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60_000 * 1500 * 4 / 5  # 360 MB would be all of them


def test_a_memory_mapped_gallery_is_searched_as_it_lies(tmp_path):
    np.save(tmp_path / "rows.npy", space(500, 5) * 40)
    assert_nearest(space(9, 5, 1), np.load(tmp_path / "rows.npy", mmap_mode="r"), 7)


def test_all_rows_vote_when_k_is_the_gallery():
    gallery, queries = unit(space(12, 3)), unit(space(4, 3, 1))
    assert (np.sort(nearest_rows(queries, gallery, 12)[1], axis=1) == np.arange(12)).all()


def test_the_neighbours_are_those_of_scikit_learn():
    gallery, queries = space(300, 8), space(41, 8, 1)
    oracle = NearestNeighbors(n_neighbors=5, metric="cosine", algorithm="brute").fit(gallery).kneighbors(queries)
    assert (np.sort(nearest_rows(queries, gallery, 5)[1], axis=1) == np.sort(oracle[1], axis=1)).all()


def test_the_smallest_temperatures_do_not_overflow_and_leave_the_nearest_neighbour():
    similarity = np.array([[0.9, 0.8, 0.8, 0.8]], dtype=np.float32)
    labels = np.array([[1, 0, 0, 0]])
    assert vote(similarity, labels, 1e-6, 2) == 1
    assert vote(similarity, labels, 10.0, 2) == 0


def test_of_equal_votes_the_lowest_code_wins():
    assert vote(np.full((1, 2), 0.5, np.float32), np.array([[3, 1]]), 0.1, 4) == 1


def test_votes_counted_in_parts_are_the_same(monkeypatch):
    random = np.random.default_rng(0)
    similarity, labels = random.random((50, 7), np.float32), random.integers(0, 5, (50, 7))
    whole = vote(similarity, labels, 0.2, 5)
    monkeypatch.setattr(knn, "VOTES", 12)
    assert (vote(similarity, labels, 0.2, 5) == whole).all()


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
