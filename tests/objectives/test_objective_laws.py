"""Every law for every member of the union of objectives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import LAWS
from table import MEMBERS, PLAIN, TABLE

pytestmark = pytest.mark.usefixtures("one_thread")


def test_every_member_of_the_union_has_a_row():
    assert set(TABLE) == set(PLAIN) == set(MEMBERS)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("kind", MEMBERS)
@given(seed=st.integers(0, 10**6))
def test_law(kind, law, seed):
    LAWS[law](kind, seed)
