"""What a candidate is to an anchor: excluded, positive or negative, told by integer codes and never by storage order.

Each rule is one integer per row; two rows are in the rule together when their integers are equal. In this order:

- ``own``: the candidate is the anchor itself (the same view of the same sample): excluded.
- ``group``: the candidate is a positive (another view of the sample, or a sample of the same class).
- ``barred``: the candidate is known not to be a negative without being a positive (a stale key of the same sample
  in a queue): excluded.
- everything else is a negative.

Shapes: A anchors, C candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

Over = Literal["positives", "negatives", "candidates"]


class Codes(NamedTuple):
    """One rule's integers: of the anchors (A,) and of the candidates (C,), int64, equal where the rule holds."""

    anchors: Tensor
    candidates: Tensor

    def tile(self, rows: slice, columns: slice) -> Tensor:
        """Where the rule holds in a block of anchors by candidates: bool."""
        return self.anchors[rows, None] == self.candidates[None, columns]


@dataclass(frozen=True, eq=False)
class Relation:
    """The relation of A anchors to C candidates, computed block by block."""

    own: Codes
    group: Codes
    barred: Codes | None = None

    @staticmethod
    def pair_order(count: int, device: torch.device | None = None) -> Relation:
        """``count`` rows that are their own candidates, rows 2i and 2i+1 being the two views of sample i."""
        row = torch.arange(count, device=device)
        return Relation(Codes(row, row), Codes(row // 2, row // 2))

    def tile(self, rows: slice, columns: slice) -> tuple[Tensor, Tensor]:
        """The positives and the negatives in a block of anchors by candidates: two bool tensors."""
        own, group = self.own.tile(rows, columns), self.group.tile(rows, columns)
        neither = own | group
        if self.barred is not None:
            neither = neither | self.barred.tile(rows, columns)
        return group & ~own, ~neither
