"""Judgement: measured values against the thresholds that were declared before the run. It computes no measure.

A threshold is passed if the whole interval lies on its good side, failed if the whole interval lies on the other, and
inconclusive if the interval crosses it. A measure that could not be computed has not been reached: failed, with the
reason. The space's verdict is its worst row. ``reasons`` says why a space is what it is, whatever was demanded of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pipeline.audit import Audit
from pipeline.audit.reasons import diagnose
from pipeline.spec import Refusal, nearest

Ruling = Literal["passed", "failed", "inconclusive"]
Gate = Literal["pass", "fail", "accepted"]


@dataclass(frozen=True)
class Measured:
    """One measured value with its interval (None: it has none), or why it has no value."""

    value: float | None
    low: float | None = None
    high: float | None = None
    note: str = ""


def ruling(measured: Measured, at_least: float | None, at_most: float | None) -> Ruling:
    """Rule on one threshold, of which exactly one bound is given. Without an interval the value itself decides."""
    if measured.value is None:
        return "failed"
    low = measured.value if measured.low is None else measured.low
    high = measured.value if measured.high is None else measured.high
    if at_least is not None:
        return "passed" if low >= at_least else "failed" if high < at_least else "inconclusive"
    if at_most is not None:
        return "passed" if high <= at_most else "failed" if low > at_most else "inconclusive"
    raise ValueError("a threshold needs at_least or at_most")


def judge(audit: Audit, measured: Mapping[str, Measured], where: str) -> tuple[dict[str, Any], Gate]:
    """Return (the content of verdict.json, the gate) for a spec's thresholds.

    Args:
        measured: name of a measure -> its value; names as in ``pipeline.audit``.
        where: file and section of the thresholds, for errors ("specs/digits.yaml: audit").

    Raises:
        Refusal: a threshold's measure was not measured (a label column that is not probed or does not exist).
    """
    unknown = [
        f'{where}.thresholds[{position}].measure = "{threshold.measure}": not measured; '
        f"{nearest(threshold.measure, measured)}"
        for position, threshold in enumerate(audit.thresholds)
        if threshold.measure not in measured
    ]
    if unknown:
        raise Refusal("\n".join(unknown))
    reasons = {acceptance.measure: acceptance.reason for acceptance in audit.accept}
    rows = [
        _row(measured[threshold.measure], threshold.measure, threshold.at_least, threshold.at_most, reasons)
        for threshold in audit.thresholds
    ]
    rulings: set[str] = {row["verdict"] for row in rows}
    verdict = next((word for word in ("failed", "inconclusive") if word in rulings), "passed")
    open_failures = [row for row in rows if row["verdict"] == "failed" and row["accepted"] is None]
    gate: Gate = "fail" if open_failures else "accepted" if "failed" in rulings else "pass"
    found = {"verdict": verdict, "thresholds": audit.fingerprint(), "rows": rows, "reasons": diagnose(measured)}
    return found, gate


def _row(
    found: Measured, measure: str, at_least: float | None, at_most: float | None, reasons: Mapping[str, str]
) -> dict[str, Any]:
    decided = ruling(found, at_least, at_most)
    return {
        "measure": measure,
        **({"at_least": at_least} if at_least is not None else {"at_most": at_most}),
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "note": found.note,
        "verdict": decided,
        "accepted": reasons.get(measure) if decided == "failed" else None,
    }
