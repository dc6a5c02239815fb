"""*Cost*: counts and bytes of the contrast, and the false negatives to expect from the class prior; no data is read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.shards import DataCard


def priors(card: DataCard, split: str) -> dict[str, list[float]]:
    """The share of each class in a split, for every label column of classes."""
    return {
        name: [count / card.splits[split] for count in column.counts[split]]
        for name, column in card.columns.items()
        if column.kind == "class"
    }


def cost(
    batch: int,
    dim: int,
    ranks: int = 1,
    shares: Mapping[str, Sequence[float]] | None = None,
    candidates: int | None = None,
) -> dict[str, Any]:
    """Counts and bytes of the contrast of ``batch`` samples, two views each, z of ``dim`` numbers.

    Args:
        batch: B, samples in the global batch.
        dim: D, width of z.
        ranks: processes that each hold B / ranks samples.
        shares: for each label column, the share of each class.
        candidates: K of an anchor, where the sampler has others than all other views of the batch (2B-1).

    Returns:
        Plain data: views, candidates K of an anchor, log K (nats), logits, positives, negatives, entries and bytes of
        the similarity matrix (which is not stored), floating-point operations of its product, elements and bytes
        gathered over ranks, expected false negatives of an anchor for each column, (K-1)·Σp² (Chuang et al. 2020, 2).
    """
    views = 2 * batch
    candidates = views - 1 if candidates is None else candidates
    entries = views * max(views, candidates + 1)
    return {
        "samples": batch,
        "views": views,
        "candidates": candidates,
        "log_k": math.log(candidates),
        "logits": views * candidates,
        "positives": views,
        "negatives": views * (candidates - 1),
        "negatives_per_anchor": candidates - 1,
        "matrix_entries": entries,
        "matrix_bytes": {"float32": 4 * entries, "float16": 2 * entries},
        "product_operations": 2 * entries * dim,
        "gathered_elements": views * dim,
        "gathered_bytes": {"float32": 4 * views * dim, "float16": 2 * views * dim},
        "gathered_from_others": views * dim // ranks * (ranks - 1),
        "same_class_share": {name: sum(share * share for share in prior) for name, prior in (shares or {}).items()},
        "false_negatives_per_anchor": {
            name: (candidates - 1) * sum(share * share for share in prior) for name, prior in (shares or {}).items()
        },
    }
