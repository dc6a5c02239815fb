"""The blocks of anchors by candidates that a walk visits, and which listed pairs lie in which block.

Where anchors and candidates are the same rows under a symmetric similarity, only the blocks on and above the diagonal
are visited: each row of blocks begins with a square one on the diagonal.

Shapes: A anchors, C candidates, T blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from pipeline.contrast.codes import Listed, Pairs
from pipeline.contrast.relation import Over, Relation


class Sizes(NamedTuple):
    """Anchors and candidates of one block, and the number of logits up to which there is one block only."""

    rows: int
    columns: int
    whole: int


CPU = Sizes(512, 1024, 512 * 1024)
"""Half a million float32 logits: 2 MiB, which stay in the second-level caches of two cores."""
ACCELERATOR = Sizes(4096, 8192, 4096 * 4096)
"""128 MiB of float32 logits: enough work for one kernel, little beside the encoder's activations."""


class Block(NamedTuple):
    """One block. ``mirrored``: it stands for its mirror image too; ``diagonal``: its rows are its columns."""

    number: int
    rows: slice
    columns: slice
    mirrored: bool
    diagonal: bool


@dataclass(frozen=True, eq=False)
class Tiling:
    """All blocks of one walk under one relation."""

    relation: Relation
    rows: int
    columns: int
    upper: bool
    sizes: Sizes
    _placed: dict[Over, list[Tensor]] = field(default_factory=dict)

    @staticmethod
    def of(relation: Relation, device: torch.device, upper: bool) -> Tiling:
        """Blocks fit for the device; ``upper``: on and above the diagonal only."""
        sizes = CPU if device.type == "cpu" else ACCELERATOR
        return Tiling(relation, relation.own.anchors.shape[0], relation.own.candidates.shape[0], upper, sizes)

    @cached_property
    def blocks(self) -> list[Block]:
        """The blocks in the order of the walk."""
        if self.rows * self.columns <= self.sizes.whole:
            whole = Block(0, slice(0, self.rows), slice(0, self.columns), False, self.upper)
            return [whole] if self.rows and self.columns else []
        found: list[Block] = []
        for top in range(0, self.rows, self.sizes.rows):
            rows, left = slice(top, min(top + self.sizes.rows, self.rows)), 0
            if self.upper:
                found.append(Block(len(found), rows, rows, False, True))
                left = rows.stop
            for start in range(left, self.columns, self.sizes.columns):
                columns = slice(start, min(start + self.sizes.columns, self.columns))
                found.append(Block(len(found), rows, columns, self.upper, False))
        return found

    @cached_property
    def _first(self) -> Tensor:
        """The index of the first block of each row of blocks."""
        return torch.tensor([block.number for block in self.blocks if block.diagonal or block.columns.start == 0])

    def place(self, pairs: Pairs) -> list[Tensor]:
        """For every block, the positions of the pairs in it, counted along its rows: T tensors of int64."""
        if len(self.blocks) <= 1:
            return [pairs.rows * self.columns + pairs.columns] * len(self.blocks)
        height, width = self.sizes.rows, self.sizes.columns
        row = pairs.rows // height
        if self.upper:
            pairs, row = pairs.where(keep := pairs.columns >= row * height), row[keep]
            # block 0 of a row of blocks is the square, the others follow it
            edge = ((row + 1) * height).clamp(max=self.columns)
            beside = torch.div(pairs.columns - edge, width, rounding_mode="floor").clamp(min=-1) + 1
            left = torch.where(beside > 0, edge + (beside - 1) * width, row * height)
            across = torch.where(beside > 0, width, height)
        else:
            beside = pairs.columns // width
            left, across = beside * width, torch.full_like(beside, width)
        across = torch.minimum(across, self.columns - left)
        index = self._first.to(row.device)[row] + beside
        order = index.argsort()
        position = (pairs.rows - row * height) * across + (pairs.columns - left)
        sizes = torch.bincount(index, minlength=len(self.blocks)).tolist()
        return list(torch.split(position[order], sizes))

    def _others(self, listed: Listed, over: Over) -> list[Tensor]:
        """For every block, where the candidates that are not ``over`` stand; placed once a walk."""
        if over not in self._placed:
            self._placed[over] = self.place(
                listed.positive + listed.excluded if over == "negatives" else listed.excluded
            )
        return self._placed[over]

    def _dropped(self, pairs: Pairs) -> list[Tensor]:
        """For every block, where the pairs that are excluded one by one stand; placed once a walk."""
        if "negatives" not in self._placed:
            self._placed["negatives"] = self.place(pairs)
        return self._placed["negatives"]

    def eraser(self, block: Block) -> Callable[[Tensor, Over, float], Tensor]:
        """A function that overwrites, in place, a block's entries that are not ``over``."""
        listed = self.relation.listed
        if listed is not None:

            def erase(tile: Tensor, over: Over, value: float) -> Tensor:
                tile.view(-1).index_fill_(0, self._others(listed, over)[block.number], value)
                return tile

            return erase
        positive, negative = self.relation.tile(block.rows, block.columns)
        if self.relation.dropped is not None:
            places = self._dropped(self.relation.dropped)[block.number]
            negative.view(-1)[places] = False
        others = {"positives": ~positive, "negatives": ~negative, "candidates": ~(positive | negative)}
        return lambda tile, over, value: tile.masked_fill_(others[over], value)
