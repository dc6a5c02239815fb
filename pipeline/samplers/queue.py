"""The negatives of an anchor are keys of earlier steps, with or without those of its own batch.

He, Fan, Wu, Xie, Girshick 2020, arXiv:1911.05722, section 3.1: a queue of keys is a dictionary that is larger than a
batch. A queued key of the anchor's own sample or group (from the epoch before) is no candidate at all, whatever view it
was made of; the positive is the batch's own key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from pipeline.contrast import Candidates, Codes, Contrast, Relation
from pipeline.metrics import Metric
from pipeline.samplers.rows import ALONE, Beside, column, everyone
from pipeline.spec import Spec


class Queue(Spec):
    """Keys of earlier steps are negatives."""

    kind: Literal["queue"]
    length: int = Field(ge=1)
    """Keys that the queue holds, one a sample."""
    in_batch: bool
    """Whether the other samples of the batch are negatives too (MoCo: false)."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The label columns that the batch must bring: none."""
        return ()

    def candidates(self, batch: int, crossed: bool) -> int:
        """Candidates of an anchor, its positive among them, of a batch of so many samples; at most."""
        return 1 + (batch - 1 if self.in_batch else 0) + self.length

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

        Before the first key is queued, and without the batch's, there is no negative and no anchor counts.

        Raises:
            Refusal: a column is missing or has another length, or the candidates hold fewer than two samples.
        """
        theirs = columns if candidate_columns is None else candidate_columns
        relation = everyone(columns, theirs, beside.crossed)
        if not self.in_batch:
            relation = replace(relation, barred=_all(relation), bars=())
        further = []
        if beside.queued is not None and len(beside.queued[0]):
            vectors, kept = beside.queued
            further = [Candidates(vectors, earlier(columns, kept))]
        return Contrast.of(
            z,
            relation,
            metric=metric,
            temperature=temperature,
            normalization=normalization,
            candidates=candidates,
            further=further,
        )


def earlier(columns: Mapping[str, Tensor], kept: Mapping[str, Tensor]) -> Relation:
    """Anchors and queued keys: negative, or nothing where the sample or the group is the anchor's."""
    samples = Codes(column(columns, "sample"), column(kept, "sample"))
    rows = torch.arange(len(samples.candidates), device=samples.candidates.device)
    none = Codes(torch.full_like(samples.anchors, -1), rows)
    bars = (Codes(column(columns, "group"), column(kept, "group")),) if "group" in columns else ()
    return Relation(none, none, samples, bars=bars)


def _all(relation: Relation) -> Codes:
    """A rule that every pair is in."""
    return Codes(torch.zeros_like(relation.own.anchors), torch.zeros_like(relation.own.candidates))
