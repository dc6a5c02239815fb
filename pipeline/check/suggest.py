"""A draft of ``invariances:`` from the data: every invariance of images in a usual strength, judged alone.

What keeps every label readable and near the data is offered; the rest stands as a comment, with what it would lose. The
evidence is beside each line; whether something *should* not matter, only the user knows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pipeline.check.findings import Finding
from pipeline.check.ground import prepare
from pipeline.check.judged import judge
from pipeline.check.losses import loss_findings
from pipeline.check.section import Check
from pipeline.check.sentences import percent
from pipeline.shards import Shards
from pipeline.views import (
    Blur,
    Brightness,
    ChannelGain,
    ColorJitter,
    Contrast,
    Erase,
    Grayscale,
    HorizontalFlip,
    Hue,
    Noise,
    ResizedCrop,
    RightAngle,
    Rotation,
    Saturation,
    Shift,
    Solarize,
    VerticalFlip,
    factor,
    fault,
)

NAMES = {"erased": "erased", "merged": "merged", "transported": "carried"}


def candidates(height: int, width: int) -> list[Any]:
    """The invariances that are tried, in the order in which they would be applied."""
    return [
        ResizedCrop(area=(0.5, 1.0)),
        ResizedCrop(area=(0.2, 1.0)),
        Shift(pixels=max(1.0, round(min(height, width) / 16))),
        Rotation(degrees=15.0),
        Rotation(degrees=180.0),
        RightAngle(probability=1.0),
        HorizontalFlip(probability=0.5),
        VerticalFlip(probability=0.5),
        Brightness(amount=0.2),
        Contrast(amount=0.2),
        Saturation(amount=0.4),
        Hue(amount=0.1),
        Hue(amount=0.5),
        ColorJitter(brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1, probability=0.8),
        Grayscale(probability=0.2),
        ChannelGain(amount=0.2),
        Solarize(probability=0.2),
        Blur(sigma=(0.1, 1.0), probability=0.5),
        Noise(),
        Erase(probability=0.5),
    ]


def suggest(
    shards: Shards, check: Check, preserves: Sequence[str], told: Callable[[str], object] = str
) -> Iterator[str]:
    """Yield the lines of a YAML list; ``told`` hears of every invariance before it is tried.

    Args:
        preserves: factor names and label columns; with no label column among them, all columns are judged.
    """
    ground = prepare(shards, check)
    named = [column.name for column in ground.columns if column.name in preserves]
    columns = named or [column.name for column in ground.columns]
    canvas = shards.card.input
    count = len(ground.train) + len(ground.test)
    yield f"# a draft from {count} pictures; judged by: {', '.join(columns) or 'nothing'}"
    for each in ground.faults.values():
        yield f"# {each}"
    yield "invariances:"
    for invariance in candidates(canvas.height, canvas.width):
        reason = fault(invariance, canvas.channels, canvas.height, canvas.width)
        if reason is not None:
            continue
        told(invariance.kind)
        removed = [name for name in preserves if factor(name) in invariance.removes]
        judged = judge(ground, [invariance])
        found = list(loss_findings(ground, judged, invariance.kind, None, tuple(columns)))
        yield line(invariance, found, removed, bool(columns))


def line(invariance: Any, found: Sequence[Finding], removed: Sequence[str], labelled: bool) -> str:
    """One line of the draft: offered, or commented out with the reason."""
    text = "- " + json.dumps(invariance.model_dump(mode="json")).replace('"', "")
    bad = [each for each in found if each.verdict in ("fail", "warn")]
    if removed:
        return f"  # {text}  # no: removes {', '.join(removed)}, which is preserved"
    if not labelled:
        return f"  # {text}  # no label tells what it costs"
    if bad:
        words = "; ".join(_words(each) for each in bad)
        return f"  # {text}  # no: {words}"
    unsure = "" if all(each.verdict == "pass" for each in found) else "unsure: "
    return f"  {text}  # {unsure}{'; '.join(_words(each) for each in found)}"


def _words(finding: Finding) -> str:
    if finding.details.get("changes"):
        source, target, moved, of = finding.details["changes"][0]
        return f"changes {finding.preserved}: {moved} of {of} {source} read as {target}"
    if finding.figure is None or finding.low is None or finding.high is None:
        return f"{finding.preserved} was never readable"
    value, low, high = finding.figure, finding.low, finding.high
    if finding.finding == "transported" and finding.details.get("carried"):
        value, low, high = finding.details["carried"]
    return f"{finding.preserved} {NAMES[finding.finding]}: {percent(value)} left ({100 * low:.0f} to {100 * high:.0f})"
