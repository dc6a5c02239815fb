"""A sample of the same content, or of the same group, is never a negative.

Data sets hold the same picture twice, and many pictures of one thing; in a batch they push themselves apart (sentence-
transformers calls this sampler by the same name, for text). Copies are told by the bytes of their files. Which are
positives is as in ``in_batch``: the views of the anchor's own sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from torch import Tensor

from pipeline.contrast import Codes, Contrast
from pipeline.metrics import Metric
from pipeline.samplers.rows import ALONE, Beside, column, everyone, in_batch_candidates
from pipeline.spec import Spec


class NoDuplicates(Spec):
    """All other views of the batch, less copies and members of the anchor's groups."""

    kind: Literal["no_duplicates"]
    columns: tuple[str, ...]
    """Label columns whose equality makes a group, such as a patient or a place; []: copies alone are left out."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The label columns that the batch must bring."""
        return self.columns

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
        """Contrast of the anchors ``z`` (A, D); arguments as for ``InBatch``, with "content" and the groups' columns
        beside them: equal integers are equal content.

        Raises:
            Refusal: a column is missing or has another length, or the candidates hold fewer than two samples.
        """
        theirs = columns if candidate_columns is None else candidate_columns
        relation = everyone(columns, theirs, beside.crossed)
        alike = tuple(Codes(column(columns, name), column(theirs, name)) for name in ("content", *self.columns))
        relation = replace(relation, bars=(*relation.bars, *alike))
        return Contrast.of(
            z,
            relation,
            metric=metric,
            temperature=temperature,
            normalization=normalization,
            candidates=candidates,
        )
