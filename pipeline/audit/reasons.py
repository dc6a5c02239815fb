"""Why a space is what it is: diagnoses by explicit rules, from measures alone and independent of any threshold.

The rules go from the coarse to the fine, and a coarse one silences those after it: what has collapsed says nothing of
shortcuts. A figure counts as better than the untrained network's where its interval lies above it by SLACK; of what is
read it is the interval of the difference on the same test rows (``gain``). h lacks a label that it reads no better than
the untrained network does, or less well than the pixels or cheap probes of the pictures do.

| reason | rule |
|---|---|
| fully collapsed | ``spread`` of h or z below POINT, and a tenth of the untrained network's |
| dimensionally collapsed | ``effective_rank.h`` below FLAT, and below FEWER of the untrained network's |
| untrained-like | h neither matches views nor reads what is preserved better than the untrained network |
| shortcut | h matches views better than untrained, lacks all that is preserved, and has gained an undeclared label |
| wrongly invariant | an invariance costs cheap probes COSTLY of a preserved label; h has it, and lacks the label |
| lost | a preserved name is read less well from h than from the untrained network |
| not achieved | a declared invariance moves h further than to another sample (it may have acted on every view) |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pipeline.audit.achieved import BOUNDARY, COSTS, DETAIL, GAIN, PRESERVED, readable_of

if TYPE_CHECKING:
    from pipeline.audit.judge import Measured

POINT = 1e-3
"""Spread below which all vectors are one point."""
FLAT = 2.2
"""Effective rank below which a space is a line or a plane: two directions, and some rounding."""
FEWER = 0.8
"""Of the untrained network's effective rank: a space that never had more directions has not lost any."""
SLACK = 0.02
"""By which a figure must be better than the untrained network's, to count as better."""
COSTLY = 0.1
"""Of what cheap probes know of a label: lost to who ignores an invariance, at least."""
STRONG = 0.5
"""Share of matched views above which something must tell samples apart, though no column says what."""
STILL = 0.5
"""Movement below which a space has an invariance: half as far as another sample."""

Measures = Mapping[str, "Measured"]
Reason = dict[str, Any]


def diagnose(measured: Measures) -> list[Reason]:
    """Every reason that holds: {"reason", "sentence", "measures": the names that it was read from}.

    Measures that are missing or have no value trigger nothing.
    """
    for rule in (_collapsed, _flat, _untrained, _shortcut):
        found = list(rule(measured))
        if found:
            return found
    return list(_wrongly_invariant(measured)) or [*_lost(measured), *_not_achieved(measured)]


def _collapsed(measured: Measures) -> Iterator[Reason]:
    control = _value(measured, "spread.untrained")
    for layer in ("h", "z"):
        name = f"spread.{layer}"
        value = _value(measured, name)
        if value is None or value >= POINT or (control is not None and value >= control / 10):
            continue
        sentence = f"all vectors of {layer} are one point: {value:.1e} of their mean square length is variance"
        yield _reason("fully collapsed", sentence, name, "spread.untrained")
        return


def _flat(measured: Measures) -> Iterator[Reason]:
    high, control = _high(measured, "effective_rank.h"), _low(measured, "effective_rank.untrained")
    if high is None or high >= FLAT or (control is not None and high >= FEWER * control):
        return
    value = _value(measured, "effective_rank.h")
    sentence = f"the vectors of h lie along {value:.1f} directions (effective rank)"
    sentence += "" if control is None else f", those of the untrained network along {control:.1f} or more"
    yield _reason("dimensionally collapsed", sentence, "effective_rank.h", "effective_rank.untrained")


def _untrained(measured: Measures) -> Iterator[Reason]:
    if not _known(measured, "matching.h", "matching.untrained") or _better(measured, "matching.h"):
        return
    names = _labels(measured)
    if any(_gained(measured, name) for name in names):
        return
    h, control = _value(measured, "matching.h"), _value(measured, "matching.untrained")
    sentence = f"h finds the other view of a sample in {_share(h)} of the cases, the untrained network in "
    sentence += _share(control) + "".join(f"; {_against(measured, name)}" for name in names)
    yield _reason("untrained-like", sentence, "matching.h", "matching.untrained", *names)


def _shortcut(measured: Measures) -> Iterator[Reason]:
    labels = _labels(measured)
    if not labels or not _better(measured, "matching.h") or not all(_lacking(measured, name) for name in labels):
        return
    instead = "; ".join(_against(measured, name) for name in labels)
    names = sorted(name for name in measured if name.startswith(f"{DETAIL}.") and name.endswith(".h"))
    kept = [name for name in names if _gained(measured, name)]
    for name in sorted(kept, key=lambda name: -(_value(measured, f"{GAIN}.{readable_of(name)}") or 0.0)):
        sentence = f"{readable_of(name)} is readable instead of the label: {_against(measured, name)}; {instead}"
        yield _reason("shortcut", sentence, name, *labels, "matching.h")
    strong = (_low(measured, "matching.h") or 0.0) > STRONG
    if strong and not kept and not any(_gained(measured, name) for name in labels):
        h = _share(_value(measured, "matching.h"))
        sentence = f"views are matched ({h}) by something that no label column tells; {instead}"
        yield _reason("shortcut", sentence, "matching.h", *labels)


def _lacking(measured: Measures, name: str) -> bool:
    """Whether h reads no more than the untrained network, or less than the pixels or cheap probes of the pictures."""
    high, family = _high(measured, name), name.removesuffix(".h")
    rivals = [_low(measured, f"{family}.{control}") for control in ("raw", "cheap")]
    less = high is not None and any(rival is not None and high < rival for rival in rivals)
    return less or not _gained(measured, name)


def _wrongly_invariant(measured: Measures) -> Iterator[Reason]:
    found = []
    for name in measured:
        head, _, rest = name.partition(".")
        if head != COSTS:
            continue
        transformation, _, column = rest.partition(".")
        h, cheap = f"{PRESERVED}.{column}.h", f"{PRESERVED}.{column}.cheap"
        moved, cost = f"movement.{transformation}.h", _low(measured, name)
        high, still, best = _high(measured, h), _high(measured, moved), _low(measured, cheap)
        if cost is None or high is None or best is None or cost <= COSTLY or high >= best:
            continue
        if still is None or still >= STILL:
            continue
        lost, value = _value(measured, name) or 0.0, _value(measured, h) or 0.0
        sentence = (
            f"label {column} is erased by the declared invariance {transformation}: of what cheap probes of the "
            f"pictures know of it, {_share(lost)} is lost to who ignores {transformation}; h ignores it (movement "
            f"{_value(measured, moved):.2f}) and reads the label with skill {value:.2f}, below their "
            f"{_value(measured, cheap):.2f}"
        )
        found.append((lost, _reason("wrongly invariant", sentence, name, h, cheap, moved)))
    yield from (reason for _, reason in sorted(found, key=lambda pair: -pair[0]))


def _lost(measured: Measures) -> Iterator[Reason]:
    for name in _labels(measured):
        high = _high(measured, gain := f"{GAIN}.{readable_of(name)}")
        if high is not None and high < -SLACK:
            sentence = f"{_against(measured, name)}: training has taken it away"
            yield _reason("lost", sentence, name, name.removesuffix(".h") + ".untrained", gain)


def _not_achieved(measured: Measures) -> Iterator[Reason]:
    for boundary in sorted(name for name in measured if name.startswith(f"{BOUNDARY}.")):
        transformation = boundary.partition(".")[2]
        name = f"movement.{transformation}.h"
        low = _low(measured, name)
        if low is not None and low > 1:
            sentence = f"{transformation} moves h {_value(measured, name):.1f} times as far as another sample lies; "
            sentence += "an invariance that acts on every view is never compared with the picture itself"
            yield _reason("not achieved", sentence, name)


def _labels(measured: Measures) -> list[str]:
    """What is preserved, as measures of h; its gain over the untrained network is known."""
    names = sorted(name for name in measured if name.startswith(f"{PRESERVED}.") and name.endswith(".h"))
    return [name for name in names if _known(measured, name, f"{GAIN}.{readable_of(name)}")]


def _better(measured: Measures, name: str) -> bool:
    """Whether a measure of h is better than the untrained network's."""
    low, high = _low(measured, name), _high(measured, name.removesuffix(".h") + ".untrained")
    return low is not None and high is not None and low > high + SLACK


def _gained(measured: Measures, name: str) -> bool:
    """Whether what a skill of h reads is read better than from the untrained network, on the same test rows."""
    low = _low(measured, f"{GAIN}.{readable_of(name)}")
    return low is not None and low > SLACK


def _against(measured: Measures, name: str) -> str:
    own, control = _value(measured, name), _value(measured, name.removesuffix(".h") + ".untrained")
    beside = "" if control is None else f" (untrained {control:.2f})"
    return f"{readable_of(name)} is read with skill {own:.2f}{beside}"


def _reason(reason: str, sentence: str, *names: str) -> Reason:
    return {"reason": reason, "sentence": f"{reason}: {sentence}", "measures": list(names)}


def _share(value: float | None) -> str:
    return "no" if value is None else f"{100 * value:.0f} %"


def _known(measured: Measures, *names: str) -> bool:
    return all(_value(measured, name) is not None for name in names)


def _value(measured: Measures, name: str) -> float | None:
    return measured[name].value if name in measured else None


def _low(measured: Measures, name: str) -> float | None:
    value = _value(measured, name)
    return value if value is None or measured[name].low is None else measured[name].low


def _high(measured: Measures, name: str) -> float | None:
    value = _value(measured, name)
    return value if value is None or measured[name].high is None else measured[name].high
