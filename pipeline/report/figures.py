"""The figures of a spec as one flat mapping, the figures of all specs as a table, and what two of them say together.

Names: ``LABEL.knn_h`` (a probe on a layer), with ``_view0`` for the test samples moved by the declared invariances and
``_shuffled`` for the control; ``LABEL.knn_gain_raw`` is knn_h - knn_raw; measures keep their name, as
``effective_rank_h``; ``judged.MEASURE`` says what became of a threshold. A figure that has no value has no entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pipeline.report.result import STAGES, Result
from pipeline.report.results import NumberRow, ProbeRow, VerdictRow
from pipeline.rounding import rounded

Figures = dict[str, float | int | str]
MOVED, UNMOVED = "view0", "test"
LAYERS = ("h", "z", "raw", "untrained")


def figures(result: Result) -> Figures:
    """Every figure of one spec by its short name."""
    return {name: value for name, value in _figures(result) if value is not None}


def _figures(result: Result) -> Iterator[tuple[str, float | int | str | None]]:
    yield "verdict", verdict(result)
    if result.judged is not None:
        yield "reasons", "; ".join(each.reason for each in result.judged.reasons) or "none"
        for ruled in result.judged.rows:
            yield ruling_key(ruled), ruled.verdict if ruled.accepted is None else f"{ruled.verdict}, accepted"
    if result.card is not None:
        yield from result.card.splits.items()
    if result.ledger is not None:
        yield "seen", result.ledger.seen
        yield "kept", result.ledger.kept
    if result.cost is not None:
        yield "candidates", result.cost.candidates
        yield "negatives", result.cost.negatives_per_anchor
        for label, expected in result.cost.false_negatives_per_anchor.items():
            yield f"{label}.false_negatives", rounded(expected)
    if result.summary is not None:
        yield "loss", result.summary.loss
        if result.summary.starts_at is not None:
            yield "loss_at_chance", result.summary.starts_at
        yield "train_positive_similarity", result.summary.positive_similarity
        yield "train_negative_similarity", result.summary.negative_similarity
        yield "steps", result.summary.steps
        yield "parameters", result.summary.parameters
        yield "key_age", result.summary.key_age
        yield "key_drift", result.summary.key_drift
    for row in result.probed.rows if result.probed is not None else ():
        yield probe_key(row), row.accuracy
    for number in result.probed.numbers if result.probed is not None else ():
        yield number_key(number, "r2"), number.r2
        yield number_key(number, "mae"), number.mae
    for label in labels(result):
        for split in (UNMOVED, MOVED):
            h = knn(result, label, "h", split)
            for control in ("raw", "untrained"):
                other = knn(result, label, control, split)
                if h is not None and other is not None and h.accuracy is not None and other.accuracy is not None:
                    yield gain_key(label, control, split), rounded(h.accuracy - other.accuracy)
    for name, measure in result.audited.measures.items() if result.audited is not None else ():
        yield measure_key(name), measure.value


def ruling_key(row: VerdictRow) -> str:
    """The short name of what became of a threshold: ``judged.effective_rank.h``; of a second bound with its side."""
    return f"judged.{row.measure}" + ("" if row.at_most is None else ".at_most")


def probe_key(row: ProbeRow) -> str:
    """The short name of a probe's accuracy."""
    moved = "" if row.split == UNMOVED else f"_{row.split}"
    control = "" if row.control is None else "_" + row.control.removesuffix(" labels").replace(" ", "_")
    return f"{row.label}.{row.probe}_{row.layer}{moved}{control}"


def number_key(row: NumberRow, figure: str) -> str:
    """The short name of what is read of a column of numbers: ``r2`` or ``mae``."""
    moved = "" if row.split == UNMOVED else f"_{row.split}"
    control = "" if row.control is None else "_" + row.control.removesuffix(" labels").replace(" ", "_")
    return f"{row.label}.{figure}_{row.layer}{moved}{control}"


def gain_key(label: str, control: str, split: str) -> str:
    """The short name of what kNN reads from h beyond what it reads from a control."""
    return f"{label}.knn_gain_{control}" + ("" if split == UNMOVED else f"_{split}")


def measure_key(measure: str) -> str:
    """The short name of a measure: ``neighbour_purity.label.h`` is ``label.neighbour_purity_h``."""
    parts = measure.split(".")
    if len(parts) < 3:
        return "_".join(parts)
    return f"{'.'.join(parts[1:-1])}.{parts[0]}_{parts[-1]}"


def labels(result: Result) -> list[str]:
    """The probed label columns, in the order of the probe's rows."""
    return list(dict.fromkeys(row.label for row in result.probed.rows)) if result.probed is not None else []


def knn(result: Result, label: str, layer: str, split: str, probe: str = "knn") -> ProbeRow | None:
    """The row of one probe without a control, or None."""
    for row in result.probed.rows if result.probed is not None else ():
        if (row.label, row.layer, row.split, row.probe, row.control) == (label, layer, split, probe, None):
            return row
    return None


def verdict(result: Result) -> str:
    """One word for a spec: its judgement, or how far it came (refused, damaged, unfinished)."""
    states = [result.stages[stage].state for stage in STAGES]
    for state in ("damaged", "refused"):
        # a space that was judged and then not exported is told by its judgement
        if state in states and not (state == "refused" and result.judged is not None):
            return state
    if result.judged is None:
        return "unfinished"
    accepted = result.judged.verdict == "failed" and result.gate is not None and result.gate.gate == "accepted"
    return "accepted" if accepted else result.judged.verdict


def compared(one: ProbeRow, other: ProbeRow) -> Literal["better", "worse", "level", "unknown"]:
    """Whether two intervals lie apart: better, worse, or level where they overlap."""
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return "unknown"
    return "better" if one.low > other.high else "worse" if one.high < other.low else "level"


def table(results: Sequence[Result]) -> str:
    """The kNN accuracies of all specs as aligned text, a row per spec and label; "-" where there is no figure."""
    lines = [["spec", "label", *LAYERS, *(f"moved {layer}" for layer in LAYERS), "verdict"]]
    for result in results:
        for label in labels(result) or ["-"]:
            rows = [knn(result, label, layer, split) for split in (UNMOVED, MOVED) for layer in LAYERS]
            shares = ["-" if row is None or row.accuracy is None else f"{row.accuracy:.1%}" for row in rows]
            lines.append([_plain(result.name), _plain(label), *shares, verdict(result)])
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    left = {0, 1, len(widths) - 1}
    aligned = [
        "  ".join(cell.ljust(widths[at]) if at in left else cell.rjust(widths[at]) for at, cell in enumerate(line))
        for line in lines
    ]
    head = "kNN accuracy on the test samples, as they are and moved by the declared invariances"
    return "\n".join([head, *map(str.rstrip, aligned)])


def _plain(name: str) -> str:
    """A name on one line: what a terminal would act upon is shown as its escape."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in name)
