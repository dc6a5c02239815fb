"""The candidates of an anchor are all other views of the global batch: one positive a further view, the rest negatives.

Chen, Kornblith, Norouzi, Hinton 2020, arXiv:2002.05709, section 2.1: no negatives are sampled; each of the 2B views
has the other view of its sample as positive and the 2B - 2 views of other samples as negatives. Where candidates come
from a target network an anchor meets those of the other views alone: B - 1 negatives (Chen, Xie, He 2021,
arXiv:2104.02057, algorithm 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from torch import Tensor

from pipeline.contrast import Contrast
from pipeline.metrics import Metric
from pipeline.samplers.rows import ALONE, Beside, everyone, in_batch_candidates
from pipeline.spec import Spec


class InBatch(Spec):
    """Every view of the global batch except the anchor itself is a candidate."""

    kind: Literal["in_batch"]

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
        """Contrast of the anchors ``z`` (A, D).

        Args:
            columns: "sample" and "view", int64 (A,), in any order; where there is a "group", views of another sample
                of the anchor's group are no candidates.
            candidates: (C, D), such as the views of all ranks, the anchors among them; None: the anchors themselves.
            candidate_columns: the same columns of the candidates, (C,).
            beside: what the batch stands beside.

        Raises:
            Refusal: a column is missing or has another length, or the candidates hold fewer than two samples.
        """
        theirs = columns if candidate_columns is None else candidate_columns
        return Contrast.of(
            z,
            everyone(columns, theirs, beside.crossed),
            metric=metric,
            temperature=temperature,
            normalization=normalization,
            candidates=candidates,
        )
