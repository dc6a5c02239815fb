"""The crowd in the denominator costs what NT-Xent costs, and gives the numbers worked out by hand in the literature."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from pipeline.objectives import nt_xent
from pipeline.report.laboratory import Crowd, crowd, false_negatives, negatives_of, same_class_share

DOUBLE = torch.float64


def by_cross_entropy(negatives: int, temperature: float, positive: float, negative: float) -> tuple[float, list[float]]:
    """Loss and its gradient by each similarity, the positive's first."""
    similarities = torch.tensor([positive, *[negative] * negatives], dtype=DOUBLE, requires_grad=True)
    loss = functional.cross_entropy((similarities / temperature)[None], torch.tensor([0]))
    loss.backward()
    assert similarities.grad is not None
    return loss.item(), similarities.grad.tolist()


@given(
    negatives=st.integers(1, 200),
    temperature=st.floats(0.01, 2),
    positive=st.floats(-1, 1),
    negative=st.floats(-1, 1),
)
def test_loss_and_gradients_are_those_of_the_cross_entropy(
    negatives: int, temperature: float, positive: float, negative: float
) -> None:
    found = crowd(negatives, temperature, positive, negative)
    loss, gradient = by_cross_entropy(negatives, temperature, positive, negative)
    assert found.loss == pytest.approx(loss, rel=1e-9, abs=1e-12)
    assert found.positive_share == pytest.approx(math.exp(-found.loss), rel=1e-9)
    assert found.positive_gradient == pytest.approx(gradient[0], rel=1e-6, abs=1e-12)
    assert found.each_gradient == pytest.approx(gradient[1], rel=1e-6, abs=1e-12)
    assert found.all_gradient == pytest.approx(sum(gradient[1:]), rel=1e-6, abs=1e-11)
    assert found.positive_gradient + found.all_gradient == 0
    assert found.positive_share + found.negative_share == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("similarity", [-0.25, 0.0, 0.2, 0.6])
def test_it_is_nt_xent_of_a_batch_whose_pairs_are_all_equally_similar(similarity: float) -> None:
    """Samples at equal angles (a simplex, or a cone about one direction), whose two views are one point."""
    samples, temperature = 5, 0.1
    gram = torch.full((samples, samples), similarity, dtype=DOUBLE).fill_diagonal_(1.0)
    values, vectors = torch.linalg.eigh(gram)
    z = (vectors * values.clamp(min=0).sqrt()).repeat_interleave(2, dim=0)
    found = crowd(negatives_of(samples), temperature, 1.0, similarity)
    assert nt_xent(z, temperature).item() == pytest.approx(found.loss, abs=1e-9)


def test_sixty_four_samples_at_a_tenth_with_similarities_0_7_and_0_2() -> None:
    """The worked example of the articles: 126 negatives, p 0.54, gradients -4.6 and 0.0365."""
    assert negatives_of(64) == 126
    found = crowd(126, 0.1, 0.7, 0.2)
    assert found.weight == pytest.approx(math.exp(5))
    assert found.positive_share == pytest.approx(148.413159 / (148.413159 + 126), abs=1e-8)
    assert (round(found.positive_share, 2), round(found.loss, 4)) == (0.54, 0.6146)
    assert round(found.positive_gradient, 2) == -4.59
    assert round(found.each_gradient, 4) == 0.0364
    assert found.log_k == math.log(127)


def test_one_view_of_each_other_sample_alone_would_give_other_numbers() -> None:
    """B - 1 negatives is the convention of a target network or of two towers: p 0.70, loss 0.35."""
    found = crowd(63, 0.1, 0.7, 0.2)
    assert (round(found.positive_share, 2), round(found.loss, 2)) == (0.70, 0.35)


def test_four_identical_negatives_and_a_positive_of_probability_0_6() -> None:
    """At temperature 0.2 each negative has probability 0.1 and gradient 0.5, the positive -2."""
    found = crowd(4, 0.2, 0.2 * math.log(6), 0.0)
    assert found.positive_share == pytest.approx(0.6)
    assert found.each_gradient == pytest.approx(0.5)
    assert found.positive_gradient == pytest.approx(-2)


def test_ten_balanced_classes_give_12_6_false_negatives_of_126_and_four_classes_7_5_of_30() -> None:
    assert false_negatives(126, same_class_share([100] * 10)) == pytest.approx(12.6)
    assert false_negatives(30, same_class_share([7] * 4)) == pytest.approx(7.5)
    assert same_class_share([2, 1, 1]) == pytest.approx(0.375)
    assert same_class_share([]) == 0


@given(batch=st.integers(2, 1 << 20), temperature=st.floats(0.02, 2), gap=st.floats(-2, 2))
def test_a_larger_batch_costs_more_and_never_more_than_its_log_k_does(
    batch: int, temperature: float, gap: float
) -> None:
    one, two = (crowd(negatives_of(b), temperature, gap, 0.0) for b in (batch, 2 * batch))
    assert one.loss <= two.loss
    assert two.loss - one.loss <= math.log(negatives_of(2 * batch) / negatives_of(batch)) + 1e-9
    collapsed = crowd(negatives_of(batch), temperature, 1.0, 1.0)
    assert collapsed.loss == pytest.approx(collapsed.log_k)


@given(values=st.lists(st.floats(-1, 1), min_size=2, max_size=30), temperature=st.floats(0.05, 1))
def test_negatives_of_the_same_mean_and_some_spread_cost_at_least_as_much(
    values: list[float], temperature: float
) -> None:
    logits = torch.tensor([0.5, *values], dtype=DOUBLE)[None] / temperature
    spread = functional.cross_entropy(logits, torch.tensor([0])).item()
    assert crowd(len(values), temperature, 0.5, sum(values) / len(values)).loss <= spread + 1e-9


def test_extremes_keep_their_digits_and_never_overflow() -> None:
    easy, hard = crowd(2, 0.003, 1.0, -1.0), crowd(1e9, 0.003, -1.0, 1.0)
    assert 0 < easy.negative_share < 1e-280
    assert easy.loss == pytest.approx(easy.negative_share)
    assert hard.loss == pytest.approx(math.log(1e9) + 2 / 0.003)
    assert all(math.isfinite(value) for found in (easy, hard) for value in vars(found).values())
    assert isinstance(easy, Crowd)


@pytest.mark.parametrize(("negatives", "temperature"), [(0, 0.1), (-2, 0.1), (3, 0.0), (3, -1.0), (math.nan, 1.0)])
def test_what_is_no_crowd_is_refused(negatives: float, temperature: float) -> None:
    with pytest.raises(ValueError, match="needs at least 1"):
        crowd(negatives, temperature, 0.5, 0.0)
