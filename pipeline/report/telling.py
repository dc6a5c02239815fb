"""What of a result or a spec is told, in which order, and in which words; everything may be of any form or missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.report.result import STAGES, Result
from pipeline.report.results import Finding, Ledger

CHECKED = ("fail", "accepted", "warn", "inconclusive")
"""Verdicts of check that are told one by one, worst first."""
RANKED = ("passed", "accepted", "inconclusive", "unfinished", "failed", "refused", "damaged")
"""Verdicts of a spec, best first: the order in which the comparison sorts them."""


def refusals(result: Result) -> list[tuple[str, str, str]]:
    """Who was not allowed to run, by whom, and why: (stages, refusing stage, reason), each reason once."""
    found: dict[tuple[str, str], list[str]] = {}
    for stage in STAGES:
        status = result.stages[stage]
        if status.state == "refused":
            found.setdefault((status.by, status.reason), []).append(stage)
    return [(", ".join(stages), by, reason) for (by, reason), stages in found.items()]


def alarms(result: Result) -> list[Finding]:
    """What check did not pass, worst first."""
    rows = result.findings.rows if result.findings is not None else ()
    return [row for verdict in CHECKED for row in rows if row.verdict == verdict]


def refused_parts(ledger: Ledger) -> list[tuple[str, int, str]]:
    """What was refused as rows of a chart, the most first: (reason, files, style)."""
    return [(reason, files, "gone") for reason, files in sorted(ledger.refused.items(), key=lambda each: -each[1])]


def label_of(result: Result, held: Mapping[str, Any]) -> str | None:
    """The label column of those at hand that is to be preserved, or else the first."""
    wanted = [str(each) for each in listed(result.content, "space", "preserves")]
    return next((name for name in [*wanted, *held] if name in held), None)


def section(content: Mapping[str, Any], *path: str) -> Any:
    """What stands at a path of a parsed spec, whatever the file's form; None where nothing does."""
    here: Any = content
    for step in path:
        here = here.get(step) if isinstance(here, Mapping) else None
    return here


def listed(content: Mapping[str, Any], *path: str) -> list[Any]:
    """The list at a path of a parsed spec; empty where there is none."""
    found = section(content, *path)
    return found if isinstance(found, list) else []


def shown(value: Any) -> str:
    """A declared variant in words: its kind, and its parameters behind it."""
    if not isinstance(value, Mapping):
        return str(value)
    rest = ", ".join(f"{key} {_plain(each)}" for key, each in value.items() if key != "kind")
    kind = str(value.get("kind", "")).replace("_", " ")
    return f"{kind} ({rest})" if rest and kind else kind or rest


def probe_words(probe: str) -> str:
    """A probe in words: ``few_10`` is the linear one with that many % of the labels."""
    return f"linear, {probe.removeprefix('few_')} % of the labels" if probe.startswith("few_") else probe


def written(value: Any) -> str:
    """A value as YAML writes it, or a declared variant in words."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return shown(value) if value != "" else '""'


def _plain(value: Any) -> str:
    return " to ".join(map(str, value)) if isinstance(value, list) and len(value) == 2 else str(value)
