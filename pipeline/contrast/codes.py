"""Rules as integer codes, one a row, and the pairs for which they hold, as lists.

Few rows usually share a code, so that the pairs of a rule are a short list, found by sorting.

Shapes: A anchors, C candidates, P pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Codes(NamedTuple):
    """One rule's integers: of the anchors (A,) and of the candidates (C,), int64, equal where the rule holds."""

    anchors: Tensor
    candidates: Tensor

    def tile(self, rows: slice, columns: slice) -> Tensor:
        """Where the rule holds in a block of anchors by candidates: bool."""
        return self.anchors[rows, None] == self.candidates[None, columns]

    def at(self, pairs: Pairs) -> Tensor:
        """Where the rule holds in a list of pairs: bool (P,)."""
        return self.anchors[pairs.rows] == self.candidates[pairs.columns]

    def held(self) -> Tensor:
        """For how many candidates the rule holds, of each anchor: (A,)."""
        ordered = self.candidates.sort().values
        return torch.searchsorted(ordered, self.anchors, right=True) - torch.searchsorted(ordered, self.anchors)

    def pairs(self, limit: float) -> Pairs | None:
        """All pairs for which the rule holds, by anchor; None where they are more than ``limit``."""
        ordered, order = self.candidates.sort()
        first = torch.searchsorted(ordered, self.anchors)
        counts = torch.searchsorted(ordered, self.anchors, right=True) - first
        total = int(counts.sum())
        if total > limit:
            return None
        device = self.anchors.device
        rows = torch.arange(len(counts), device=device).repeat_interleave(counts, output_size=total)
        start = first - (counts.cumsum(0) - counts)
        return Pairs(rows, order[torch.arange(total, device=device) + start[rows]])


class Pairs(NamedTuple):
    """A list of pairs: anchor (P,) and candidate (P,), int64."""

    rows: Tensor
    columns: Tensor

    def where(self, keep: Tensor) -> Pairs:
        """The pairs at which ``keep`` (P,) is true."""
        return Pairs(self.rows[keep], self.columns[keep])

    def __add__(self, other: object) -> Pairs:
        if not isinstance(other, Pairs):
            return NotImplemented
        return Pairs(torch.cat([self.rows, other.rows]), torch.cat([self.columns, other.columns]))


class Listed(NamedTuple):
    """A relation as two lists without a pair in common; all other pairs are negatives."""

    positive: Pairs
    excluded: Pairs
    single: bool
    """Every anchor has exactly one positive, and the positives are in the anchors' order."""
