"""The dense float64 oracle: the whole matrix in memory, one obvious line a quantity, nothing shared with the walk.

Shapes: A anchors, C candidates, D dimensions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from pipeline.contrast import LogSumExp, Total


def similarities(anchors: Tensor, candidates: Tensor, metric: str) -> Tensor:
    """(A, C); cosine normalises; a zero vector has cosine 0; a pair at distance 0 has gradient 0."""
    if metric == "cosine":
        anchors, candidates = lengths_to_one(anchors), lengths_to_one(candidates)
    if metric in ("cosine", "dot"):
        return anchors @ candidates.T
    squared = (anchors[:, None] - candidates[None]).square().sum(-1)
    if metric == "squared_euclidean":
        return -squared
    return -torch.where(squared > 0, torch.where(squared > 0, squared, 1.0).sqrt(), 0.0)


def lengths_to_one(vectors: Tensor) -> Tensor:
    """Rows of length 1; zero rows stay zero with gradient 0."""
    length = vectors.square().sum(-1, keepdim=True)
    return torch.where(length > 0, vectors / torch.where(length > 0, length, 1.0).sqrt(), 0.0)


@dataclass
class DenseContrast:
    """The same questions as ``Contrast``, answered from the whole matrix; ``positives`` and ``negatives`` are masks."""

    similarity: Tensor
    positives: Tensor
    negatives: Tensor
    temperature: Tensor | float = 1.0
    offset: Tensor | None = None
    metric: str = "cosine"

    @property
    def anchors(self) -> Tensor:
        return self.similarity  # for its type

    def mask(self, over: str) -> Tensor:
        masks = {"positives": self.positives, "negatives": self.negatives}
        return masks[over] if over in masks else self.positives | self.negatives

    def walk(self, *requests: LogSumExp | Total) -> tuple[Tensor, ...]:
        return tuple(self._answer(request) for request in requests)

    def _answer(self, request: LogSumExp | Total) -> Tensor:
        mask = self.mask(request.over)
        logits = self.similarity / self.temperature
        extra = 0.0 if self.offset is None else self.offset
        if isinstance(request, LogSumExp):
            some = mask.any(1)
            values = (logits * request.scale + extra).masked_fill(~mask, -math.inf).masked_fill(~some[:, None], 0.0)
            return torch.logsumexp(values, 1).masked_fill(~some, -math.inf)
        side = 0.0 if request.side is None else request.side[:, None]
        values = request.sign * (logits + extra) + side + request.bias
        if request.phi == "softplus":
            values = torch.logaddexp(values, torch.zeros_like(values))
        elif request.phi == "relu":
            values = functional.relu(values)
        elif request.phi == "squared_relu":
            values = functional.relu(values) ** 2
        return torch.where(mask, values, 0.0).sum(1)

    def count(self, over: str) -> Tensor:
        return self.mask(over).sum(1)

    def positive(self) -> Tensor:
        return self.total("identity", "positives") / self.count("positives").clamp(min=1)

    def logsumexp(self, over: str, scale: float = 1.0) -> Tensor:
        return self.walk(LogSumExp(over, scale))[0]

    def total(self, phi, over, sign=1.0, side=None, bias=0.0) -> Tensor:
        return self.walk(Total(phi, over, sign, side, bias))[0]
