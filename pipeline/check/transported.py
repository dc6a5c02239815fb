"""*Transported*: where a probe that was trained on the pictures puts their views.

If it reads less from the views than a probe of the views does, t leads out of the data's distribution: what was lost
altogether counts as erased, not again here. If the views of one class are mostly, and with confidence, read as one
other, t changes the meaning, as turning a 6 into a 9. Collapse of many classes into one is no change of meaning but a
probe far from home; so the class that they move to must not stay itself, must not collect the others too, and the moved
pictures must lie about as near to it as its own.

Legend: m test rows, n training rows, K classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from pipeline.check.labels import Column
from pipeline.check.reading import CONSTANT

FEWEST = 8  # readable test pictures of a class, to speak of a majority
MAJORITY = 0.5
SINK = 0.2  # share of the other classes that is read as the same class: more is a collapse
FAR = 3.0  # distance to the class, in the median distance of its own pictures
NEIGHBOUR, DIRECTIONS = 3, 64  # distances are to the third neighbour, in so many principal directions
Z = 1.96


@dataclass(frozen=True)
class Change:
    """Pictures of one class that become another's."""

    source: int
    target: int
    moved: int
    of: int
    rows: Tensor
    """test rows that moved"""


def changes(
    column: Column,
    plain: Tensor,
    view: Tensor,
    changed: Tensor,
    train: Tensor,
    test: Tensor,
    moved: Tensor,
    codes: Tensor,
) -> list[Change]:
    """Every class whose views are read as one other class.

    Args:
        plain, view: scores (m, K) of the pictures and of one view of each.
        changed: (m,) whether the view differs from the picture.
        train, test, moved: features (n, D) and (m, D) of training pictures, test pictures and their views.
        codes: (n,) classes of the training pictures.
    """
    if column.kind != "class":
        return []
    counts = torch.zeros(len(column.codes), dtype=torch.bool)
    counts[column.rows] = True
    readable = counts & changed & (plain.argmax(1) == column.codes)
    read = view.argmax(1)
    shares = torch.zeros(plain.shape[1], plain.shape[1])
    totals = torch.zeros(plain.shape[1], dtype=torch.long)
    for source in range(plain.shape[1]):
        rows = readable & (column.codes == source)
        totals[source] = rows.sum()
        shares[source] = torch.bincount(read[rows], minlength=plain.shape[1]).float() / max(1, int(rows.sum()))
    found = []
    for source in (totals >= FEWEST).nonzero().flatten().tolist():
        target = int(shares[source].argmax())
        if target == source or _lowest(float(shares[source, target]), int(totals[source])) <= MAJORITY:
            continue
        others = [each for each in range(len(totals)) if each not in (source, target) and totals[each]]
        weights = totals[others].float()
        collected = float((shares[others, target] * weights).sum() / weights.sum()) if others else 0.0
        stays = float(shares[target, target]) if totals[target] else 0.0
        if collected > SINK or stays > MAJORITY:
            continue
        rows = readable & (column.codes == source) & (read == target)
        own = readable & (column.codes == target)
        if own.any() and _distance_ratio(train, test[own], moved[rows], codes == target) < FAR:
            found.append(Change(source, target, int(rows.sum()), int(totals[source]), rows.nonzero().flatten()))
    return found


def _lowest(share: float, count: int) -> float:
    """The lower end of Wilson's 95 % interval (E. Wilson, JASA 1927)."""
    middle = share + Z * Z / (2 * count)
    spread = Z * math.sqrt(share * (1 - share) / count + Z * Z / (4 * count * count))
    return (middle - spread) / (1 + Z * Z / count)


def _distance_ratio(train: Tensor, own: Tensor, moved: Tensor, of_class: Tensor) -> float:
    """How far moved pictures lie from a class, in the distance of the class's own: a ratio of medians."""
    mean, scale = train.mean(0), train.std(0, correction=0)
    scale = torch.where(scale > CONSTANT, scale, torch.inf)
    rows = (train - mean) / scale
    _, directions = torch.linalg.eigh(rows.T @ rows)
    directions = directions[:, -DIRECTIONS:]
    class_rows = rows[of_class] @ directions
    neighbour = min(NEIGHBOUR, len(class_rows))
    far, near = (
        torch.cdist(((part - mean) / scale) @ directions, class_rows).kthvalue(neighbour, dim=1).values.median()
        for part in (moved, own)
    )
    return float(far / near.clamp(min=1e-9))
