"""The candidates are all other views of the global batch, and those of the anchor's label are its positives.

Khosla et al. 2020, arXiv:2004.11362, section 3.2.2: positives are all samples of the anchor's class in the batch, the
anchor's other views among them; everything else is a negative.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from torch import Tensor

from pipeline.contrast import Codes, Contrast, Relation
from pipeline.metrics import Metric
from pipeline.samplers.rows import ALONE, Beside, check_samples, column, own
from pipeline.spec import Spec


class SameLabel(Spec):
    """Every view of the global batch except the anchor itself; positive where the label is the same."""

    kind: Literal["same_label"]
    column: str
    """The label column whose equality makes a positive."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The label columns that the batch must bring."""
        return (self.column,)

    def candidates(self, batch: int, crossed: bool) -> int:
        """Candidates of an anchor, its positive among them, of a batch of so many samples; at most."""
        return 2 * batch - 1

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
        """Contrast of the anchors ``z`` (A, D); arguments as for ``InBatch``, with the label column beside them.

        Raises:
            Refusal: a column is missing or has another length, or the candidates hold fewer than two samples.
        """
        theirs = columns if candidate_columns is None else candidate_columns
        check_samples(column(theirs, "sample"))
        relation = Relation(own(columns, theirs), Codes(column(columns, self.column), column(theirs, self.column)))
        return Contrast.of(
            z,
            relation,
            metric=metric,
            temperature=temperature,
            normalization=normalization,
            candidates=candidates,
        )
