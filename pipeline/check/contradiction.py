"""*Contradiction*: an invariance removes a factor that the spec names in ``preserves``; no data is needed to see it."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.check.findings import Finding, accepted
from pipeline.check.section import TOGETHER, Check
from pipeline.space import LatentSpace
from pipeline.spec import Rule, nearest
from pipeline.views import factor


def contradictions(space: LatentSpace, check: Check) -> Iterator[Finding]:
    """Yield a finding for each invariance that removes a preserved factor."""
    found = []
    for position, invariance in enumerate(space.declared()):
        for name in space.preserves:
            if factor(name) in invariance.removes:
                removed = name if factor(name) == name else f"{factor(name)}, that is {name}"
                sentence = f"{invariance.kind} removes {removed}, which preserves says must stay readable"
                found.append(Finding("contradiction", invariance.kind, name, "fail", sentence, position))
    yield from accepted(found, check.accept)


def unused_acceptances(space: LatentSpace, check: Check) -> Iterator[Rule]:
    """Yield a broken rule for each accepted finding that this spec cannot have."""
    kinds = [invariance.kind for invariance in space.declared()]
    possible = {
        (invariance.kind, name)
        for invariance in space.declared()
        for name in space.preserves
        if factor(name) in invariance.removes
    }
    for number, each in enumerate(check.accept):
        if each.finding == "contradiction":
            if (each.invariance, each.preserved) not in possible:
                yield (
                    f"accept[{number}]",
                    f"{each.invariance} does not remove {each.preserved}, so nothing would be accepted; take it out",
                )
        elif each.invariance not in (*kinds, TOGETHER):
            yield f"accept[{number}].invariance", f"is not declared; {nearest(each.invariance, [*kinds, TOGETHER])}"
        elif each.preserved not in space.preserves:
            yield f"accept[{number}].preserved", f"is not preserved; {nearest(each.preserved, space.preserves)}"
