"""Only the nearest negatives of each anchor are candidates.

Robinson, Chuang, Sra, Jegelka 2021, arXiv:2010.04592, choose negatives by similarity softly; this is the hard choice,
as in Schroff, Kalenichenko, Philbin 2015 (FaceNet, arXiv:1503.03832, section 3.2) and in Wu, Mosbach, Ermon, Goodman
2021. The choice has no gradient, what was chosen has. False negatives are the hardest of all: it wants few of them.
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


class Hardest(Spec):
    """The positives, and the nearest negatives of the batch."""

    kind: Literal["hardest"]
    nearest: Annotated[int, Field(ge=1, le=4096)]
    """Negatives that an anchor keeps."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The label columns that the batch must bring: none."""
        return ()

    def candidates(self, batch: int, crossed: bool) -> int:
        """Candidates of an anchor, its positive among them, of a batch of so many samples; at most."""
        return 1 + min(self.nearest, in_batch_candidates(batch, crossed) - 1)

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
        (part,) = contrast.parts
        _, places = contrast.top(min(self.nearest, len(relation.own.candidates)))
        rows, rank = (places >= 0).nonzero(as_tuple=True)
        only = Pairs(rows, places[rows, rank])
        return replace(contrast, parts=(replace(part, relation=replace(relation, only=only)),))
