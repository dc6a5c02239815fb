"""Why a space is what it is: diagnoses by explicit rules, from measures alone and independent of any threshold.

The rules go from the coarse to the fine, and a coarse one silences those after it: what has collapsed says nothing of
shortcuts. What counts as better, and what h lacks, is said in ``evidence``.

| reason | rule |
|---|---|
| fully collapsed | ``spread`` of h or z below POINT, and a tenth of the untrained network's |
| dimensionally collapsed | ``effective_rank.h`` below FLAT, and below FEWER of the untrained network's |
| untrained-like | h neither matches views nor reads what is preserved better than the untrained network |
| shortcut | h matches views better than untrained, has gained an undeclared label, and lacks all that is preserved |
| shortcut | the same, but h has gained less of what is preserved, and is not ahead of pixels and cheap probes in it |
| wrongly invariant | an invariance costs cheap probes COSTLY of a preserved label; h has it, and lacks the label |
| lost | a preserved name is read less well from h than from the untrained network |
| not achieved | a declared invariance moves h further than to another sample (it may have acted on every view) |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pipeline.audit.achieved import BOUNDARY, COSTS, DETAIL, GAIN, PRESERVED, readable_of
from pipeline.audit.evidence import SLACK, Evidence, share

if TYPE_CHECKING:
    from pipeline.audit.judge import Measured

POINT = 1e-3
"""Spread below which all vectors are one point."""
FLAT = 2.2
"""Effective rank below which a space is a line or a plane: two directions, and some rounding."""
FEWER = 0.8
"""Of the untrained network's effective rank: a space that never had more directions has not lost any."""
COSTLY = 0.1
"""Of what cheap probes know of a label: lost to who ignores an invariance, at least."""
STRONG = 0.5
"""Share of matched views above which something must tell samples apart, though no column says what."""
STILL = 0.5
"""Movement below which a space has an invariance: half as far as another sample."""

Reason = dict[str, Any]


def diagnose(measured: Mapping[str, Measured]) -> list[Reason]:
    """Every reason that holds: {"reason", "sentence", "measures": the names that it was read from}.

    Measures that are missing or have no value trigger nothing.
    """
    of = Evidence(measured)
    for rule in (_collapsed, _flat, _untrained, _shortcut):
        found = list(rule(of))
        if found:
            return found
    return list(_wrongly_invariant(of)) or [*_lost(of), *_not_achieved(of)]


def _collapsed(of: Evidence) -> Iterator[Reason]:
    control = of.value("spread.untrained")
    for layer in ("h", "z"):
        name = f"spread.{layer}"
        value = of.value(name)
        if value is None or value >= POINT or (control is not None and value >= control / 10):
            continue
        sentence = f"all vectors of {layer} are one point: {value:.1e} of their mean square length is variance"
        yield _reason("fully collapsed", sentence, name, "spread.untrained")
        return


def _flat(of: Evidence) -> Iterator[Reason]:
    high, control = of.high("effective_rank.h"), of.low("effective_rank.untrained")
    if high is None or high >= FLAT or (control is not None and high >= FEWER * control):
        return
    value = of.value("effective_rank.h")
    sentence = f"the vectors of h lie along {value:.1f} directions (effective rank)"
    sentence += "" if control is None else f", those of the untrained network along {control:.1f} or more"
    yield _reason("dimensionally collapsed", sentence, "effective_rank.h", "effective_rank.untrained")


def _untrained(of: Evidence) -> Iterator[Reason]:
    if not of.known("matching.h", "matching.untrained") or of.better("matching.h"):
        return
    names = of.labels()
    if any(of.gained(name) for name in names):
        return
    h, control = of.value("matching.h"), of.value("matching.untrained")
    sentence = f"h finds the other view of a sample in {share(h)} of the cases, the untrained network in "
    sentence += share(control) + "".join(f"; {of.against(name)}" for name in names)
    yield _reason("untrained-like", sentence, "matching.h", "matching.untrained", *names)


def _shortcut(of: Evidence) -> Iterator[Reason]:
    labels = of.labels()
    if not labels or not of.better("matching.h"):
        return
    lacking = all(of.lacking(name) for name in labels)
    instead = "; ".join(of.against(name) for name in labels)
    names = sorted(name for name in of.measured if name.startswith(f"{DETAIL}.") and name.endswith(".h"))
    kept = [name for name in names if of.gained(name)]
    for name in sorted(kept, key=lambda name: -(of.value(f"{GAIN}.{readable_of(name)}") or 0.0)):
        if lacking or all(of.outdone(label, name) for label in labels):
            what = readable_of(name)
            told = f"{what} is readable instead of" if lacking else f"training has added more of {what} than of"
            yield _reason("shortcut", f"{told} the label: {of.against(name)}; {instead}", name, *labels, "matching.h")
    if not lacking:
        return
    strong = (of.low("matching.h") or 0.0) > STRONG
    if strong and not kept and not any(of.gained(name) for name in labels):
        matched = share(of.value("matching.h"))
        sentence = f"views are matched ({matched}) by something that no label column tells; {instead}"
        yield _reason("shortcut", sentence, "matching.h", *labels)


def _wrongly_invariant(of: Evidence) -> Iterator[Reason]:
    found = []
    for name in of.measured:
        head, _, rest = name.partition(".")
        if head != COSTS:
            continue
        transformation, _, column = rest.partition(".")
        h, cheap = f"{PRESERVED}.{column}.h", f"{PRESERVED}.{column}.cheap"
        moved, cost = f"movement.{transformation}.h", of.low(name)
        high, still, best = of.high(h), of.high(moved), of.low(cheap)
        if cost is None or high is None or best is None or cost <= COSTLY or high >= best:
            continue
        if still is None or still >= STILL:
            continue
        lost, value = of.value(name) or 0.0, of.value(h) or 0.0
        sentence = (
            f"label {column} is erased by the declared invariance {transformation}: of what cheap probes of the "
            f"samples know of it, {share(lost)} is lost to who ignores {transformation}; h ignores it (movement "
            f"{of.value(moved):.2f}) and reads the label with skill {value:.2f}, below their {of.value(cheap):.2f}"
        )
        found.append((lost, _reason("wrongly invariant", sentence, name, h, cheap, moved)))
    yield from (reason for _, reason in sorted(found, key=lambda pair: -pair[0]))


def _lost(of: Evidence) -> Iterator[Reason]:
    for name in of.labels():
        high = of.high(gain := f"{GAIN}.{readable_of(name)}")
        if high is not None and high < -SLACK:
            sentence = f"{of.against(name)}: training has taken it away"
            yield _reason("lost", sentence, name, name.removesuffix(".h") + ".untrained", gain)


def _not_achieved(of: Evidence) -> Iterator[Reason]:
    for boundary in sorted(name for name in of.measured if name.startswith(f"{BOUNDARY}.")):
        transformation = boundary.partition(".")[2]
        name = f"movement.{transformation}.h"
        low = of.low(name)
        if low is not None and low > 1:
            sentence = f"{transformation} moves h {of.value(name):.1f} times as far as another sample lies; "
            sentence += "an invariance that acts on every view is never compared with the sample itself"
            yield _reason("not achieved", sentence, name)


def _reason(reason: str, sentence: str, *names: str) -> Reason:
    return {"reason": reason, "sentence": f"{reason}: {sentence}", "measures": list(names)}
