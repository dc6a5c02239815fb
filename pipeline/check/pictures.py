"""What a finding looks like: pictures one above the other, what they were and what became of them.

The same arguments give the same bytes; no date is in a file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pipeline.check.findings import Finding
from pipeline.check.ground import Ground
from pipeline.check.judged import Judged
from pipeline.check.partners import Pairs
from pipeline.pictures import to_rgb

COLUMNS = 8
SIDE = 1.15  # inches of a picture
GAP, WORDS = 0.06, 0.22  # between pictures, and for a line of words, in sides of a picture
INK, MUTED = "#1c1d20", "#63666d"
PLAIN: dict[str, Any] = {"fontsize": 7.5, "color": INK, "ha": "center", "va": "bottom", "parse_math": False}


@dataclass(frozen=True)
class Picture:
    """Columns of two pictures, with a word above and below each."""

    title: str
    above: Tensor
    below: Tensor
    upper: Sequence[str]
    lower: Sequence[str]


def picture_of_all(ground: Ground, judged: Judged, kind: str) -> Picture:
    """What an invariance makes of any pictures."""
    above, below = ground.test.images[:COLUMNS], judged.test[1].first[:COLUMNS]
    return Picture(f"pictures, and below what {kind} makes of them", above, below, *([""] * len(above),) * 2)


def picture_of_views(ground: Ground, judged: Judged, finding: Finding) -> Picture | None:
    """Of a loss: pictures of different classes whose views come to look alike, or that are read as another class."""
    if finding.verdict in ("pass", "noted") or finding.preserved not in judged.losses:
        return None
    loss = judged.losses[finding.preserved]
    first, images = judged.test[1].first, ground.test.images
    if loss.column.kind != "class":
        rows = loss.column.rows[:COLUMNS]
        return Picture("pictures, and their views below", images[rows], first[rows], *([""] * len(rows),) * 2)
    names, codes = loss.column.classes, loss.column.codes
    if finding.finding == "transported":
        wrong = [row for change in loss.changes for row in change.rows.tolist()] or [
            row for row in loss.column.rows.tolist() if loss.read[row] != codes[row]
        ]
        rows = torch.tensor(wrong[:COLUMNS], dtype=torch.long)
        return (
            Picture(
                f"pictures, and below how a probe of the pictures reads their views ({finding.invariance})",
                images[rows],
                first[rows],
                [names[int(codes[row])] for row in rows],
                [f"read as {names[int(loss.read[row])]}" for row in rows],
            )
            if len(rows)
            else None
        )
    pairs = _alike(ground, judged, loss.column.rows, codes)
    rows = torch.tensor([row for pair in pairs for row in pair][:COLUMNS], dtype=torch.long)
    return (
        Picture(
            f"neighbours of different classes: what {finding.invariance} leaves of them is below",
            images[rows],
            first[rows],
            [names[int(codes[row])] for row in rows],
            [""] * len(rows),
        )
        if len(rows)
        else None
    )


def _alike(ground: Ground, judged: Judged, rows: Tensor, codes: Tensor) -> list[tuple[int, int]]:
    """Pairs of test rows of different classes whose views lie closest, relative to the pictures themselves."""
    rows = rows[:400]
    before, after = ground.plain_test["all"][rows], judged.test[1].views[0]["all"][rows]
    scale = ground.plain_train["all"].std(0, correction=0).clamp(min=1e-3)
    near, far = torch.cdist(after / scale, after / scale), torch.cdist(before / scale, before / scale)
    ratio = near / far.clamp(min=1e-6)
    ratio[codes[rows][:, None] == codes[rows][None, :]] = torch.inf
    found: list[tuple[int, int]] = []
    used: set[int] = set()
    for place in ratio.flatten().argsort()[: 50 * COLUMNS].tolist():
        one, other = divmod(place, len(rows))
        if one in used or other in used or not bool(ratio[one, other] < torch.inf):
            continue
        used |= {one, other}
        found.append((int(rows[one]), int(rows[other])))
        if len(found) * 2 >= COLUMNS:
            break
    return found


def picture_of_pairs(
    ground: Ground, judged: Judged, pairs: list[tuple[int, int]], matched: Pairs | None = None
) -> Picture | None:
    """Pairs that a statistic matched; or inputs that collide, their common view below."""
    if matched is not None:
        rows = matched.hits.nonzero().flatten()[:COLUMNS]
        title, above, below = "two views of one picture, above and below, that were matched", matched.one, matched.other
    else:
        rows = torch.tensor([row for pair in pairs for row in pair][:COLUMNS], dtype=torch.long)
        title, above = "inputs that collide, two by two; below, their view", ground.test.images
        below = judged.test[1].first
    blank = [""] * len(rows)
    return Picture(title, above[rows], below[rows], blank, blank) if len(rows) else None


def draw(picture: Picture, file: Path, pictures: Callable[[Tensor], Tensor] = lambda batch: batch) -> None:
    """Write a picture as PNG: the words stand above their pictures. ``pictures``: what samples look like."""
    count = len(picture.above)
    figure, axes = figure_of(max(count, 4) * SIDE, 2 * SIDE + 0.7, 1, 1)
    place = axes[0][0]
    for row, (images, words) in enumerate(((picture.above, picture.upper), (picture.below, picture.lower))):
        top = row * (1 + WORDS)
        for column, pixels in enumerate(to_rgb(pictures(images)).clamp(0, 1).permute(0, 2, 3, 1).numpy()):
            left = column * (1 + GAP)
            place.imshow(pixels, extent=(left, left + 1, top + 1, top), interpolation="nearest", aspect="auto")
            place.text(left + 0.5, top - 0.05, words[column][:18], **PLAIN)
    place.set_title(picture.title, fontsize=9, color=MUTED, loc="left", pad=14, parse_math=False)
    place.set_xlim(0, max(count, 4) * (1 + GAP))
    place.set_ylim(2 + WORDS, -WORDS)
    place.set_axis_off()
    save(figure, file)


def figure_of(width: float, height: float, rows: int, columns: int) -> tuple[Any, Any]:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # whatever the user's own style
        figure = Figure(figsize=(width, height), layout="constrained", dpi=110)
        return figure, figure.subplots(rows, columns, squeeze=False)


def save(figure: Any, file: Path) -> None:
    figure.savefig(file, format="png", metadata={"Software": None})
