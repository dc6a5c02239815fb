"""Every batch holds each class in its proportion: what an anchor is told apart from does not change from step to step.

Only the order of an epoch is chosen; anchors, positives and negatives are those of ``in_batch``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pipeline.contrast import Contrast
from pipeline.keys import Keys, permutation
from pipeline.metrics import Metric
from pipeline.samplers.rows import ALONE, Beside, everyone, in_batch_candidates
from pipeline.spec import Spec


class Stratified(Spec):
    """All other views of a batch that is dealt by a label column."""

    kind: Literal["stratified"]
    column: str
    """The label column whose classes every batch holds in proportion."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The label columns that the batch must bring."""
        return (self.column,)

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
        return Contrast.of(
            z,
            relation,
            metric=metric,
            temperature=temperature,
            normalization=normalization,
            candidates=candidates,
        )


def stratified(codes: NDArray[np.int64], seed: int, epoch: int) -> NDArray[np.int64]:
    """The order of an epoch, (N,) places, in which every stretch holds each class in its proportion.

    Member i of a class of n stands at (i + u) / n of the way, u in [0, 1) being one number a class: so of K classes a
    stretch of b rows holds b·n/N, within 1 + K·n/N. A function of (codes, seed, epoch) only.

    Args:
        codes: (N,) the class of every row.
    """
    order = permutation(seed, epoch, len(codes))
    grouped = order[np.argsort(codes[order], kind="stable")]  # by class, at random within
    _, first, counts = np.unique(codes[grouped], return_index=True, return_counts=True)
    member = np.arange(len(codes)) - np.repeat(first, counts)
    start = Keys.of(seed, epoch, np.arange(len(counts))).uniform("stratified").double().numpy()
    place = (member + np.repeat(start, counts)) / np.repeat(counts, counts)
    return grouped[np.argsort(place, kind="stable")]
