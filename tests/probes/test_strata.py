"""Rows that a probe may see: by class, with fixed seeds, each row in its place."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.probes import strata
from pipeline.probes.strata import few_labels, held_out, too_few

CODES = st.lists(st.integers(0, 4), min_size=1, max_size=200).map(np.array)


@given(CODES)
def test_held_out_rows_are_a_fifth_of_each_class_and_at_least_one(codes):
    inside, outside = held_out(codes)
    assert sorted([*inside, *outside]) == list(range(len(codes)))
    for code in set(codes.tolist()):
        size, held = (codes == code).sum(), (codes[outside] == code).sum()
        assert held == (max(1, size // 5) if size > 1 else 0)


def test_of_many_rows_some_are_taken(monkeypatch):
    monkeypatch.setattr(strata, "CHOSEN_BY", 50)
    inside, outside = held_out(np.arange(1000) % 2)
    assert len(inside) + len(outside) == len({*inside, *outside}) == 50
    assert max(inside) > 500


@given(CODES, st.integers(1, 99), st.integers(0, 9))
def test_a_draw_has_its_share_of_each_class_rounded_half_up(codes, percent, draw):
    rows = few_labels(codes, percent, draw)
    assert len(set(rows.tolist())) == len(rows)
    assert (np.diff(rows) > 0).all()
    for code in set(codes.tolist()):
        assert (codes[rows] == code).sum() == int((codes == code).sum() * percent / 100 + 0.5)


@given(CODES, st.integers(1, 99))
def test_a_class_that_no_draw_can_have_is_named(codes, percent):
    sizes = {code: int((codes == code).sum()) for code in set(codes.tolist())}
    none = {code for code, size in sizes.items() if int(size * percent / 100 + 0.5) == 0}
    found = too_few(codes, percent)
    assert (found is not None) == bool(none)
    if found is not None:
        assert found[0] in none
        assert found[1] == sizes[found[0]] == min(sizes.values())


def test_draws_differ_and_come_back():
    codes = np.arange(1000) % 10
    draws = [few_labels(codes, 10, draw).tolist() for draw in range(4)]
    assert draws == [few_labels(codes, 10, draw).tolist() for draw in range(4)]
    assert len({tuple(draw) for draw in draws}) == 4
    assert len({row for draw in draws for row in draw}) > 300  # 344 expected of four independent tenths
    assert few_labels(codes, 10, 0).tolist() != few_labels(codes, 11, 0)[: len(draws[0])].tolist()


def test_each_row_of_a_class_is_drawn_equally_often():
    codes = np.repeat([0, 1], [10, 30])
    counts = np.zeros(40)
    for draw in range(500):
        counts[few_labels(codes, 20, draw)] += 1
    assert counts == pytest.approx(np.full(40, 100), abs=45)  # five deviations
