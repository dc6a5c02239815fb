"""What may be among the k nearest rows of some queries, while blocks of a gallery go by.

Legend: q queries, g gallery rows of a block, D dimensions, k neighbours.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int64]


class Candidates:
    """What may be among the k nearest rows of some queries: all that lies above their floors, in no order.

    values (q, room) similarities, -inf where nothing is; places (q, room) their gallery rows; filled (q,) how many
    columns are taken; floor (q,) no row at or below it is kept.
    """

    def __init__(self, asked: Floats, k: int, room: int, scratch: threading.local):
        self.asked, self.k, self.scratch = asked, k, scratch
        self.values = np.full((len(asked), room), -np.inf, np.float32)
        self.places = np.zeros(self.values.shape, np.int32)
        self.filled = np.zeros(len(asked), np.int64)
        self.floor = np.full(len(asked), -np.inf, np.float32)

    def look(self, rows: Floats, places: Codes, rank: int | None = None) -> None:
        """Keep what lies above the floor among gallery rows (g, D), which lie at ``places`` (g,).

        Args:
            rank: if given, each floor is first set to the rank-th largest similarity to these rows.
        """
        scores = self._scores(rows)
        if rank is not None:
            self.floor = np.partition(scores, len(rows) - rank, axis=1)[:, len(rows) - rank].copy()
        for full in (False, True):
            above = np.greater(scores, self.floor[:, None], out=self._own("mask", len(rows), np.bool_))
            if np.count_nonzero(above) <= above.shape[0] * self.values.shape[1]:
                found = np.flatnonzero(above)
                query, row = np.divmod(found, len(rows))
                counts = np.bincount(query, minlength=len(scores))
                if (self.filled + counts).max() <= self.values.shape[1]:
                    starts = np.cumsum(counts) - counts
                    slot = np.arange(len(found)) - np.repeat(starts - self.filled, counts)
                    self.values[query, slot] = scores.reshape(-1)[found]
                    self.places[query, slot] = places[row]
                    self.filled += counts
                    return
            if not full:
                self.cut()  # which raises the floors
        self._merge(np.where(above, scores, -np.inf), places)

    def cut(self) -> None:
        """Keep the k best of each query; the worst of k is its floor from now on."""
        best = _largest(self.values[:, : max(self.k, int(self.filled.max()))], self.k)
        self._keep(np.take_along_axis(self.values, best, 1), np.take_along_axis(self.places, best, 1))

    def _merge(self, scores: Floats, places: Codes) -> None:
        """Take the k best of what is kept, after ``cut``, and of a whole block (q, g), -inf where the floor bars it."""
        both = np.concatenate([self.values[:, : self.k], scores], axis=1)
        best = _largest(both, self.k)
        old = np.take_along_axis(self.places, np.minimum(best, self.k - 1), 1)
        new = places[np.maximum(best - self.k, 0)]
        self._keep(np.take_along_axis(both, best, 1), np.where(best < self.k, old, new))

    def _keep(self, values: Floats, places: npt.NDArray[np.integer]) -> None:
        self.values[:, : self.k], self.places[:, : self.k] = values, places
        self.values[:, self.k :] = -np.inf
        self.filled[:] = self.k  # places of -inf among them, where fewer were found
        self.floor = np.maximum(self.floor, values.min(axis=1))  # -inf where there are fewer than k

    def _scores(self, rows: Floats) -> Floats:
        """Similarities (q, g) to gallery rows (g, D), in this thread's memory."""
        scores: Floats = np.matmul(self.asked, rows.T, out=self._own("scores", len(rows), np.float32))
        return scores

    def _own(self, name: str, width: int, kind: type[np.generic]) -> npt.NDArray[Any]:
        """This thread's memory (q, width) for one purpose; what was in it is lost."""
        size, memory = len(self.asked) * width, getattr(self.scratch, name, None)
        if memory is None or len(memory) < size:
            memory = np.empty(size, kind)
            setattr(self.scratch, name, memory)
        own: npt.NDArray[Any] = memory[:size].reshape(len(self.asked), width)
        return own


def _largest(values: Floats, k: int) -> Codes:
    """Columns (q, k) of the k largest values of each row (q, n), rising; of equal ones at the border the first.

    A partition of the values alone is many times faster than one of their places.
    """
    border = np.partition(values, values.shape[1] - k, axis=1)[:, values.shape[1] - k, None]  # (q, 1)
    kept, level = values > border, values == border
    wanted = k - np.count_nonzero(kept, axis=1, keepdims=True)
    (tied,) = np.nonzero(np.count_nonzero(level, axis=1) > wanted[:, 0])
    if len(tied):
        level[tied] &= np.cumsum(level[tied], axis=1) <= wanted[tied]
    columns: Codes = np.flatnonzero(kept | level).reshape(len(values), k) % values.shape[1]
    return columns
