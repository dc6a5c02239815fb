"""Exact nearest neighbours by cosine, in blocks that bound memory whatever the gallery's size.

A block of similarities is one matrix product. Sorting out its k largest would cost half as much as the product; so most
of a block is only compared with a floor that its query's k nearest are expected to lie above, and the few entries above
it are kept. The floor is a quantile of the query's similarities to a random sample of the gallery, which is its first
block: the rank that leaves k rows above it but for one query in a thousand. A query that it leaves fewer is searched
again without one, so the result is exact whatever the data. While the threads work on a block, they scale the rows of
the next one.

Legend: Q queries, G gallery rows, D dimensions, k neighbours; q queries and g gallery rows of a block.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.candidates import Candidates
from pipeline.parallel import Each, spans, workers

Floats = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int64]

HEIGHT, WIDTH = 1024, 2048
"""Queries and gallery rows of a block: 8 MiB of similarities for each thread."""
SPARE = 640
"""Candidates of a query are cut back to the k best when there are more than 2k + SPARE of them."""
KEPT = 1 << 24
"""Candidates that are kept at once: 128 MiB. More queries than that allows are searched one part after the other."""
SAMPLE = 2048
"""Gallery rows that a floor is estimated from."""
SCALED = 512
"""Gallery rows that a thread scales to length one at once."""
FEWEST = 4
"""A gallery of fewer samples than this is searched without a floor."""


def unit(rows: npt.NDArray[np.floating]) -> Floats:
    """Scale rows (N, D) to length one, in float32. A row of zeros stays zeros.

    Lengths are taken after dividing by the largest entry, so that tiny and huge rows neither vanish nor overflow.
    """
    largest = np.maximum(rows.max(axis=1, keepdims=True), -rows.min(axis=1, keepdims=True))
    scaled: Floats = np.divide(rows, np.where(largest > 0, largest, 1), dtype=np.float32)
    lengths = np.sqrt(np.einsum("nd,nd->n", scaled, scaled))[:, None]
    scaled /= np.where(lengths > 0, lengths, 1)
    return scaled


def nearest_rows(queries: Floats, gallery: Floats, k: int) -> tuple[Floats, Codes]:
    """Find the ``k`` gallery rows of largest cosine for each query, in no particular order.

    Args:
        queries: (Q, D) rows of any length; memory-mapped ones are read block by block.
        gallery: (G, D) likewise.
        k: 1 <= k <= G.

    Returns:
        (similarity, index), both (Q, k). Of equal similarities at the border any may be kept.

    Raises:
        ValueError: k outside 1..G, or unequal dimensions.
    """
    if not 1 <= k <= len(gallery):
        raise ValueError(f"k = {k}: must lie between 1 and the {len(gallery)} gallery rows")
    if queries.shape[1] != gallery.shape[1]:
        raise ValueError(f"queries have {queries.shape[1]} dimensions, the gallery {gallery.shape[1]}")
    similarity = np.empty((len(queries), k), np.float32)
    index = np.empty((len(queries), k), np.int64)
    with workers() as each:
        for some in spans(len(queries), max(1, KEPT // (2 * k + SPARE))):
            _search(unit(queries[some]), gallery, k, each, similarity[some], index[some])
    return similarity, index


def nearest_others(rows: Floats, chosen: Codes, k: int) -> Codes:
    """Return (len(chosen), k): the ``k`` nearest rows of each chosen row among all other rows.

    Args:
        rows: (N, D) of any length, N > k.
        chosen: indices of the rows that ask; a row is never its own neighbour, whatever else lies on the same spot.
    """
    similarity, index = nearest_rows(rows[chosen], rows, k + 1)
    order = np.where(index == chosen[:, None], -np.inf, similarity)  # oneself is dropped first, else the farthest
    kept = np.argsort(-order, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(index, kept, axis=1)


def _search(
    asked: Floats, gallery: Floats, k: int, each: Each, similarity: Floats, index: Codes, estimated: bool = True
) -> None:
    """Write similarity and index (q, k) of the nearest rows of queries (q, D) of length one."""
    scratch = threading.local()
    sample = _sample(len(gallery), k) if estimated else None
    pieces = _even(len(asked), HEIGHT)
    parts = [Candidates(asked[span], k, 2 * k + SPARE, scratch) for span in pieces]
    blocks = list(_blocks(len(gallery), sample))
    ready = _Block.of(gallery, blocks[0])
    _all(each, ready.scaling)
    for number in range(len(blocks)):
        block = ready
        rank = sample.rank if number == 0 and sample is not None else None
        work: list[Callable[[], None]] = [partial(part.look, block.rows, block.places, rank) for part in parts]
        if number + 1 < len(blocks):
            ready = _Block.of(gallery, blocks[number + 1])
            work = [*ready.scaling, *work]
        _all(each, work)
    _all(each, [part.cut for part in parts])
    for span, part in zip(pieces, parts, strict=True):
        similarity[span], index[span] = part.values[:, :k], part.places[:, :k]
    (short,) = np.nonzero((similarity == -np.inf).any(axis=1))
    if estimated and len(short):  # the sample promised too much
        again = similarity[short], index[short]
        _search(asked[short], gallery, k, each, *again, estimated=False)
        similarity[short], index[short] = again


class _Sample(NamedTuple):
    """Some gallery rows, and the rank among them that is expected to leave k of all rows above it."""

    places: Codes
    rank: int


def _sample(count: int, k: int) -> _Sample | None:
    """A random sample of ``count`` gallery rows; None: they are too few, or k is too large.

    Of the k nearest rows the sample holds about s = k · SAMPLE / G. The number of rows above the sample's rank r has
    the relative deviation 1 / sqrt(r), so r - 3 sqrt(r) = s keeps it above k.
    """
    if count < FEWEST * SAMPLE:
        return None
    rank = math.ceil((1.5 + math.sqrt(2.25 + k * SAMPLE / count)) ** 2)
    if rank > SAMPLE // FEWEST:
        return None
    return _Sample(np.sort(np.random.default_rng(0).choice(count, SAMPLE, replace=False)), rank)


def _blocks(count: int, sample: _Sample | None) -> Iterator[slice | Codes]:
    """Cut ``count`` gallery rows into blocks: the sample first, then all others in their order."""
    if sample is None:
        yield from spans(count, WIDTH)
        return
    yield sample.places
    others = np.ones(count, np.bool_)
    others[sample.places] = False
    for span in spans(count, WIDTH):
        places = span.start + np.flatnonzero(others[span])
        if len(places):
            yield places


def _even(count: int, most: int) -> list[slice]:
    """Cut ``count`` rows into as few slices of at most ``most`` as there can be, all of nearly the same length."""
    parts = -(-count // most)
    return [slice(number * count // parts, (number + 1) * count // parts) for number in range(parts)]


class _Block(NamedTuple):
    """Gallery rows of length one (g, D), once ``scaling`` is done, and their places (g,)."""

    rows: Floats
    places: Codes
    scaling: list[Callable[[], None]]

    @classmethod
    def of(cls, gallery: Floats, chosen: slice | Codes) -> _Block:
        """The block of a slice or of some places of the gallery; its rows are empty yet."""
        places = np.arange(chosen.start, chosen.stop) if isinstance(chosen, slice) else chosen
        rows = np.empty((len(places), gallery.shape[1]), np.float32)

        def scale(span: slice) -> None:
            rows[span] = unit(gallery[chosen][span] if isinstance(chosen, slice) else gallery[chosen[span]])

        return cls(rows, places, [partial(scale, span) for span in spans(len(places), SCALED)])


def _all(each: Each, work: list[Callable[[], None]]) -> None:
    for _ in each(lambda one: one(), work):
        pass
