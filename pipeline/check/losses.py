"""From what is left of every label under one invariance to findings: erased, merged, transported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pipeline.check.erased import Left
from pipeline.check.findings import Finding, Verdict, inconclusive, ruled
from pipeline.check.ground import Ground
from pipeline.check.interval import Figure
from pipeline.check.judged import Judged, Loss
from pipeline.check.section import TOGETHER
from pipeline.check.sentences import known, listing, lost, percent, span
from pipeline.check.transported import Change
from pipeline.rounding import rounded


def loss_findings(
    ground: Ground, judged: Judged, kind: str, position: int | None, preserves: tuple[str, ...]
) -> Iterator[Finding]:
    """Yield erased, merged and transported for every label column that can be read."""
    for name, loss in judged.losses.items():
        told = loss.column.words
        if not ground.readable(loss.column):
            if name in preserves:
                low = rounded(ground.values[name].mean().item())
                sentence = (
                    f"{told} was never readable from the pictures by a cheap probe ({percent(low)}, chance "
                    f"{percent(loss.column.chance)}), so what {_called(kind)} loses of it cannot be known"
                )
                for what in ("erased", "merged", "transported"):
                    yield inconclusive(what, kind, name, sentence, position)
            continue
        for finding in (_erased(ground, judged, loss, kind), _merged(ground, judged, loss, kind)):
            yield _placed(finding, name in preserves, position)
        yield _placed(_transported(ground, judged, loss, kind), name in preserves, position)


def _called(kind: str) -> str:
    return "all of them together" if kind == TOGETHER else kind


def _erased(ground: Ground, judged: Judged, loss: Loss, kind: str) -> Finding:
    left, beside = loss.erased, loss.erased_always
    verdict = ruled(left.figure, 1 - ground.check.tolerance, "fail")
    verb = "erases" if verdict == "fail" else "leaves"
    sentence = f"{_called(kind)} {_plural(kind, verb)} {loss.column.words}: {known(loss.column, left, 'after it')}"
    sentence += _tolerated(left.figure, ground.check.tolerance)
    if judged.probability < 1 and beside is not left:
        sentence += f"; applied always, {percent(beside.after)}"
    return _finding("erased", kind, loss, verdict, sentence, left, None if beside is left else beside)


def _merged(ground: Ground, judged: Judged, loss: Loss, kind: str) -> Finding:
    left = loss.merged_always
    verdict = ruled(left.figure, 1 - ground.check.tolerance, "fail")
    verb = "merges" if verdict == "fail" else "keeps apart"
    after = "once a picture and its views must be one point"
    sentence = f"{_called(kind)} {_plural(kind, verb)} {loss.column.words}: {known(loss.column, left, after)}"
    sentence += _tolerated(left.figure, ground.check.tolerance)
    return _finding("merged", kind, loss, verdict, sentence, left, loss.merged if judged.probability < 1 else None)


def _transported(ground: Ground, judged: Judged, loss: Loss, kind: str) -> Finding:
    left, told = loss.retained_always, loss.column.words
    reads = f"{told} is read {percent(max(left.after, 0.0))} of the time from its views by a probe of the pictures"
    reads += f", which reads the pictures {percent(left.before)} (chance {percent(left.chance)})"
    if loss.changes:
        moves = listing([_move(loss, change) for change in loss.changes])
        sentence = f"{_called(kind)} {_plural(kind, 'changes')} the meaning of {told}: {moves}; {reads}"
        verdict: Verdict = "fail"
    elif loss.carried is None:
        verdict, sentence = "pass", f"{_called(kind)}: nothing of {told} is left that could be read wrongly"
    else:
        verdict = ruled(loss.carried, ground.check.retained, "warn")
        verb = "leads out of the data's distribution" if verdict == "warn" else "stays near the data"
        sentence = (
            f"{_called(kind)} {_plural(kind, verb)}: {reads}; that is {span(loss.carried)} of what a probe of the "
        )
        sentence += f"views reads, where at least {percent(ground.check.retained)} are asked"
    beside = loss.retained if judged.probability < 1 else None
    finding = _finding("transported", kind, loss, verdict, sentence, left, beside)
    names = loss.column.classes
    finding.details["carried"] = None if loss.carried is None else [rounded(value) for value in loss.carried]
    finding.details["changes"] = [
        [names[each.source], names[each.target], each.moved, each.of] for each in loss.changes
    ]
    return finding


def _move(loss: Loss, change: Change) -> str:
    names = loss.column.classes
    return f"{change.moved} of {change.of} {names[change.source]} are read as {names[change.target]}"


def _tolerated(figure: Figure | None, tolerance: float) -> str:
    if figure is None:
        return ""
    return f"; {span(lost(figure))} of what is known of it is lost, {percent(tolerance)} is tolerated"


def _plural(kind: str, verb: str) -> str:
    """The verb for one invariance, or for all of them."""
    if kind != TOGETHER:
        return verb
    first, _, rest = verb.partition(" ")
    return f"{first.removesuffix('s')} {rest}".strip()


def _finding(
    finding: str, kind: str, loss: Loss, verdict: Verdict, sentence: str, left: Left, beside: Left | None
) -> Finding:
    value, low, high = (None, None, None) if left.figure is None else (rounded(each) for each in left.figure)
    details: dict[str, Any] = {
        "probe": left.probe,
        "before": rounded(left.before),
        "after": rounded(left.after),
        "chance": rounded(left.chance),
        "count": len(loss.column.rows),
        "measure": "R2" if loss.column.kind == "number" else "accuracy",
        "beside": None,
    }
    if beside is not None and beside.figure is not None:
        other, least, most = (rounded(each) for each in beside.figure)
        mode = "always" if finding == "erased" else "as declared"
        details["beside"] = {"mode": mode, "figure": other, "low": least, "high": most, "after": rounded(beside.after)}
    return Finding(finding, kind, loss.column.name, verdict, sentence, None, value, low, high, details)


def _placed(finding: Finding, preserved: bool, position: int | None) -> Finding:
    verdict: Verdict = finding.verdict if preserved else "noted"
    return replace(finding, verdict=verdict, position=position)
