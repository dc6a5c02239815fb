"""Work on all cores gives what one gives, in order, and hands the libraries' threads back."""

import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from pipeline.parallel import in_turn, spans, workers


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_results_come_in_the_order_of_the_items():
    def slow_first(item):
        time.sleep(0.02 if item == 0 else 0)
        return item

    with threadpool_limits(2, "blas"), workers() as each:
        assert each is not in_turn
        assert list(each(slow_first, range(5))) == [0, 1, 2, 3, 4]


def test_libraries_are_held_to_one_thread_meanwhile_and_released_after():
    with threadpool_limits(2, "blas"):
        before = blas_threads()
        with workers():
            assert blas_threads() == {1}
            with workers() as inner:
                assert inner is in_turn
        assert blas_threads() == before


def test_an_error_in_the_work_reaches_the_caller_and_releases_the_threads():
    def broken(item):
        raise ZeroDivisionError(item)

    with threadpool_limits(2, "blas"):
        before = blas_threads()
        with pytest.raises(ZeroDivisionError), workers() as each:
            list(each(broken, [1]))
        assert blas_threads() == before


@pytest.mark.parametrize(("count", "length"), [(0, 3), (1, 3), (6, 3), (7, 3), (2, 100)])
def test_spans_cut_all_rows_once(count, length):
    rows = np.arange(count)
    assert [row for span in spans(count, length) for row in rows[span]] == list(range(count))
    assert all(0 < span.stop - span.start <= length for span in spans(count, length))
