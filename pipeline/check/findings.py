"""One thing that the check found out, its verdict, and what the next stage reads of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pipeline.check.section import TOGETHER, Accepted

Verdict = Literal["pass", "warn", "fail", "inconclusive", "accepted", "noted"]
"""``noted``: measured, but on a label that nobody asked to preserve."""


@dataclass(frozen=True)
class Finding:
    """One thing found out about one invariance (or all together) and one label (or none).

    ``figure`` is what the verdict reads, with its 95 % interval: the part of what is known of the label, above chance,
    that is left (erased, merged, transported), or the share of partners matched (shortcut, false_positive).
    """

    finding: str
    invariance: str
    preserved: str
    verdict: Verdict
    sentence: str
    position: int | None = None
    """of the invariance in the declaration"""
    figure: float | None = None
    low: float | None = None
    high: float | None = None
    details: dict[str, Any] = field(default_factory=dict)
    """plain accuracies, chance, counts, the probe, the figure with the other probability, pairs that collide …"""
    picture: str | None = None
    """file name in the stage's folder"""


def ruled(figure: tuple[float, float, float] | None, at_least: float, below: Verdict) -> Verdict:
    """The verdict on a figure (value, low, high): pass above, ``below`` under it, inconclusive where it crosses."""
    if figure is None:
        return "inconclusive"
    _, low, high = figure
    return "pass" if low >= at_least else below if high < at_least else "inconclusive"


def accepted(findings: Iterable[Finding], accept: Sequence[Accepted]) -> list[Finding]:
    """The findings with those that fail and are accepted marked so, each with its reason.

    Who accepts that an invariance removes a factor accepts what the data shows of it; and what is accepted of one
    invariance is accepted of all of them together, which hold it.
    """
    own: dict[tuple[str, str, str], str] = {
        (each.finding, each.invariance, each.preserved): each.reason for each in accept
    }
    removed = {(each.invariance, each.preserved): each.reason for each in accept if each.finding == "contradiction"}
    within = {each.preserved: each.reason for each in accept}
    found = []
    for finding in findings:
        place = (finding.invariance, finding.preserved)
        reason = own.get((finding.finding, *place)) or removed.get(place)
        if reason is None and finding.invariance == TOGETHER:
            reason = within.get(finding.preserved)
        if finding.verdict == "fail" and reason is not None:
            finding = replace(finding, verdict="accepted", sentence=f"{finding.sentence}; accepted: {reason}")
        found.append(finding)
    return found


def gate(findings: Sequence[Finding]) -> str:
    """What the next stage reads: ``fail`` if any finding fails, else ``accepted`` if any had to be, else ``pass``."""
    verdicts = {finding.verdict for finding in findings}
    return "fail" if "fail" in verdicts else "accepted" if "accepted" in verdicts else "pass"


def gate_file(findings: Sequence[Finding]) -> dict[str, str]:
    """gate.json: the gate, and the sentence of the first finding that fails as ``reason``."""
    reason = next((finding.sentence for finding in findings if finding.verdict == "fail"), None)
    return {"gate": gate(findings)} if reason is None else {"gate": gate(findings), "reason": reason}


def inconclusive(finding: str, invariance: str, label: str, sentence: str, position: int | None = None) -> Finding:
    """A finding that could not be decided, with the reason."""
    return Finding(finding, invariance, label, "inconclusive", sentence, position)
