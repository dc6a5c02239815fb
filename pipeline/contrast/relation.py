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
from typing import Literal

import torch
from torch import Tensor

from pipeline.contrast.codes import Codes, Listed, Pairs

Over = Literal["positives", "negatives", "candidates"]

PAIRS_PER_ROW = 4
"""Pairs are listed up to this many times A + C; above it blocks are compared, so that memory stays linear."""


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
    def positives(self) -> Listed | None:
        """The positives alone as a list (nothing is said of the excluded); None where it would be long."""
        if self.known is not None:
            return self.known
        group = self.group.pairs(math.inf if self.only is not None else self._limit)
        if group is None:
            return None
        positive = group.where(~self.own.at(group))
        row = torch.arange(len(self.own.anchors), device=positive.rows.device)
        return Listed(
            positive, group.where(torch.zeros_like(group.rows, dtype=torch.bool)), torch.equal(positive.rows, row)
        )

    @cached_property
    def listed(self) -> Listed | None:
        """The relation as lists of pairs; None where they would be long."""
        if self.known is not None:
            return self.known
        if self.only is not None or self._excluded is None or self._excluded[1]:
            return None
        assert self.positives is not None
        return Listed(self.positives.positive, self._excluded[0], self.positives.single)

    @cached_property
    def _excluded(self) -> tuple[Pairs, tuple[Codes, ...]] | None:
        """Excluded pairs as a list without those of long rules, and the long rules; None where own or group is long."""
        excluded = self.own.pairs(self._limit)
        if excluded is None or self.positives is None:
            return None
        before: tuple[Codes, ...] = (self.own, self.group)
        long = []
        for rule in self.barring:
            barred = rule.pairs(self._limit)
            if barred is None:
                long.append(rule)
                continue
            new = ~torch.stack([each.at(barred) for each in before]).any(0)
            excluded, before = excluded + barred.where(new), (*before, rule)
        if self.dropped is not None:
            new = ~torch.stack([each.at(self.dropped) for each in before]).any(0)
            excluded = excluded + self.dropped.where(new)
        return excluded, tuple(long)

    @property
    def _limit(self) -> int:
        return PAIRS_PER_ROW * (len(self.own.anchors) + len(self.own.candidates))

    def short(self, over: Over) -> Listed | None:
        """The candidates that are ``over`` as a short list, in the place of the positives; None: they are not few."""
        if over == "positives" or self.only is None:
            return self.positives if over == "positives" else None
        assert self.positives is not None
        pairs = self.only if over == "negatives" else self.positives.positive + self.only
        return Listed(pairs, self.positives.excluded, False)

    def tile(self, rows: slice, columns: slice) -> tuple[Tensor, Tensor]:
        """The positives and the negatives in a block, by the rules alone: two bool tensors."""
        own, group = self.own.tile(rows, columns), self.group.tile(rows, columns)
        neither = own | group
        for rule in self.barring:
            neither |= rule.tile(rows, columns)
        return group & ~own, ~neither

    @cached_property
    def counts(self) -> dict[Over, Tensor]:
        """How many candidates of each kind every anchor has: (A,), int64."""
        size, width = self.own.anchors.shape[0], self.own.candidates.shape[0]
        if self.positives is not None:
            positives = torch.bincount(self.positives.positive.rows, minlength=size)
            if self.only is not None:
                negatives = torch.bincount(self.only.rows, minlength=size)
            elif self.listed is not None:
                negatives = width - torch.bincount(self.listed.excluded.rows, minlength=size) - positives
            elif self._excluded is not None and len(self._excluded[1]) == 1:  # one long rule: all of it, and the rest
                excluded, (rule,) = self._excluded
                rest = self.positives.positive + excluded
                rest = rest.where(~rule.at(rest))
                negatives = width - rule.held() - torch.bincount(rest.rows, minlength=size)
            else:
                negatives = self._counted()[1]
        else:
            positives, negatives = self._counted()
        return {"positives": positives, "negatives": negatives, "candidates": positives + negatives}

    def _counted(self) -> tuple[Tensor, Tensor]:
        """Positives and negatives of every anchor, counted block by block."""
        size, width = self.own.anchors.shape[0], self.own.candidates.shape[0]
        positives = torch.zeros(size, dtype=torch.int64, device=self.own.anchors.device)
        negatives = torch.zeros_like(positives)
        for start in range(0, size, 512):
            rows = slice(start, start + 512)
            for left in range(0, width, 4096):
                positive, negative = self.tile(rows, slice(left, left + 4096))
                positives[rows] += positive.sum(1)
                negatives[rows] += negative.sum(1)
        if self.dropped is not None:
            rules = torch.stack([each.at(self.dropped) for each in (self.own, self.group, *self.barring)])
            negatives -= torch.bincount(self.dropped.where(~rules.any(0)).rows, minlength=size)
        return positives, negatives
