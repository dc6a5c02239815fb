"""``Contrast``: anchors, candidates, what they are to each other, and the sums over them that objectives are made of.

An objective never sees the similarity matrix. It asks for a few numbers per anchor.

Shapes: A anchors, C candidates, D dimensions. A logit is similarity / temperature (plus the candidate's offset).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from pipeline.contrast.relation import Over, Relation
from pipeline.metrics import METRICS, Metric, similarity, unit
from pipeline.spec import Refusal, nearest

Phi = Literal["identity", "softplus", "relu", "squared_relu"]


@dataclass(frozen=True)
class LogSumExp:
    """Ask for log of the sum over ``over`` of exp(scale * similarity / temperature + offset): (A,); -inf over none."""

    over: Over
    scale: float = 1.0


@dataclass(frozen=True, eq=False)
class Total:
    """Ask for the sum over ``over`` of phi(sign * logit + side + bias): (A,).

    ``side`` (A,) and ``bias`` (a number or a scalar tensor) receive gradients.
    """

    phi: Phi
    over: Over
    sign: float = 1.0
    side: Tensor | None = None
    bias: Tensor | float = 0.0


Request = LogSumExp | Total


@dataclass(frozen=True, eq=False)
class Contrast:
    """Anchors (A, D) against candidates (C, D) under one relation, metric and temperature. Make one with ``of``."""

    anchors: Tensor
    candidates: Tensor
    relation: Relation
    metric: Metric
    temperature: Tensor | float
    offset: Tensor | None
    symmetric: bool

    @staticmethod
    def of(
        anchors: Tensor,
        relation: Relation,
        *,
        metric: Metric = "cosine",
        temperature: Tensor | float | None = None,
        normalization: str | None = None,
        candidates: Tensor | None = None,
        offset: Tensor | None = None,
    ) -> Contrast:
        """Check and prepare one contrast.

        Args:
            anchors: (A, D), any floating type; half types are computed in float32.
            relation: of the anchors to the candidates.
            metric: how vectors are compared; cosine normalises.
            temperature: > 0; None means that the objective has none (1).
            normalization: "l2" scales every vector to length 1 first; "none" or None leaves them.
            candidates: (C, D); None means that the anchors are their own candidates.
            offset: (C,) added to each candidate's logit (minus a log noise density, minus log Q); not scaled.

        Raises:
            Refusal: shapes that do not fit, non-finite vectors, a temperature that is not a positive number.
        """
        if metric not in METRICS:
            raise Refusal(f"metric = {metric}: unknown; {nearest(metric, METRICS)}")
        if normalization not in (None, "none", "l2"):
            raise Refusal(f"normalization = {normalization}: must be l2 or none")
        temperature = 1.0 if temperature is None else temperature
        tau = float(temperature)
        if not (math.isfinite(tau) and tau > 0):
            raise Refusal(f"temperature = {tau}: must be a finite number above 0")
        symmetric = candidates is None
        first = _prepared(anchors, "anchors", metric, normalization)
        second = first if candidates is None else _prepared(candidates, "candidates", metric, normalization)
        if first.shape[1] != second.shape[1]:
            raise Refusal(f"candidates have {second.shape[1]} dimensions and anchors {first.shape[1]}: must be equal")
        for codes in (relation.own, relation.group, relation.barred):
            if codes is not None and (len(codes.anchors), len(codes.candidates)) != (len(first), len(second)):
                raise Refusal(
                    f"columns of {len(codes.anchors)} anchors and {len(codes.candidates)} candidates do not match "
                    f"{len(first)} and {len(second)} vectors: give one integer per row"
                )
        return Contrast(first, second, relation, metric, temperature, offset, symmetric)

    def walk(self, *requests: Request) -> tuple[Tensor, ...]:
        """Answer several requests in one walk over the candidates; each answer is (A,)."""
        positive, negative = self.relation.tile(slice(None), slice(None))
        masks = {"positives": positive, "negatives": negative, "candidates": positive | negative}
        raw = similarity(self.anchors, self.candidates, "dot" if self.metric == "cosine" else self.metric)
        raw = raw / self.temperature
        return tuple(_answer(request, raw, masks[request.over], self.offset) for request in requests)

    def count(self, over: Over) -> Tensor:
        """How many candidates of that kind each anchor has: (A,), int64."""
        positive, negative = self.relation.tile(slice(None), slice(None))
        mask = {"positives": positive, "negatives": negative, "candidates": positive | negative}[over]
        return mask.sum(1)

    def positive(self) -> Tensor:
        """The mean logit of each anchor's positives: (A,); 0 where there are none."""
        (total,) = self.walk(Total("identity", "positives"))
        return total / self.count("positives").clamp(min=1)

    def logsumexp(self, over: Over, scale: float = 1.0) -> Tensor:
        """Log of the sum of exp(scale * similarity / temperature + offset) over each anchor's ``over``: (A,)."""
        return self.walk(LogSumExp(over, scale))[0]

    def total(
        self,
        phi: Phi,
        over: Over,
        sign: float = 1.0,
        side: Tensor | None = None,
        bias: Tensor | float = 0.0,
    ) -> Tensor:
        """The sum of phi(sign * logit + side + bias) over each anchor's ``over``: (A,)."""
        return self.walk(Total(phi, over, sign, side, bias))[0]


def _answer(request: Request, raw: Tensor, mask: Tensor, offset: Tensor | None) -> Tensor:
    if isinstance(request, LogSumExp):
        logits = raw * request.scale if offset is None else raw * request.scale + offset
        some = mask.any(1)
        logits = logits.masked_fill(~mask, -math.inf).masked_fill(~some[:, None], 0.0)
        return logits.logsumexp(1).masked_fill(~some, -math.inf)
    logits = raw if offset is None else raw + offset
    argument = request.sign * logits + request.bias
    if request.side is not None:
        argument = argument + request.side[:, None]
    if request.phi == "softplus":
        argument = functional.softplus(argument, threshold=60)
    elif request.phi != "identity":
        argument = functional.relu(argument)
        argument = argument.square() if request.phi == "squared_relu" else argument
    return argument.masked_fill(~mask, 0.0).sum(1)


def _prepared(vectors: Tensor, name: str, metric: Metric, normalization: str | None) -> Tensor:
    if vectors.ndim != 2 or not vectors.is_floating_point():
        raise Refusal(f"{name} have shape {tuple(vectors.shape)}: must be floating vectors, one a row")
    bad = int((~vectors.detach().isfinite().all(1)).sum())
    if bad:
        raise Refusal(f"{name}: {bad} of {len(vectors)} vectors ({bad / len(vectors):.1%}) are not finite")
    if vectors.dtype in (torch.bfloat16, torch.float16):
        vectors = vectors.float()
    return unit(vectors) if metric == "cosine" or normalization == "l2" else vectors
