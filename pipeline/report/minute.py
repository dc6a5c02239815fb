"""The answer in a minute, from what the stages found: may an encoder be trusted, what does it ignore, what to change.

Rules, no opinion: a space is trusted that passed what was declared for it, of which the audit has no diagnosis, and
whose h reads every preserved label better than the raw input and the untrained encoder do where samples move, with
intervals that lie apart. A transformation is ignored where it moves h less than half as far as another sample lies
(``audit.reasons`` has the same border).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pipeline.report.figures import MOVED, compared, knn, labels, verdict
from pipeline.report.forms import FORMS, measured
from pipeline.report.result import Result
from pipeline.report.results import Finding, ProbeRow, Reason, VerdictRow
from pipeline.report.results_audit import Readable, Transformation
from pipeline.report.telling import alarms, listed, refusals

STILL = 0.5
"""Movement below which a space ignores a transformation; at 1 it is as far as another sample."""
CONTROLS = {"raw": "the raw input", "untrained": "the untrained encoder"}
WORDS = {"yes": ("✓", "yes"), "care": ("≈", "with care"), "no": ("✕", "no"), "open": ("…", "not known yet")}
"""A sign and a word for each answer; the sign tells without colour."""
REMEDIES = {
    "fully collapsed": "lower the learning rate or raise the temperature: all vectors are one point",
    "dimensionally collapsed": "give the space more to tell apart (a larger batch, weaker invariances): it is flat",
    "untrained-like": "train longer, or declare stronger invariances: training has changed nothing that was measured",
}
"""What to do about a diagnosis that names nothing of the spec."""
READ = ("probe", "preserved", "gain", "label_kept", "neighbour_purity", "cluster_nmi", "cluster_ari")
SPREAD = ("effective_rank", "participation_ratio", "rankme", "dimensions_99", "class_effective_rank", "spread")
HELP = {
    **{(each, "at_least"): "train longer, enlarge the batch or weaken an invariance" for each in SPREAD},
    **{(each, "at_least"): "train longer, or weaken the invariance that costs most of it" for each in READ},
    ("movement", "at_most"): "train longer, or declare it with a larger probability",
    ("retrieval", "at_least"): "train longer, or declare it with a larger probability",
    ("detail", "at_most"): "declare an invariance that removes it",
}
"""What helps where a measure, by the first part of its name, misses a threshold of that side."""
STANDING = {
    "failed": "it misses what was declared for it",
    "accepted": "it misses what was declared for it, which was accepted",
    "inconclusive": "what was declared for it is not decided",
}


@dataclass
class Ignored:
    """Names of transformations by how far they move h, nearest first, and of what is less readable than before."""

    declared: list[str] = field(default_factory=list)
    half: list[str] = field(default_factory=list)
    """declared, and only half ignored"""
    missed: list[str] = field(default_factory=list)
    """declared, and not ignored"""
    besides: list[str] = field(default_factory=list)
    """ignored, though nobody declared it"""
    unread: list[Readable] = field(default_factory=list)
    """less readable from h than from the raw input"""

    def __bool__(self) -> bool:
        return bool(self.declared or self.half or self.missed or self.besides or self.unread)


@dataclass(frozen=True)
class Leader:
    """Of several spaces on one label of one data set, the two that read it best where samples move."""

    data: str
    label: str
    first: str
    second: str
    apart: bool
    """Whether their intervals lie apart."""


def trusted(result: Result) -> str:
    """yes, care, no, or open: a key of WORDS."""
    word = verdict(result)
    if word in ("unfinished", "damaged"):
        return "open"
    if word in ("failed", "refused") or result.judged is None:
        return "no"
    return "care" if doubts(result) else "yes"


def doubts(result: Result) -> list[str]:
    """Why a space is not to be trusted without more ado: nothing where it is, or where that is not known yet."""
    if result.judged is None:
        return [f"refused by {by}, {reason}" for _, by, reason in refusals(result)[:1]]
    word = verdict(result)
    found = [STANDING[word]] if word in STANDING else []
    found += [f"diagnosis {each}" for each in dict.fromkeys(each.reason for each in result.judged.reasons)]
    for label in told_labels(result):
        pairs = zip(CONTROLS.values(), against(result, label), strict=True)
        level = [words for words, how in pairs if how != "better"]
        if level:
            found.append(f"h reads {label} not clearly better than {' and '.join(level)}")
    return found if labels(result) else [*found, "no label is read from it"]


def told_labels(result: Result) -> list[str]:
    """The probed columns that are to be preserved; all of them where none is."""
    wanted = [str(each) for each in listed(result.content, "space", "preserves")]
    return [name for name in labels(result) if name in wanted] or labels(result)


def against(result: Result, label: str) -> list[str]:
    """How h compares with each control where samples move."""
    own = knn(result, label, "h", MOVED)
    rows = [knn(result, label, control, MOVED) for control in CONTROLS]
    return ["unknown" if own is None or row is None else compared(own, row) for row in rows]


def ignored(result: Result) -> Ignored:
    """What the space ignores, as measured at full strength."""
    found = Ignored()
    if result.achieved is None:
        return found
    rows = [(moved, each) for each in result.achieved.transformations if (moved := movement(each)) is not None]
    for moved, each in sorted(rows, key=lambda pair: pair[0]):
        if not each.declared:
            kept = found.besides if moved < STILL else []
        else:
            kept = found.declared if moved < STILL else found.half if moved < 1 else found.missed
        kept.append(each.name)
    for readable in result.achieved.preserved + result.achieved.detail:
        own, raw = readable.layers.get("h"), readable.layers.get("raw")
        if own and raw and own.high is not None and raw.low is not None and own.high < raw.low:
            found.unread.append(readable)
    return found


def movement(transformation: Transformation) -> float | None:
    """How far a transformation at its full strength moves h; None where that is not known."""
    answer = transformation.points[-1].layers.get("h") if transformation.points else None
    return answer.movement.value if answer is not None and answer.movement is not None else None


def changes(result: Result) -> list[str]:
    """What to change, the most pressing first: each invariance is named once, and all together if none is by itself."""
    found: dict[str, str] = {}
    for about, words in _changes(result):
        found.setdefault(about, words)
    if {each.invariance for each in alarms(result)} & found.keys() - {"together", ""}:
        found.pop("together", None)
    return list(found.values())


def _changes(result: Result) -> Iterator[tuple[str, str]]:
    for reason in result.judged.reasons if result.judged is not None else ():
        yield _of_reason(reason)
    for row in result.judged.rows if result.judged is not None else ():
        if row.verdict == "failed" and row.accepted is None:
            yield row.measure, _of_threshold(row)
    for finding in alarms(result):
        if finding.verdict in ("fail", "warn"):
            about, words = _of_finding(finding)
            yield about, f"perhaps {words}" if finding.verdict == "warn" else words
    for row in result.judged.rows if result.judged is not None else ():
        if row.verdict == "inconclusive":
            yield row.measure, f"more test samples would decide {row.measure}"


def _of_reason(reason: Reason) -> tuple[str, str]:
    measure = reason.measures[0] if reason.measures else ""
    family, _, rest = measure.partition(".")
    if reason.reason == "wrongly invariant" and family == "costs":
        name, _, label = rest.partition(".")
        return name, f"weaken or strike {name.replace('_', ' ')}: it takes {label} away"
    if reason.reason == "not achieved":
        name = rest.rpartition(".")[0]
        return name, f"{name.replace('_', ' ')} is not ignored: train longer, or give it a probability below 1"
    if reason.reason == "shortcut":
        name = rest.rpartition(".")[0] if family == "detail" else "what matches the views"
        return "shortcut", f"declare an invariance that removes {name}: it is read instead of what is preserved"
    if reason.reason == "lost":
        name = rest.rpartition(".")[0]
        return name, f"weaken what removes {name}, or do not ask for it: training takes it away"
    return reason.reason, REMEDIES.get(reason.reason, reason.sentence)


def _of_threshold(row: VerdictRow) -> str:
    if row.value is None:
        return f"{row.measure} has no value ({row.note}): mend that, or strike the threshold"
    write = FORMS[measured(row.measure)]
    for side, limit, words, move in (
        ("at_least", row.at_least, "at least", "lower"),
        ("at_most", row.at_most, "at most", "raise"),
    ):
        if limit is not None:
            remedy = HELP.get((row.measure.partition(".")[0], side), "train longer")
            found = f"{row.measure} is {write(row.value)}, {words} {write(limit)} is declared"
            return f"{found}: {remedy}; or {move} the threshold"
    return f"{row.measure} misses what was declared"


def _of_finding(finding: Finding) -> tuple[str, str]:
    name = "the invariances as a whole" if finding.invariance == "together" else finding.invariance.replace("_", " ")
    words = {
        "contradiction": f"strike {name}, or do not preserve {finding.preserved}: one removes the other",
        "erased": f"weaken {name}: its views no longer show {finding.preserved}",
        "merged": f"weaken {name}: who ignores it confuses {finding.preserved}",
        "transported": f"weaken {name}: a probe of the data takes its views for something else",
        "shortcut": "declare an invariance that removes what matches the views: it is too simple",
        "false_positive": f"weaken {name}: its views can hardly be matched",
    }
    return finding.invariance or finding.finding, words.get(finding.finding, finding.sentence)


def leaders(results: Sequence[Result]) -> list[Leader]:
    """Who reads a label best, wherever several spaces of one data set are read for it."""
    rows: dict[tuple[str, str], list[tuple[ProbeRow, str]]] = {}
    for result in results:
        for label in told_labels(result):
            row = knn(result, label, "h", MOVED)
            if row is not None and row.accuracy is not None:
                rows.setdefault((result.data, label), []).append((row, result.name))
    found = []
    for (data, label), each in rows.items():
        if len(each) > 1:
            (best, first), (next_, second), *_ = sorted(each, key=lambda pair: -(pair[0].accuracy or 0.0))
            found.append(Leader(data, label, first, second, compared(best, next_) == "better"))
    return found
