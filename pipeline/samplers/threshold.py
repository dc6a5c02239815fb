"""The most similar samples are likely to be of the anchor's kind: above a similarity they are no negatives.

Huynh, Kornblith, Walter, Maire, Khademi 2022, arXiv:2011.11765, sections 3.2 and 3.3: false negatives are found by the
nearest few and a threshold, and eliminated. The choice has no gradient, a positive is never among them, and it begins
when the vectors mean something.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field
from torch import Tensor

from pipeline.contrast import Contrast, Pairs
from pipeline.metrics import Metric
from pipeline.samplers.rows import ALONE, Beside, everyone, in_batch_candidates
from pipeline.spec import Spec


class Threshold(Spec):
    """All other views of the batch, less the nearest negatives above a similarity."""

    kind: Literal["threshold"]
    above: Annotated[float, Field()]
    """Similarity, in the space's metric, above which a negative is left out; a cosine lies in [-1, 1]."""
    most: Annotated[int, Field(ge=1, le=1024)]
    """Negatives that one anchor loses at most, the nearest first."""
    warmup: Annotated[float, Field(ge=0, lt=1)]
    """Share of the training before the first is left out."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The label columns that the batch must bring: none."""
        return ()

    def candidates(self, batch: int, crossed: bool) -> int:
        """Candidates of an anchor, its positive among them, of a batch of so many samples; at most."""
        return in_batch_candidates(batch, crossed)

    def contrast(
        self,
        z: Tensor,
        columns: Mapping[str, Tensor],
        metric: Metric,
        temperature: Tensor | float | None,
        normalization: str | None,
        candidates: Tensor | None = None,
        candidate_columns: Mapping[str, Tensor] | None = None,
        beside: Beside = ALONE,
    ) -> Contrast:
        """Contrast of the anchors ``z`` (A, D); arguments as for ``InBatch``.

        Raises:
            Refusal: a column is missing or has another length, or the candidates hold fewer than two samples.
        """
        theirs = columns if candidate_columns is None else candidate_columns
        relation = everyone(columns, theirs, beside.crossed)
        contrast = Contrast.of(
            z,
            relation,
            metric=metric,
            temperature=temperature,
            normalization=normalization,
            candidates=candidates,
        )
        if beside.share < self.warmup:
            return contrast
        (part,) = contrast.parts
        logits, places = contrast.top(min(self.most, len(relation.own.candidates)))
        rows, rank = (logits * _number(contrast.temperature) > self.above).nonzero(as_tuple=True)
        dropped = Pairs(rows, places[rows, rank])
        return replace(contrast, parts=(replace(part, relation=replace(relation, dropped=dropped)),))


def _number(temperature: Tensor | float) -> Tensor | float:
    return temperature.detach() if isinstance(temperature, Tensor) else temperature
