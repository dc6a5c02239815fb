"""A draft of ``invariances:`` from the data: every invariance of the modality in a usual strength, judged alone.

Windows are among them where a sample is longer than they are.

What keeps every label readable and near the data is offered; the rest stands as a comment, with what it would lose. The
evidence is beside each line; whether something *should* not matter, only the user knows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pipeline.check.examine import worded
from pipeline.check.findings import Finding
from pipeline.check.ground import prepare
from pipeline.check.judged import judge
from pipeline.check.losses import loss_findings
from pipeline.check.section import Check
from pipeline.check.sentences import percent
from pipeline.check.windows import cut_from_files
from pipeline.modalities.proofs import proof_of
from pipeline.samples import several
from pipeline.shards import Shards
from pipeline.views import Window, factor, misfit

NAMES = {"erased": "erased", "merged": "merged", "transported": "carried"}


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
    contract = shards.card.input
    count = len(ground.train) + len(ground.test)
    yield f"# a draft from {count} {several(contract.word)}; judged by: {', '.join(columns) or 'nothing'}"
    for each in ground.faults.values():
        yield f"# {worded(each, contract.word)}"
    yield "invariances:"
    for invariance in (Window(), *proof_of(contract).drafts()):
        reason = misfit(invariance, contract.channels, contract.size)
        if reason is not None or (isinstance(invariance, Window) and not cut_from_files(ground.train, [invariance])):
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
