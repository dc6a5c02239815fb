"""Undeclared transformations: the controls beside the declared ones.

A control removes none of the factors that are declared away, so a space may answer to it as it likes; that it does
tells that the declared ones are ignored because they were declared, and not because the space ignores everything. Which
transformations there are, the modality says (``modalities.proofs``).
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.modalities import Modality
from pipeline.modalities.proofs import proof_of
from pipeline.views import Invariance, misfit, removed


def controls(
    declared: Sequence[Invariance], contract: Modality, fill: float = 0.0
) -> tuple[dict[str, Invariance], dict[str, str]]:
    """The controls of a declaration by name, and why each other of the family is none."""
    away = removed(declared)
    used: dict[str, Invariance] = {}
    left_out: dict[str, str] = {}
    for control in proof_of(contract).controls(fill):
        reason = misfit(control, contract.channels, contract.size)
        shared = sorted(away & control.removes)
        if reason is None and shared:
            reason = f"removes {', '.join(shared)}, which the declaration removes"
        if reason is None:
            used[control.kind] = control
        else:
            left_out[control.kind] = reason
    return used, left_out
