"""Similarities of one block of anchors by candidates, and their derivative back to the vectors.

Products (cosine, dot) are one matrix product each way. Distances come from the same product,
|a - c|^2 = |a|^2 + |c|^2 - 2 a.c, about the candidates' mean; where the two sides nearly cancel (near-duplicates) the
pair is computed again from its difference, in value and in derivative, and a pair at distance 0 has derivative 0.

Shapes: A anchors, C candidates, D dimensions; a block is (n, m).
"""

from __future__ import annotations

import torch
from torch import Tensor

from pipeline.contrast.tiling import Block
from pipeline.contrast.unit_length import chunks

NEAR = 1e-2
"""A squared distance below this share of |a|^2 + |c|^2 has lost digits in the product."""


class Products:
    """similarity = a . c, times ``factor``."""

    degree = 2  # of the similarity as a homogeneous function of all vectors together

    def __init__(self, anchors: Tensor, candidates: Tensor, factor: float, bound: float | None):
        self.anchors, self.candidates, self.factor = anchors, candidates, factor
        self.scaled = anchors * factor
        self._bound = bound

    def bound(self) -> float:
        """No score is larger than this in size."""
        if self._bound is not None:
            return self._bound * self.factor
        return float(_longest(self.scaled) * _longest(self.candidates))

    def tile(self, block: Block, out: Tensor) -> Tensor:
        """factor * similarity of one block, into the memory of ``out``: (n, m)."""
        anchors, candidates = self.scaled[block.rows], self.candidates[block.columns]
        return torch.mm(anchors, candidates.T, out=_shaped(out, anchors, candidates))

    def spread(self, block: Block, weights: Tensor, anchors: Tensor | None, candidates: Tensor | None) -> None:
        """Add to the gradients (A, D) and (C, D) what ``weights`` = d loss / d similarity of one block gives them."""
        if anchors is not None:
            anchors[block.rows].addmm_(weights, self.candidates[block.columns])
        if candidates is not None and not block.diagonal:
            candidates[block.columns].addmm_(weights.T, self.anchors[block.rows])


class Distances:
    """similarity = -|a - c|^2, or with ``root`` -|a - c|, times ``factor``."""

    def __init__(self, anchors: Tensor, candidates: Tensor, factor: float, root: bool):
        self.root, self.factor, self.degree = root, factor, 1 if root else 2
        centre = candidates.mean(0) if len(candidates) else 0.0
        self.anchors = anchors - centre
        self.candidates = self.anchors if anchors is candidates else candidates - centre
        self.norms = self.anchors.square().sum(1), self.candidates.square().sum(1)
        self.near: tuple[Tensor, Tensor] | None = None
        self.distance: Tensor | None = None

    def bound(self) -> float:
        """No score is larger than this in size."""
        reach = float(_longest(self.anchors) + _longest(self.candidates))
        return self.factor * (reach if self.root else reach**2)

    def tile(self, block: Block, out: Tensor) -> Tensor:
        """factor * similarity of one block, into the memory of ``out``: (n, m)."""
        anchors, candidates = self.anchors[block.rows], self.candidates[block.columns]
        size = self.norms[0][block.rows, None] + self.norms[1][None, block.columns]
        squared = torch.mm(anchors, candidates.T, out=_shaped(out, anchors, candidates)).mul_(-2).add_(size)
        rows, columns = torch.nonzero(squared <= NEAR * size, as_tuple=True)
        for some in chunks(len(rows)):
            exact = (anchors[rows[some]] - candidates[columns[some]]).square().sum(1)
            squared[rows[some], columns[some]] = exact
        self.near = (rows, columns)
        if self.root:
            self.distance = squared.sqrt_().clone()
        return squared.mul_(-self.factor)

    def spread(self, block: Block, weights: Tensor, anchors: Tensor | None, candidates: Tensor | None) -> None:
        """Add to the gradients (A, D) and (C, D) what ``weights`` = d loss / d similarity of one block gives them.

        The block must be the last one that ``tile`` computed.
        """
        if self.root:
            assert self.distance is not None
            weights.div_(self.distance).masked_fill_(self.distance == 0, 0.0)
        else:
            weights.mul_(2)
        assert self.near is not None
        rows, columns = self.near
        strength = weights[rows, columns]
        weights[rows, columns] = 0.0
        own, other = self.anchors[block.rows], self.candidates[block.columns]
        if anchors is not None:
            anchors[block.rows].addmm_(weights, other).addcmul_(weights.sum(1, keepdim=True), own, value=-1)
        if candidates is not None and not block.diagonal:
            candidates[block.columns].addmm_(weights.T, own).addcmul_(weights.sum(0)[:, None], other, value=-1)
        for some in chunks(len(rows)):
            pull = (other[columns[some]] - own[rows[some]]).mul_(strength[some, None])
            if anchors is not None:
                anchors[block.rows].index_add_(0, rows[some], pull)
            if candidates is not None and not block.diagonal:
                candidates[block.columns].index_add_(0, columns[some], pull, alpha=-1)


def _shaped(out: Tensor, anchors: Tensor, candidates: Tensor) -> Tensor:
    """The first numbers of a buffer as a (n, m) matrix."""
    rows, columns = anchors.shape[0], candidates.shape[0]
    return out[: rows * columns].view(rows, columns)


def _longest(vectors: Tensor) -> Tensor:
    lengths: Tensor = torch.linalg.vector_norm(vectors, dim=1)
    return lengths.max() if len(lengths) else lengths.sum()
