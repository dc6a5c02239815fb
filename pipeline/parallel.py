"""Floor 0: NumPy work on all cores, block by block, with the same bits on any number of them.

A linear-algebra library that splits one product over its threads may add in another order on another machine, and its
threads wait for each other at every small product. Here a block is the work of one thread, the library is held to one,
and the results come in the order of the blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Each(Protocol):
    """A ``map`` whose work may run at the same time; results in the order of the items."""

    def __call__(self, work: Callable[[Item], Result], items: Iterable[Item], /) -> Iterator[Result]: ...


def in_turn(work: Callable[[Item], Result], items: Iterable[Item], /) -> Iterator[Result]:
    """The ``Each`` of one thread."""
    yield from map(work, items)


@contextmanager
def workers() -> Iterator[Each]:
    """Give an ``Each`` over as many threads as NumPy's products use now, and hold those to one thread meanwhile.

    Inside another ``workers`` that is one thread, so nested calls neither wait for each other nor multiply.
    """
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    libraries = ThreadpoolController().select(user_api="blas")
    threads = max((library["num_threads"] for library in libraries.info()), default=1)
    with libraries.limit(limits=1):
        if threads == 1:
            yield in_turn
        else:
            with ThreadPoolExecutor(threads) as pool:
                yield pool.map


def spans(count: int, length: int) -> list[slice]:
    """Cut ``count`` rows into consecutive slices of ``length`` (the last may be shorter)."""
    return [slice(start, min(start + length, count)) for start in range(0, count, length)]
