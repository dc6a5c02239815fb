"""The k nearest negatives of every anchor, for mining and for the audit: block by block, without a gradient.

Shapes: A anchors, k neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from pipeline.contrast.scores import Distances, Products
from pipeline.contrast.tiling import Tiling


@torch.no_grad()
def nearest(
    anchors: Tensor, parts: Iterable[tuple[Products | Distances, Tiling, Tensor | None]], k: int
) -> tuple[Tensor, Tensor]:
    """Logits (A, k), largest first, and candidates (A, k), counted through the parts; -inf and -1 beyond the last."""
    start = 0
    best = anchors.new_full((len(anchors), k), -math.inf)
    where = torch.full_like(best, -1, dtype=torch.int64)
    for scores, tiling, offset in parts:
        for block in tiling.blocks:
            size = (block.rows.stop - block.rows.start) * (block.columns.stop - block.columns.start)
            tile = scores.tile(block, anchors.new_empty(size))
            if offset is not None:
                tile += offset[block.columns]
            tile = tiling.eraser(block)(tile, "negatives", -math.inf)
            value, place = tile.topk(min(k, tile.shape[1]), dim=1)
            place = torch.where(value > -math.inf, place + start + block.columns.start, -1)
            value, order = torch.cat([best[block.rows], value], 1).topk(k, dim=1)
            best[block.rows] = value
            where[block.rows] = torch.cat([where[block.rows], place], 1).gather(1, order)
        start += tiling.columns
    return best, where
