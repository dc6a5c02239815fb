"""Keys: randomness is a function of (seed, epoch, sample, view, stream), with the distributions that it claims."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pipeline.keys import Keys, normal_field, permutation

COUNT = 20_000
ANY = st.integers(min_value=-(2**63), max_value=2**63 - 1)


@given(seed=ANY, epoch=st.integers(0, 10**6), sample=st.lists(ANY, min_size=1, max_size=20), view=st.integers(0, 9))
def test_a_draw_depends_on_its_own_row_alone(seed: int, epoch: int, sample: list[int], view: int) -> None:
    whole = Keys.of(seed, epoch, sample, view).fold(3).uniform("x", shape=(2,))
    for row, one in enumerate(sample):
        assert torch.equal(Keys.of(seed, epoch, [one], [view]).fold(3).uniform("x", shape=(2,))[0], whole[row])


@given(index=st.lists(st.integers(0, 99), max_size=30))
def test_taking_rows_and_drawing_commute(index: list[int]) -> None:
    keys = Keys.of(1, 2, np.arange(100), 0)
    rows = np.array(index, np.int64)
    assert torch.equal(keys.take(rows).normal("x"), keys.normal("x")[rows])
    assert len(keys.take(rows)) == len(rows)


def test_every_one_of_the_four_numbers_and_the_stream_changes_the_draw() -> None:
    base = Keys.of(1, 2, [3], 4).uniform("x")
    others = [
        Keys.of(9, 2, [3], 4).uniform("x"),
        Keys.of(1, 9, [3], 4).uniform("x"),
        Keys.of(1, 2, [9], 4).uniform("x"),
        Keys.of(1, 2, [3], 9).uniform("x"),
        Keys.of(2, 1, [3], 4).uniform("x"),
        Keys.of(1, 2, [4], 3).uniform("x"),
        Keys.of(1, 2, [3], 4).uniform("y"),
        Keys.of(1, 2, [3], 4).fold(0).uniform("x"),
        Keys.of(1, 2, [3], 4).fold(1).uniform("x"),
        Keys.of(1, 2, [3], 4).fold("1").uniform("x"),
        Keys.of(1, 2, [3], 4).uniform(1),
    ]
    assert len({float(value) for value in (base, *others)}) == len(others) + 1


def test_the_words_never_change_between_versions() -> None:
    """Views of old runs must be reproducible: these numbers were written down when the generator was fixed."""
    keys = Keys.of(7, 3, [0, 1, 41], [0, 1, 0])
    assert keys.words.tolist() == WORDS
    assert permutation(0, 0, 8).tolist() == ORDER


WORDS = [3357275698846898686, 2159759276229009246, 1048639607340527806]
ORDER = [3, 0, 1, 4, 2, 5, 7, 6]


def test_a_million_keys_are_all_different() -> None:
    words = np.concatenate([Keys.of(0, 0, np.arange(500_000), view).words for view in (0, 1)])
    assert len(np.unique(words)) == len(words)


def test_uniform_numbers_fill_their_range_evenly() -> None:
    values = Keys.of(0, 0, np.arange(COUNT), 0).uniform("x", -3.0, 5.0).numpy()
    assert values.dtype == np.float32
    assert values.min() >= -3.0
    assert values.max() <= 5.0
    assert stats.kstest((values + 3.0) / 8.0, "uniform").pvalue > 1e-3


def test_normal_numbers_are_normal() -> None:
    values = Keys.of(0, 0, np.arange(COUNT), 0).normal("x", 2.0, 3.0, shape=(2,)).numpy()
    assert stats.kstest((values.ravel() - 2.0) / 3.0, "norm").pvalue > 1e-3


def test_integers_are_equally_likely() -> None:
    values = Keys.of(0, 0, np.arange(COUNT), 0).integers("x", -2, 5)
    counts = np.bincount(values.numpy() + 2)
    assert len(counts) == 7
    assert stats.chisquare(counts).pvalue > 1e-3


def test_an_empty_range_of_integers_is_an_error() -> None:
    with pytest.raises(ValueError, match="between 1 and"):
        Keys.of(0, 0, [0]).integers("x", 3, 3)


def test_orders_are_permutations_and_equally_likely() -> None:
    orders = Keys.of(0, 0, np.arange(COUNT), 0).orders("x", 4)
    assert torch.equal(orders.sort(1).values, torch.arange(4).expand(COUNT, 4))
    codes = (orders * torch.tensor([64, 16, 4, 1])).sum(1).numpy()
    counts = np.unique(codes, return_counts=True)[1]
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("other", ["view", "sample", "epoch", "seed", "stream", "counter"])
def test_draws_of_neighbouring_keys_are_uncorrelated(other: str) -> None:
    rows = np.arange(COUNT)
    first = Keys.of(0, 0, rows, 0).uniform("x", shape=(2,)).numpy()
    second = {
        "view": Keys.of(0, 0, rows, 1).uniform("x"),
        "sample": Keys.of(0, 0, rows + 1, 0).uniform("x"),
        "epoch": Keys.of(0, 1, rows, 0).uniform("x"),
        "seed": Keys.of(1, 0, rows, 0).uniform("x"),
        "stream": Keys.of(0, 0, rows, 0).uniform("y"),
        "counter": first[:, 1],
    }[other]
    assert abs(np.corrcoef(first[:, 0], np.asarray(second))[0, 1]) < 5 / COUNT**0.5


@given(seed=ANY, epoch=st.integers(0, 1000), count=st.integers(0, 200))
def test_the_order_of_an_epoch_holds_every_sample_once(seed: int, epoch: int, count: int) -> None:
    order = permutation(seed, epoch, count)
    assert order.dtype == np.int64
    assert sorted(order.tolist()) == list(range(count))
    assert np.array_equal(order, permutation(seed, epoch, count))


def test_epochs_have_unrelated_orders() -> None:
    first, second = permutation(0, 0, COUNT), permutation(0, 1, COUNT)
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / COUNT**0.5


def test_a_normal_field_is_normal_and_its_rows_stand_alone() -> None:
    words = torch.from_numpy(Keys.of(0, 0, np.arange(40), 0).words.view(np.int64))
    field = normal_field(words, (3, 11, 13))
    assert field.shape == (40, 3, 11, 13)
    assert stats.kstest(field.flatten().numpy(), "norm").pvalue > 1e-3
    assert torch.equal(normal_field(words[7:9], (3, 11, 13)), field[7:9])
    assert abs(np.corrcoef(field[:-1].flatten().numpy(), field[1:].flatten().numpy())[0, 1]) < 5 / field.numel() ** 0.5
