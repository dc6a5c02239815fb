"""Metrics: larger is closer, symmetric, largest for equal vectors, and a definite answer at zero."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics import METRICS, similarity, unit


@pytest.mark.parametrize("metric", sorted(METRICS))
@given(seed=st.integers(0, 10**6))
def test_similarity_is_symmetric_and_a_vector_is_closest_to_itself(metric, seed):
    z = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    if metric == "dot":
        z = unit(z)
    matrix = similarity(z, z, metric)
    assert torch.allclose(matrix, matrix.T)
    assert (matrix <= matrix.diagonal()[:, None] + 1e-12).all()


def test_distances_are_euclidean_and_enter_negated():
    a, b = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]])
    assert similarity(a, b, "euclidean").item() == -5
    assert similarity(a, b, "squared_euclidean").item() == -25
    assert similarity(b, b, "cosine").item() == pytest.approx(1)
    assert similarity(b, b, "dot").item() == 25


@pytest.mark.parametrize("metric", sorted(METRICS))
def test_zero_vectors_and_duplicates_have_finite_gradients(metric):
    z = torch.tensor([[0.0, 0.0], [1.0, 2.0], [1.0, 2.0]], requires_grad=True)
    matrix = similarity(z, z, metric)
    matrix.sum().backward()
    assert z.grad.isfinite().all()
    if metric == "cosine":
        assert (matrix[0] == 0).all()
        assert (z.grad[0] == 0).all()
