"""Exact nearest neighbours by cosine, in blocks that bound memory whatever the gallery's size.

Rows are scaled to length one once; then a block of similarities is one matrix product, and only its ``k`` largest
survive it. Where a gallery is longer than a block, the survivors of its parts are merged, which loses nothing.

Legend: Q queries, G gallery rows, D dimensions, k neighbours.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int64]

BLOCK = 1 << 24
"""Similarities that are in memory at once: 64 MiB in float32."""
WIDTH = 1 << 16
"""Gallery rows of a block, so that a block still has many queries when the gallery has a million rows."""


def unit(rows: npt.NDArray[np.floating]) -> Floats:
    """Scale rows (N, D) to length one, in float32. A row of zeros stays zeros.

    Lengths are taken after dividing by the largest entry, so that tiny and huge rows neither vanish nor overflow.
    """
    largest = np.maximum(rows.max(axis=1, keepdims=True), -rows.min(axis=1, keepdims=True))
    scaled: Floats = np.divide(rows, np.where(largest > 0, largest, 1), dtype=np.float32)
    lengths = np.sqrt(np.einsum("nd,nd->n", scaled, scaled))[:, None]
    scaled /= np.where(lengths > 0, lengths, 1)
    return scaled


def nearest_rows(queries: Floats, gallery: Floats, k: int, block: int = BLOCK) -> tuple[Floats, Codes]:
    """Find the ``k`` gallery rows of largest cosine for each query, in no particular order.

    Args:
        queries: (Q, D) rows of length one (``unit``).
        gallery: (G, D) rows of length one.
        k: 1 <= k <= G.
        block: how many similarities may be in memory at once.

    Returns:
        (similarity, index), both (Q, k). Of equal similarities at the border any may be kept.

    Raises:
        ValueError: k outside 1..G, or unequal dimensions.
    """
    import torch

    if not 1 <= k <= len(gallery):
        raise ValueError(f"k = {k}: must lie between 1 and the {len(gallery)} gallery rows")
    if queries.shape[1] != gallery.shape[1]:
        raise ValueError(f"queries have {queries.shape[1]} dimensions, the gallery {gallery.shape[1]}")
    width = min(len(gallery), max(WIDTH, k))
    height = max(1, min(len(queries), block // width))
    asked, stored = torch.from_numpy(queries), torch.from_numpy(gallery)
    similarity = torch.empty((len(queries), k))  # (Q, k)
    index = torch.empty((len(queries), k), dtype=torch.int64)
    scores = torch.empty(height * width)
    for start in range(0, len(queries), height):
        some = asked[start : start + height]  # (q, D)
        best, where = torch.empty((len(some), 0)), torch.empty((len(some), 0), dtype=torch.int64)
        for first in range(0, len(gallery), width):
            part = stored[first : first + width]  # (g, D)
            product = torch.mm(some, part.T, out=scores[: len(some) * len(part)].view(len(some), len(part)))
            values, places = product.topk(min(k, len(part)), dim=1, sorted=False)
            best, where = torch.cat([best, values], 1), torch.cat([where, places + first], 1)
            if best.shape[1] > k:
                best, kept = best.topk(k, dim=1, sorted=False)
                where = where.gather(1, kept)
        similarity[start : start + height], index[start : start + height] = best, where
    return similarity.numpy(), index.numpy()


def nearest_others(rows: Floats, chosen: Codes, k: int, block: int = BLOCK) -> Codes:
    """Return (len(chosen), k): the ``k`` nearest rows of each chosen row among all other rows.

    Args:
        rows: (N, D) of length one, N > k.
        chosen: indices of the rows that ask; a row is never its own neighbour, whatever else lies on the same spot.
    """
    similarity, index = nearest_rows(rows[chosen], rows, k + 1, block)
    order = np.where(index == chosen[:, None], -np.inf, similarity)  # oneself is dropped first, else the farthest
    kept = np.argsort(-order, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(index, kept, axis=1)
