"""What a candidate is to an anchor: excluded, positive or negative, told by integer codes and never by storage order.

Each rule is one integer per row; two rows are in the rule together when their integers are equal. In this order:

- ``own``: the candidate is the anchor itself (the same view of the same sample): excluded.
- ``group``: the candidate is a positive (another view of the sample, or a sample of the same class).
- ``barred``: the candidate is known not to be a negative without being a positive (a stale key of the same sample
  in a queue): excluded.
- ``bars``: further rules like ``barred``; ``dropped``: single pairs that are no negatives either.
- everything else is a negative, or ``only`` the listed pairs are.

Few rows usually share a code, so that what is not a negative is a short list of pairs, found by sorting; where it is
not short (two classes, say) codes are compared block by block instead.

Shapes: A anchors, C candidates, P pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import torch
from torch import Tensor

Over = Literal["positives", "negatives", "candidates"]

PAIRS_PER_ROW = 4
"""Pairs are listed up to this many times A + C; above it blocks are compared, so that memory stays linear."""


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


@dataclass(frozen=True, eq=False)
class Relation:
    """The relation of A anchors to C candidates, computed block by block."""

    own: Codes
    group: Codes
    barred: Codes | None = None
    known: Listed | None = None
    """The relation as lists, where whoever made it knows them; it must say the same as the codes."""
    bars: tuple[Codes, ...] = ()
    """Further rules of the kind of ``barred``."""
    dropped: Pairs | None = None
    """Negatives that are excluded one by one, each pair once; pairs that are no negatives may be among them."""
    only: Pairs | None = None
    """The only negatives, each pair once, where whoever made it has chosen some of them; then ``dropped`` is None."""

    @staticmethod
    def pair_order(count: int, device: torch.device | None = None) -> Relation:
        """``count`` rows that are their own candidates, rows 2i and 2i+1 being the two views of sample i."""
        row = torch.arange(count, device=device)
        sample = row >> 1
        return Relation(
            Codes(row, row), Codes(sample, sample), None, Listed(Pairs(row, row ^ 1), Pairs(row, row), True)
        )

    @property
    def symmetric(self) -> bool:
        """Whether anchors and candidates are the same rows to every rule."""
        rules = (self.own, self.group, self.barred, *self.bars)
        alike = all(rule is None or rule.anchors is rule.candidates for rule in rules)
        return alike and self.dropped is None and self.only is None

    @property
    def barring(self) -> tuple[Codes, ...]:
        """All rules that exclude without being own."""
        return self.bars if self.barred is None else (self.barred, *self.bars)

    @property
    def plain(self) -> bool:
        """Whether three rules of codes say all of it."""
        return not self.bars and self.dropped is None and self.only is None

    @cached_property
    def listed(self) -> Listed | None:
        """The relation as lists of pairs; None where they would be long."""
        if self.known is not None:
            return self.known
        chosen = self.dropped is not None or self.only is not None  # told by pairs, so it must be listed
        limit = math.inf if chosen else PAIRS_PER_ROW * (len(self.own.anchors) + len(self.own.candidates))
        own, group = self.own.pairs(limit), self.group.pairs(limit)
        if own is None or group is None:
            return None
        excluded = own
        before: tuple[Codes, ...] = (self.own, self.group)
        for rule in self.barring:
            barred = rule.pairs(limit)
            if barred is None:
                return None
            new = ~torch.stack([each.at(barred) for each in before]).any(0)
            excluded, before = excluded + barred.where(new), (*before, rule)
        if self.dropped is not None:
            new = ~torch.stack([each.at(self.dropped) for each in before]).any(0)
            excluded = excluded + self.dropped.where(new)
        positive = group.where(~self.own.at(group))
        row = torch.arange(len(self.own.anchors), device=positive.rows.device)
        return Listed(positive, excluded, torch.equal(positive.rows, row))

    def short(self, over: Over) -> Listed | None:
        """The candidates that are ``over`` as a short list, in the place of the positives; None: they are not few."""
        if self.only is None:
            return self.listed if over == "positives" else None
        assert self.listed is not None
        none = Pairs(self.only.rows[:0], self.only.columns[:0])
        if over == "positives":
            return self.listed
        return Listed(self.only if over == "negatives" else self.listed.positive + self.only, none, False)

    def tile(self, rows: slice, columns: slice) -> tuple[Tensor, Tensor]:
        """The positives and the negatives in a block of anchors by candidates: two bool tensors."""
        own, group = self.own.tile(rows, columns), self.group.tile(rows, columns)
        neither = own | group
        for rule in self.barring:
            neither |= rule.tile(rows, columns)
        return group & ~own, ~neither

    @cached_property
    def counts(self) -> dict[Over, Tensor]:
        """How many candidates of each kind every anchor has: (A,), int64."""
        size, width = self.own.anchors.shape[0], self.own.candidates.shape[0]
        if self.listed is not None:
            positives = torch.bincount(self.listed.positive.rows, minlength=size)
            if self.only is not None:
                negatives = torch.bincount(self.only.rows, minlength=size)
                return {"positives": positives, "negatives": negatives, "candidates": positives + negatives}
            candidates = width - torch.bincount(self.listed.excluded.rows, minlength=size)
            return {"positives": positives, "negatives": candidates - positives, "candidates": candidates}
        positives = torch.zeros(size, dtype=torch.int64, device=self.own.anchors.device)
        negatives = torch.zeros_like(positives)
        for start in range(0, size, 512):
            rows = slice(start, start + 512)
            for left in range(0, width, 4096):
                positive, negative = self.tile(rows, slice(left, left + 4096))
                positives[rows] += positive.sum(1)
                negatives[rows] += negative.sum(1)
        return {"positives": positives, "negatives": negatives, "candidates": positives + negatives}
