"""``Contrast``: anchors, candidates, what they are to each other, and the sums over them that objectives are made of.

An objective never sees the similarity matrix. It asks for a few numbers per anchor, and the matrix never exists: it is
walked block by block, and walked again in the backward pass.

Shapes: A anchors, C candidates, D dimensions. A logit is similarity / temperature, plus the candidate's offset.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from pipeline.contrast import pairs, top
from pipeline.contrast.candidates import Candidates, check, prepared_vectors
from pipeline.contrast.relation import Over, Relation
from pipeline.contrast.requests import LogSumExp, Phi, Request, Total
from pipeline.contrast.scores import Distances, Products
from pipeline.contrast.tiling import Tiling
from pipeline.contrast.unit_length import wide
from pipeline.contrast.walk import Plan, walk
from pipeline.metrics import METRICS, Metric
from pipeline.spec import Refusal
from pipeline.spec import nearest as nearest_name


@dataclass(frozen=True, eq=False)
class Contrast:
    """Anchors (A, D) against candidates of one or more origins, under one metric. Make one with ``Contrast.of``."""

    anchors: Tensor
    parts: tuple[Candidates, ...]
    metric: Metric
    temperature: Tensor | float
    unit_length: bool

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
        further: Iterable[Candidates] = (),
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
            further: candidates of other origins (a queue), each with its own relation to the anchors.

        Raises:
            Refusal: shapes that do not fit, non-finite vectors, a temperature that is not a positive number.
        """
        if metric not in METRICS:
            raise Refusal(f"metric = {metric}: unknown; {nearest_name(metric, METRICS)}")
        if normalization not in (None, "none", "l2"):
            raise Refusal(f"normalization = {normalization}: must be l2 or none")
        temperature = 1.0 if temperature is None else temperature
        tau = _number(temperature)
        if not (math.isfinite(tau) and tau > 0):
            raise Refusal(f"temperature = {tau}: must be a finite number above 0")
        unit_length = metric == "cosine" or normalization == "l2"
        given = (Candidates(candidates, relation, offset), *further)
        dtype = wide(anchors.dtype)
        for part in given:
            dtype = dtype if part.vectors is None else torch.promote_types(dtype, part.vectors.dtype)
        first = prepared_vectors(anchors, "anchors", unit_length, dtype)
        parts = []
        for part in given:
            vectors = None if part.vectors is None else prepared_vectors(part.vectors, "candidates", unit_length, dtype)
            check(first, first if vectors is None else vectors, part)
            parts.append(Candidates(vectors, part.relation, None if part.offset is None else part.offset.to(dtype)))
        if not isinstance(temperature, Tensor) or not temperature.requires_grad:
            temperature = tau
        return Contrast(first, tuple(parts), metric, temperature, unit_length)

    def walk(self, *requests: Request) -> tuple[Tensor, ...]:
        """Answer several requests in one walk over the candidates; each answer is (A,)."""
        answers: list[Tensor | None] = [None] * len(requests)
        for part in self.parts:
            found = {i: self._log_count(part, each.over) for i, each in enumerate(requests) if _counts(each, part)}
            short = {over: part.relation.short(over) for over in {each.over for each in requests}}
            apart = [i for i, each in enumerate(requests) if short[each.over] is not None and i not in found]
            walked = [i for i in range(len(requests)) if i not in apart and i not in found]
            found.update(zip(walked, self._walk(part, [requests[i] for i in walked]), strict=True))
            for over, listed in short.items():
                here = [i for i in apart if requests[i].over == over]
                if listed is None or not here:
                    continue
                logits = pairs.pair_similarity(self.anchors, part.vectors, listed, self.metric) / self.temperature
                offset = None if part.offset is None else part.offset[listed.positive.columns]
                for i in here:
                    found[i] = pairs.answer(requests[i], logits, offset, listed, self.anchors.shape[0])
            for i, request in enumerate(requests):
                before = answers[i]
                if before is None:
                    answers[i] = found[i]
                else:
                    answers[i] = _add_exps(before, found[i]) if isinstance(request, LogSumExp) else before + found[i]
        return tuple(answer for answer in answers if answer is not None)

    def _log_count(self, part: Candidates, over: Over) -> Tensor:
        return part.relation.counts[over].to(self.anchors.dtype).log()

    def _walk(self, part: Candidates, requests: list[Request]) -> tuple[Tensor, ...]:
        if not requests:
            return ()
        candidates = part.vectors
        if candidates is None and not (part.offset is None and part.relation.symmetric):
            candidates = self.anchors
        plan = Plan(part.relation, self.metric, _number(self.temperature), self.unit_length, tuple(requests))
        return walk(plan, self.anchors, candidates, self.temperature, part.offset)

    def count(self, over: Over) -> Tensor:
        """How many candidates of that kind each anchor has: (A,), int64."""
        first, *rest = (part.relation.counts[over] for part in self.parts)
        return sum(rest, first)

    def positive(self) -> Tensor:
        """The mean logit of each anchor's positives: (A,); 0 where there are none."""
        total = self.total("identity", "positives")
        if len(self.parts) == 1 and (listed := self.parts[0].relation.positives) is not None and listed.single:
            return total
        return total / self.count("positives").clamp(min=1)

    def logsumexp(self, over: Over, scale: float = 1.0) -> Tensor:
        """Log of the sum of exp(scale * similarity / temperature + offset) over each anchor's ``over``: (A,).

        -inf where there are none.
        """
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

    def top(self, k: int) -> tuple[Tensor, Tensor]:
        """The k nearest negatives of each anchor: logits (A, k), largest first, and candidates (A, k).

        Candidates are counted through the parts; -inf and -1 stand beyond an anchor's last negative. No gradient.
        """
        if any(part.relation.only is not None for part in self.parts):
            raise ValueError("the negatives were chosen already")
        factor = 1 / _number(self.temperature)
        found = []
        for part in self.parts:
            theirs = self.anchors if part.vectors is None else part.vectors
            if self.metric in ("cosine", "dot"):
                scores: Products | Distances = Products(self.anchors, theirs, factor, None)
            else:
                scores = Distances(self.anchors, theirs, factor, root=self.metric == "euclidean")
            found.append((scores, Tiling.of(part.relation, self.anchors.device, upper=False), part.offset))
        return top.nearest(self.anchors, found, k)


def _number(temperature: Tensor | float) -> float:
    return float(temperature.detach()) if isinstance(temperature, Tensor) else float(temperature)


def _counts(request: Request, part: Candidates) -> bool:
    """Whether a request is no more than a count."""
    return isinstance(request, LogSumExp) and request.scale == 0 and part.offset is None


def _add_exps(first: Tensor, second: Tensor) -> Tensor:
    """logaddexp whose gradient stays 0 where both are -inf."""
    none = (first == -math.inf) & (second == -math.inf)
    both = torch.logaddexp(first.masked_fill(none, 0.0), second.masked_fill(none, 0.0))
    return both.masked_fill(none, -math.inf)
