"""How measures call a declared invariance: by its kind, and by its number where several are of one kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pipeline.views import Invariance


def named(invariances: Sequence[Invariance]) -> dict[str, Invariance]:
    """Name to invariance, in their order: "blur", or "blur_1" and "blur_2" where two are declared."""
    of_kind = Counter(invariance.kind for invariance in invariances)
    seen: Counter[str] = Counter()
    found: dict[str, Invariance] = {}
    for invariance in invariances:
        seen[invariance.kind] += 1
        alone = of_kind[invariance.kind] == 1
        found[invariance.kind if alone else f"{invariance.kind}_{seen[invariance.kind]}"] = invariance
    return found
