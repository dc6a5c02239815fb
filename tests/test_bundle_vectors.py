"""Vectors know their space, and are compared by its metric alone; every refusal says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bundled import SIZES, bundled, card
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.spatial.distance import cdist
from small import pictures

from pipeline.bundle import Bundle, Vectors, load
from pipeline.bundle.vectors import distances, nearest, similarities
from pipeline.metrics import Metric
from pipeline.spec import Refusal

SPACES: dict[str, dict[str, Any]] = {
    "cosine": {},
    "dot": {"metric": "dot", "normalization": "none"},
    "euclidean": {"metric": "euclidean", "normalization": "l2", "objective": {"kind": "triplet", "margin": 0.2},
                  "temperature": None},
    "squared_euclidean": {"metric": "squared_euclidean", "normalization": "none", "objective": {"kind": "nt_xent"}},
}  # fmt: skip


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    folder = tmp_path_factory.mktemp("spaces")
    return {name: load(bundled(folder / name, card(**changes))[0]) for name, changes in SPACES.items()}


def oracle(a: np.ndarray, b: np.ndarray, metric: str) -> np.ndarray:
    """scipy's distances, as similarities."""
    if metric == "dot":
        return a.astype(np.float64) @ b.astype(np.float64).T
    found = cdist(a, b, {"cosine": "cosine", "euclidean": "euclidean", "squared_euclidean": "sqeuclidean"}[metric])
    return 1 - found if metric == "cosine" else -found


@pytest.mark.parametrize("name", SPACES)
def test_h_and_z_are_compared_alike_by_the_metric_of_the_space(opened: dict[str, Bundle], name: str) -> None:
    bundle, images = opened[name], pictures(SIZES, 3)
    h, z = bundle.embed(images), bundle.embed(images, layer="z")
    expected = oracle(z.values, z.values[:3], name)
    for rows in (h, z):
        found = bundle.similarity(rows, rows[:3])
        assert found.shape == (len(images), 3)
        np.testing.assert_allclose(found, expected, atol=2e-6)
    if name == "dot":
        with pytest.raises(Refusal, match="the inner product, which has no distance; use similarity"):
            bundle.distance(h, h)
    else:
        apart = bundle.distance(h, h[:3])
        np.testing.assert_allclose(apart, 1 - expected if name == "cosine" else -expected, atol=2e-6)
        assert apart.min() > -1e-6


@pytest.mark.parametrize("name", SPACES)
def test_neighbors_are_the_most_similar_first(opened: dict[str, Bundle], name: str) -> None:
    bundle, images = opened[name], pictures([(16, 12)] * 40, 3)
    gallery = bundle.embed(images)
    rows, similar = bundle.neighbors(gallery[:5], gallery, k=7)
    whole = bundle.similarity(gallery[:5], gallery)
    np.testing.assert_array_equal(rows, np.argsort(-whole, axis=1, kind="stable")[:, :7])
    np.testing.assert_array_equal(similar, np.take_along_axis(whole, rows, 1))
    if name != "dot":
        np.testing.assert_array_equal(rows[:, 0], np.arange(5), "each finds itself first")


@given(
    hnp.arrays(np.float32, st.tuples(st.integers(1, 6), st.just(3)), elements=st.sampled_from([-1.0, 0.0, 0.5, 1.0])),
    hnp.arrays(np.float32, st.tuples(st.integers(1, 9), st.just(3)), elements=st.sampled_from([-1.0, 0.0, 0.5, 1.0])),
    st.sampled_from(["cosine", "dot", "euclidean", "squared_euclidean"]),
    st.data(),
)
def test_equal_similarities_are_in_the_order_of_the_gallery(
    a: np.ndarray, b: np.ndarray, metric: Metric, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(b)))
    rows, similar = nearest(a, b, metric, k)
    whole = similarities(a, b, metric)
    np.testing.assert_array_equal(rows, np.argsort(-whole, axis=1, kind="stable")[:, :k])
    np.testing.assert_array_equal(similar, np.take_along_axis(whole, rows, 1))


@given(st.integers(1, 40), st.integers(1, 40))
def test_blocks_change_nothing(rows: int, columns: int) -> None:
    from pipeline.bundle import vectors as module

    random = np.random.default_rng(rows * 100 + columns)
    a, b = (random.normal(size=(size, 5)).astype(np.float32) for size in (rows, columns))
    whole, before = similarities(a, b, "euclidean"), module.BLOCK
    module.BLOCK = 7
    try:
        np.testing.assert_allclose(similarities(a, b, "euclidean"), whole, atol=1e-6)
    finally:
        module.BLOCK = before
    np.testing.assert_allclose(distances(whole, "euclidean"), cdist(a, b), atol=1e-5)


def test_a_part_of_vectors_is_vectors_with_its_names() -> None:
    vectors = Vectors(np.arange(6, dtype=np.float32).reshape(3, 2), "i", "h", ("a", "b", "c"))
    assert (len(vectors), len(vectors[1]), vectors[1].names, vectors[[2, 0]].names) == (3, 1, ("b",), ("c", "a"))
    assert vectors[np.array([False, True, True])].names == ("b", "c")
    assert [part.names for part in vectors] == [("a",), ("b",), ("c",)]
    np.testing.assert_array_equal(np.asarray(vectors[-1]), [[4, 5]])
    assert np.array(vectors, dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="2 names of 3 vectors"):
        Vectors(vectors.values, "i", "h", ("a", "b"))
    with pytest.raises(ValueError, match=r"must be \(N, D\)"):
        Vectors(vectors.values[0], "i", "h")


def test_what_the_space_does_not_define_is_refused_with_the_reason(opened: dict[str, Bundle], tmp_path: Path) -> None:
    bundle = opened["cosine"]
    h = bundle.embed(pictures(SIZES, 3))
    for options, line in (
        ({"metric": "euclidean"}, "metric 'euclidean': the space was trained with cosine on z (normalization l2)"),
        ({"layer": "h"}, "layer 'h': the space defines cosine on z, and a distance between h is not it"),
        ({"layer": "q"}, "layer 'q': the space defines h and z"),
    ):
        with pytest.raises(Refusal) as caught:
            bundle.distance(h, h, **options)
        assert line in str(caught.value)
    assert bundle.similarity(h, h, metric="cosine", layer="z").shape == (len(h), len(h))
    with pytest.raises(Refusal, match="ndarray: not known of which space; give what embed or read_vectors gave"):
        bundle.similarity(h.values, h)  # type: ignore[arg-type]
    other = load(bundled(tmp_path / "other", card(seed=3))[0]).embed(pictures(SIZES, 3))
    for first, second in ((h, other), (other, h), (other, other)):
        with pytest.raises(Refusal, match=r"vectors of another space .* another seed is another coordinate system"):
            bundle.similarity(first, second)
    with pytest.raises(Refusal, match="k = 8 of 7 vectors; must lie between 1 and 7"):
        bundle.neighbors(h, h, k=8)
    with pytest.raises(Refusal, match="vectors of 3 numbers; h of this bundle has 16"):
        bundle.similarity(Vectors(h.values[:, :3], h.identity, "h"), h)
    with pytest.raises(Refusal, match="embed: layer 'q': the space defines h and z"):
        bundle.embed(pictures(SIZES, 3), layer="q")  # type: ignore[arg-type]


def test_without_the_projection_h_is_read_and_not_compared(tmp_path: Path) -> None:
    bundle = load(bundled(tmp_path / "behind", projection=False)[0])
    h = bundle.embed(pictures(SIZES, 3))
    line = "the space declares cosine on z .*no projection; export it with export.projection: true"
    with pytest.raises(Refusal, match=f"vectors of layer h: {line}"):
        bundle.similarity(h, h)
    with pytest.raises(Refusal, match=f"embed: layer z: {line}"):
        bundle.embed(pictures(SIZES, 3), layer="z")


def test_where_the_loss_acted_on_h_itself_h_is_compared(tmp_path: Path) -> None:
    bundle = load(bundled(tmp_path / "none", card(projection={"kind": "none"}))[0])
    assert sorted(path.name for path in (tmp_path / "none").iterdir()) == [
        "README.md",
        "card.json",
        "encoder.safetensors",
    ]
    h = bundle.embed(pictures(SIZES, 3))
    np.testing.assert_allclose(bundle.similarity(h, h, layer="h"), oracle(h.values, h.values, "cosine"), atol=2e-6)
