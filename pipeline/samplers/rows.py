"""What samplers share: reading the integer columns of a batch, and the relation of all to all others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from pipeline.contrast import Codes, Relation
from pipeline.spec import Refusal, nearest


@dataclass(frozen=True, eq=False)
class Beside:
    """What a batch's anchors and candidates stand beside."""

    crossed: bool = False
    """Candidates are of a target network: an anchor meets those of other views than its own alone (MoCo v3, BYOL)."""
    queued: tuple[Tensor, Mapping[str, Tensor]] | None = None
    """Keys of earlier steps (Q, D), and their columns (Q,): "sample", and "group" where the batch has it."""
    share: float = 1.0
    """Of the training that is done."""


ALONE = Beside()


def in_batch_candidates(batch: int, crossed: bool) -> int:
    """All views of a batch of pairs but the anchor's own; crossed: the other views alone."""
    return batch if crossed else 2 * batch - 1


def everyone(
    columns: Mapping[str, Tensor], theirs: Mapping[str, Tensor], crossed: bool = False, positive: str = "sample"
) -> Relation:
    """All candidates but the anchor itself: positive where the column ``positive`` is equal, else negative.

    Where there is a "group", rows of the anchor's group are no negatives; ``crossed``: nor are those of its own view.
    """
    barred = Codes(column(columns, "group"), column(theirs, "group")) if "group" in columns else None
    bars = (Codes(column(columns, "view"), column(theirs, "view")),) if crossed else ()
    group = Codes(column(columns, positive), column(theirs, positive))
    check_samples(column(theirs, "sample"))
    return Relation(own(columns, theirs), group, barred, bars=bars)


def column(columns: Mapping[str, Tensor], name: str) -> Tensor:
    """The integers of one column. Raises Refusal naming the columns that there are."""
    if name not in columns:
        raise Refusal(f"column '{name}' is not in the batch; {nearest(name, columns)}")
    if columns[name].ndim != 1 or columns[name].is_floating_point():
        raise Refusal(f"column '{name}' has shape {tuple(columns[name].shape)}: must be one integer per row")
    return columns[name]


def own(anchors: Mapping[str, Tensor], candidates: Mapping[str, Tensor]) -> Codes:
    """Codes that are equal for the same view of the same sample."""
    views = column(anchors, "view"), column(candidates, "view")
    for rows, view in ((anchors, views[0]), (candidates, views[1])):
        if len(column(rows, "sample")) != len(view):
            raise Refusal(f"columns 'sample' ({len(rows['sample'])}) and 'view' ({len(view)}) differ in length")
    width = max((int(view.max()) + 1 for view in views if len(view)), default=1)
    if anchors is candidates:  # one tensor for both: the relation is then known to be symmetric
        both = column(anchors, "sample") * width + views[0]
        return Codes(both, both)
    first, second = (
        column(rows, "sample") * width + view for rows, view in zip((anchors, candidates), views, strict=True)
    )
    return Codes(first, second)


def check_samples(samples: Tensor) -> None:
    """Refuse candidates that all come from one sample: they leave no negative."""
    if len(samples) == 0 or bool((samples == samples[0]).all()):
        raise Refusal(f"{min(len(samples), 1)} sample in the batch: at least 2 are needed, or there are no negatives")
