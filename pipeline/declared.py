"""Were thresholds declared before the training, or after its outcome was seen? An untracked log answers.

When a training begins, the thresholds that its spec holds are appended with the date to work/logs/NAME/declared.jsonl;
when it has finished, the digest of the weights that it wrote. A verdict is of some thresholds and of some weights: the
first beginning of a training that made these weights says what stood in the spec on that day. Nothing tracked depends
on the log, and nobody is stopped from editing it: it is a help against fooling oneself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pipeline.audit import Threshold
from pipeline.declared_log import LOG
from pipeline.spec import SpecError, digest, parse


@dataclass(frozen=True)
class When:
    """The answer: whether the thresholds of a verdict stood when its training began."""

    answer: Literal["before", "after", "unknown"]
    told: str
    changes: tuple[str, ...] = ()
    """thresholds that were taken out (-) and added (+) since"""


def declared_when(logs: Path, weights: str, thresholds: Sequence[Threshold]) -> When:
    """Compare thresholds with those that stood when a training began.

    Args:
        logs: work/logs/NAME.
        weights: SHA-256 of the weights that were judged.
        thresholds: of the verdict.
    """
    records = list(_records(logs / LOG))
    made = {record.get("training") for record in records if record.get("weights") == weights}
    begun = next((each for each in records if each.get("event") == "began" and each.get("training") in made), None)
    if begun is None:
        known = "other trainings" if records else "no training"
        told = f"{logs / LOG} tells of {known}: these weights were not trained here, but came from a cache or a clone"
        return When("unknown", f"not known: {told}")
    date = begun.get("date", "an unknown day")
    before, now = _plain(begun.get("thresholds")), [_line(each) for each in thresholds]
    if before is None:
        return When("unknown", f"not known: the thresholds of {date} are none that this version can read")
    if digest(sorted(before)) == digest(sorted(now)):
        return When("before", f"declared before the training: the same thresholds stood when it began, {date}")
    changes = [f"- {line}" for line in before if line not in now] + [f"+ {line}" for line in now if line not in before]
    return When("after", f"changed after the training began, {date}", tuple(changes))


def _records(file: Path) -> Iterator[dict[str, Any]]:
    """The lines of the log that can be read, the earliest first."""
    if not file.is_file():
        return
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue  # cut by a kill
        if isinstance(record, dict):
            yield record


def _plain(content: Any) -> list[str] | None:
    """Logged thresholds as lines; None where they are none."""
    if not isinstance(content, list):
        return None
    try:
        return [_line(parse(each, Threshold, "log")) for each in content]
    except SpecError:
        return None


def _line(threshold: Threshold) -> str:
    bound = f"at_least {threshold.at_least:g}" if threshold.at_most is None else f"at_most {threshold.at_most:g}"
    return f"{threshold.measure} {bound}"
