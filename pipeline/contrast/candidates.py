"""Candidates of one origin, and the checks of vectors and columns where they enter a contrast.

Shapes: A anchors, C candidates, D dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pipeline.contrast.relation import Relation
from pipeline.contrast.unit_length import Unit, lengths
from pipeline.spec import Refusal


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidates of one origin: vectors (C, D), their relation to the anchors, and an offset (C,) of their logits.

    ``vectors`` None means the anchors themselves. Origins are kept apart (a batch, a queue) so that none is copied
    and a gradient is computed only for those that want one.
    """

    vectors: Tensor | None
    relation: Relation
    offset: Tensor | None = None


def prepared_vectors(vectors: Tensor, name: str, unit_length: bool, dtype: torch.dtype) -> Tensor:
    if vectors.ndim != 2 or not vectors.is_floating_point():
        raise Refusal(f"{name} have shape {tuple(vectors.shape)}: must be floating vectors, one a row")
    length, ordinary = lengths(vectors)
    if not ordinary and not bool((finite := vectors.detach().isfinite().all(1)).all()):
        bad = len(finite) - int(finite.sum())
        raise Refusal(f"{name}: {bad} of {len(vectors)} vectors ({bad / len(vectors):.1%}) are not finite")
    found: Tensor = Unit.apply(vectors, (length, ordinary)) if unit_length else vectors
    return found.to(dtype)


def check(anchors: Tensor, candidates: Tensor, part: Candidates) -> None:
    if anchors.shape[1] != candidates.shape[1]:
        raise Refusal(f"candidates have {candidates.shape[1]} dimensions and anchors {anchors.shape[1]}: must be equal")
    expected = anchors.shape[:1], candidates.shape[:1]
    for codes in (part.relation.own, part.relation.group, *part.relation.barring):
        if (codes.anchors.shape, codes.candidates.shape) != expected:
            raise Refusal(
                f"columns of {len(codes.anchors)} anchors and {len(codes.candidates)} candidates do not match "
                f"{len(anchors)} and {len(candidates)} vectors: give one integer per row"
            )
    if part.offset is not None and part.offset.shape != candidates.shape[:1]:
        raise Refusal(f"offset has shape {tuple(part.offset.shape)}: must be one number per candidate")
