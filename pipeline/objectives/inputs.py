"""What the plain functions share: tensors in, a ``Contrast`` out, and one clear error for what cannot be used.

Shapes: B samples, D dimensions, K further negatives.
"""

from __future__ import annotations

from collections.abc import Set

import torch
from torch import Tensor

from pipeline.contrast import Candidates, Codes, Contrast, Relation
from pipeline.metrics import Metric
from pipeline.spec import Refusal


def of_pairs(
    z: Tensor, metric: Metric, temperature: Tensor | float | None = None, normalization: str | None = None
) -> Contrast:
    """The contrast of a batch of two views, z (2B, D) in pair order: rows 2i and 2i+1 are the views of sample i."""
    if z.ndim != 2 or len(z) % 2:
        raise Refusal(f"z has shape {tuple(z.shape)}: must be (2B, D), rows 2i and 2i+1 the views of sample i")
    if len(z) < 4:
        raise Refusal(f"z has {len(z) // 2} samples: at least 2 are needed, or there are no negatives")
    relation = Relation.pair_order(len(z), z.device)
    return Contrast.of(z, relation, metric=metric, temperature=temperature, normalization=normalization)


def of_queries(
    queries: Tensor,
    keys: Tensor,
    metric: Metric,
    temperature: Tensor | float | None = None,
    extra_negatives: Tensor | None = None,
    offset: Tensor | None = None,
    extra_offset: Tensor | None = None,
    only_extra: bool = False,
) -> Contrast:
    """The contrast of queries (B, D) with keys (B, D), key i being the positive of query i, and extra negatives (K, D).

    ``only_extra``: the other keys are no candidates at all.
    """
    if queries.ndim != 2 or queries.shape != keys.shape:
        raise Refusal(f"queries {tuple(queries.shape)} and keys {tuple(keys.shape)}: must both be (B, D)")
    if extra_negatives is not None and (extra_negatives.ndim != 2 or extra_negatives.shape[1] != keys.shape[1]):
        raise Refusal(f"extra_negatives {tuple(extra_negatives.shape)}: must be (K, {keys.shape[1]})")
    count, extra = len(keys), 0 if extra_negatives is None else len(extra_negatives)
    if (0 if only_extra else count - 1) + extra < 1:
        raise Refusal(f"{count} queries and {extra} extra negatives: at least 1 negative is needed")
    row = torch.arange(count, device=queries.device)
    none = Codes(-1 - row, row)  # no query is its own candidate
    zero = torch.zeros_like(row)
    relation = Relation(none, Codes(row, row), Codes(zero, zero) if only_extra else None)
    further = []
    if extra_negatives is not None:
        own = Codes(-1 - row, torch.arange(extra, device=queries.device))
        further.append(Candidates(extra_negatives, Relation(own, own), extra_offset))
    return Contrast.of(
        queries,
        relation,
        metric=metric,
        temperature=temperature,
        candidates=keys,
        offset=offset,
        further=further,
    )


def require_metric(contrast: Contrast, kind: str, metrics: Set[str]) -> None:
    """Refuse a metric under which the objective means nothing."""
    if contrast.metric not in metrics:
        raise Refusal(f"metric = {contrast.metric}: {kind} works with {', '.join(sorted(metrics))}")


def has_both(contrast: Contrast) -> Tensor:
    """Which anchors have a positive and a negative: bool (A,)."""
    return (contrast.count("positives") > 0) & (contrast.count("negatives") > 0)
