"""Exact nearest neighbours by cosine, in blocks that bound memory whatever the gallery's size.

A block of similarities is one matrix product. Sorting out its k largest would cost half as much as the product; so most
of a block is only compared with a floor that its query's k nearest are expected to lie above, and the few entries above
it are kept. The floor is a quantile of the query's similarities to a random sample of the gallery: the rank that leaves
k rows above it but for one query in a thousand. A query that it leaves fewer is searched again without one, so the
result is exact whatever the data.

Legend: Q queries, G gallery rows, D dimensions, k neighbours; q queries and g gallery rows of a block.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from pipeline.parallel import Each, spans, workers

Floats = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int64]

HEIGHT, WIDTH = 1024, 2048
"""Queries and gallery rows of a block: 8 MiB of similarities for each thread."""
SPARE = 512
"""Candidates of a query are cut back to the k best when there are more than 2k + SPARE of them."""
KEPT = 1 << 24
"""Candidates that are kept at once: 128 MiB. More queries than that allows are searched one part after the other."""
SAMPLE = 2048
"""Gallery rows that a floor is estimated from."""
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
    sample = _sample(gallery, k) if estimated else None
    parts = [_Candidates(asked[span], k, scratch) for span in spans(len(asked), HEIGHT)]
    if sample is not None:
        _all(each, partial(_Candidates.expect, sample=sample[0], rank=sample[1]), parts)
    for span in spans(len(gallery), WIDTH):
        _all(each, partial(_Candidates.look, rows=unit(gallery[span]), first=span.start), parts)
    _all(each, _Candidates.cut, parts)
    for span, part in zip(spans(len(asked), HEIGHT), parts, strict=True):
        similarity[span], index[span] = part.values[:, :k], part.places[:, :k]
    (short,) = np.nonzero((similarity == -np.inf).any(axis=1))
    if estimated and len(short):  # the sample promised too much
        again = similarity[short], index[short]
        _search(asked[short], gallery, k, each, *again, estimated=False)
        similarity[short], index[short] = again


def _sample(gallery: Floats, k: int) -> tuple[Floats, int] | None:
    """Random gallery rows of length one, and the rank among them that leaves k of all rows above it; None: too few.

    Of the k nearest rows the sample holds about s = k · SAMPLE / G. The number of rows above the sample's rank r has
    the relative deviation 1 / sqrt(r), so r - 3 sqrt(r) = s keeps it above k.
    """
    if len(gallery) < FEWEST * SAMPLE:
        return None
    rank = math.ceil((1.5 + math.sqrt(2.25 + k * SAMPLE / len(gallery))) ** 2)
    if rank > SAMPLE // FEWEST:
        return None
    chosen = np.sort(np.random.default_rng(0).choice(len(gallery), SAMPLE, replace=False))
    return unit(gallery[chosen]), rank


class _Candidates:
    """What may be among the k nearest rows of some queries: all that lies above their floors, in no order.

    values (q, 2k + SPARE) similarities, -inf where nothing is; places (q, 2k + SPARE) their gallery rows; filled (q,)
    how many columns are taken; floor (q,) no row at or below it is kept.
    """

    def __init__(self, asked: Floats, k: int, scratch: threading.local):
        self.asked, self.k, self.scratch = asked, k, scratch
        self.values = np.full((len(asked), 2 * k + SPARE), -np.inf, np.float32)
        self.places = np.zeros(self.values.shape, np.int32)
        self.filled = np.zeros(len(asked), np.int64)
        self.floor = np.full(len(asked), -np.inf, np.float32)

    def expect(self, sample: Floats, rank: int) -> None:
        """Set each floor to the rank-th largest similarity to the sample."""
        scores = self._scores(sample)
        scores.partition(len(sample) - rank, axis=1)
        self.floor = scores[:, len(sample) - rank].copy()

    def look(self, rows: Floats, first: int) -> None:
        """Keep what lies above the floor among gallery rows (g, D), whose first is row ``first``."""
        scores = self._scores(rows)
        for full in (False, True):
            above = np.greater(scores, self.floor[:, None], out=self._mask(scores.shape))
            if np.count_nonzero(above) <= above.shape[0] * self.values.shape[1]:
                found = np.flatnonzero(above)
                query, row = np.divmod(found, len(rows))
                counts = np.bincount(query, minlength=len(scores))
                if (self.filled + counts).max() <= self.values.shape[1]:
                    starts = np.cumsum(counts) - counts
                    slot = np.arange(len(found)) - np.repeat(starts - self.filled, counts)
                    self.values[query, slot] = scores.reshape(-1)[found]
                    self.places[query, slot] = row + first
                    self.filled += counts
                    return
            if not full:
                self.cut()  # which raises the floors
        self._merge(np.where(above, scores, -np.inf), first)

    def cut(self) -> None:
        """Keep the k best of each query; the worst of k is its floor from now on."""
        best = np.argpartition(self.values, -self.k, axis=1)[:, -self.k :]
        self._keep(np.take_along_axis(self.values, best, 1), np.take_along_axis(self.places, best, 1))

    def _merge(self, scores: Floats, first: int) -> None:
        """Take the k best of what is kept, after ``cut``, and of a whole block (q, g), -inf where the floor bars it."""
        both = np.concatenate([self.values[:, : self.k], scores], axis=1)
        best = np.argpartition(both, -self.k, axis=1)[:, -self.k :]
        old = np.take_along_axis(self.places, np.minimum(best, self.k - 1), 1)
        self._keep(np.take_along_axis(both, best, 1), np.where(best < self.k, old, best - self.k + first))

    def _keep(self, values: Floats, places: npt.NDArray[np.integer]) -> None:
        self.values[:, : self.k], self.places[:, : self.k] = values, places
        self.values[:, self.k :] = -np.inf
        self.filled[:] = self.k  # places of -inf among them, where fewer were found
        self.floor = np.maximum(self.floor, values.min(axis=1))  # -inf where there are fewer than k

    def _scores(self, rows: Floats) -> Floats:
        """Similarities (q, g) to gallery rows (g, D), in this thread's memory."""
        if not hasattr(self.scratch, "scores"):
            self.scratch.scores = np.empty(HEIGHT * max(WIDTH, SAMPLE), np.float32)
            self.scratch.mask = np.empty(HEIGHT * WIDTH, np.bool_)
        shape = (len(self.asked), len(rows))
        scores: Floats = self.scratch.scores[: math.prod(shape)].reshape(shape)
        return np.matmul(self.asked, rows.T, out=scores)

    def _mask(self, shape: tuple[int, int]) -> npt.NDArray[np.bool_]:
        mask: npt.NDArray[np.bool_] = self.scratch.mask[: math.prod(shape)].reshape(shape)
        return mask


def _all(each: Each, work: Callable[[_Candidates], None], parts: list[_Candidates]) -> None:
    for _ in each(work, parts):
        pass
