"""Spread and matching on spaces of known geometry."""

import numpy as np
import pytest

from pipeline.achieved.references import matching, spread
from pipeline.audit.estimate import NotComputable

RANDOM = np.random.default_rng(0)


def rows(n=400, d=8):
    return RANDOM.normal(size=(n, d)).astype(np.float32)


def test_centred_rows_are_all_spread_and_one_point_is_none():
    centred = rows()
    centred -= centred.mean(axis=0)
    assert spread(centred).value == pytest.approx(1, abs=1e-6)
    assert spread(np.full((50, 4), 3.7, dtype=np.float32)).value == pytest.approx(0, abs=1e-12)
    assert spread(np.zeros((50, 4), dtype=np.float32)).value == 0


@pytest.mark.parametrize("away", [0.5, 3.0, 30.0])
def test_the_spread_is_variance_over_mean_square_length_and_its_interval_holds_it(away):
    """Of standard normal rows moved by ``away`` in each of 8 dimensions: 1 / (1 + away²)."""
    truth, held = 1 / (1 + away**2), 0
    for _ in range(60):
        found = spread(rows(300) + np.float32(away))
        held += found.low <= truth <= found.high
    assert held >= 51


def test_the_spread_needs_numbers():
    with pytest.raises(NotComputable, match="NaN"):
        spread(np.full((5, 2), np.nan, dtype=np.float32))


def test_equal_views_match_and_unrelated_ones_do_not():
    first = rows()
    assert matching(first, 2 * first).value == 1
    unrelated = matching(first, rows())
    assert unrelated.value < 0.03
    assert unrelated.count == 400


def test_half_of_the_views_match_where_half_are_equal():
    first, second = rows(), rows()
    second[:200] = first[:200]
    found = matching(first, second)
    assert found.low < 0.5 < found.high


def test_a_collapsed_space_matches_nothing_and_says_so():
    with pytest.raises(NotComputable, match="all rows are equal"):
        matching(np.ones((50, 4), dtype=np.float32), np.ones((50, 4), dtype=np.float32))
