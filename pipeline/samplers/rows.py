"""What samplers share: reading the integer columns of a batch."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from pipeline.contrast import Codes
from pipeline.spec import Refusal, nearest


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
