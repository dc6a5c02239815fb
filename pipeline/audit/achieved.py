"""Names of the measures of what a space does with transformations, and the ranges in which their values lie.

NAME is a declared invariance or a control, by its kind (``blur``; ``blur_2`` where two are declared). COLUMN is a label
column; what is preserved is a column or a factor.

| name | value |
|---|---|
| ``movement.NAME.LAYER`` | median movement at full strength, in median distances between samples; 0 is invariance |
| ``retrieval.NAME.LAYER`` | share of samples that their transformed self finds among all |
| ``label_kept.NAME.COLUMN.LAYER`` | label readability transformed / untransformed, above chance |
| ``costs.NAME.COLUMN`` | of what cheap probes of the pictures know of it: lost to who ignores NAME |
| ``transformation.NAME.LAYER`` | skill at which what was drawn is read; layer h, z, raw |
| ``boundary.NAME`` | that skill from h less that from z |
| ``preserved.NAME.LAYER``, ``detail.COLUMN.LAYER`` | skill of a probe; layer h, z, raw, untrained, cheap |
| ``gain.NAME`` | skill from h less that from the untrained network, of what is preserved and of every column |
| ``matching.LAYER`` | share of views that find the other view of their sample; layer h, z, raw, untrained |
| ``spread.LAYER`` | variance / mean square length; 0: all rows are one point; layer h, z, untrained |
| ``effective_rank.untrained`` | the control of ``effective_rank.h`` |
| ``disentanglement.LAYER``, ``completeness.LAYER``, ``mig.LAYER`` | factors per direction, where there are two |

Skill: (accuracy - chance) / (1 - chance) of classes, R² of numbers, not below -1.
"""

from __future__ import annotations

INFINITY = float("inf")
BOTH = ("h", "z")
READ = ("h", "z", "raw", "untrained", "cheap")
OF_SPACE = {
    "matching": ((0.0, 1.0), ("h", "z", "raw", "untrained")),
    "spread": ((0.0, 1.0), ("h", "z", "untrained")),
    "effective_rank": ((1.0, INFINITY), ("untrained",)),
    "disentanglement": ((0.0, 1.0), BOTH),
    "completeness": ((0.0, 1.0), BOTH),
    "mig": ((0.0, 1.0), BOTH),
}
"""Measures of a layer alone."""
OF_TRANSFORMATION = {
    "movement": ((0.0, INFINITY), BOTH),
    "retrieval": ((0.0, 1.0), BOTH),
    "transformation": ((-1.0, 1.0), ("h", "z", "raw")),
}
"""Measures of a transformation in a layer."""
KEPT, COSTS, BOUNDARY, PRESERVED, DETAIL, GAIN = "label_kept", "costs", "boundary", "preserved", "detail", "gain"


def of_space() -> list[str]:
    """Every name that needs no transformation and no label."""
    return [f"{measure}.{layer}" for measure, (_, layers) in OF_SPACE.items() for layer in layers]


def range_of(measure: str) -> tuple[float, float] | None:
    """The range of a measure of these names, or None if it is none of them."""
    head, *rest = measure.split(".")
    if len(rest) == 1 and head in OF_SPACE and rest[0] in OF_SPACE[head][1]:
        return OF_SPACE[head][0]
    if (head == BOUNDARY and len(rest) == 1 and rest[0]) or (head == GAIN and any(rest)):
        return -2.0, 2.0
    if len(rest) == 2 and all(rest) and head in OF_TRANSFORMATION and rest[1] in OF_TRANSFORMATION[head][1]:
        return OF_TRANSFORMATION[head][0]
    if transformation_of(measure) and column_of(measure):
        return (-INFINITY, INFINITY)
    if readable_of(measure) and head != GAIN:
        return -1.0, 1.0
    return None


def transformation_of(measure: str) -> str | None:
    """The transformation in a measure's name, or None if it names none."""
    head, *rest = measure.split(".")
    sized = {BOUNDARY: 1, COSTS: 2, KEPT: 3}
    if head in OF_TRANSFORMATION:
        return rest[0] if len(rest) == 2 and rest[1] in OF_TRANSFORMATION[head][1] else None
    if head == BOUNDARY:
        return rest[0] if len(rest) == 1 else None
    if head == KEPT and rest[-1:] not in ([layer] for layer in BOTH):
        return None
    return rest[0] if head in sized and len(rest) >= sized[head] else None


def column_of(measure: str) -> str | None:
    """The label column in a measure's name (its own name may hold dots), or None; that of ``preserved`` may be none."""
    head, *rest = measure.split(".")
    if head == KEPT and len(rest) >= 3 and rest[-1] in BOTH:
        return ".".join(rest[1:-1]) or None
    if head == COSTS and len(rest) >= 2:
        return ".".join(rest[1:]) or None
    return readable_of(measure) if head == DETAIL else None


def readable_of(measure: str) -> str | None:
    """What is read in ``preserved.NAME.LAYER``, ``detail.COLUMN.LAYER`` and ``gain.NAME``, or None."""
    head, *rest = measure.split(".")
    if head == GAIN:
        return ".".join(rest) or None
    if head in (PRESERVED, DETAIL) and len(rest) >= 2 and rest[-1] in READ:
        return ".".join(rest[:-1]) or None
    return None


def examples(transformation: str, column: str) -> list[str]:
    """A name of every kind, for the nearest one to be offered."""
    names = [f"{measure}.{transformation}.{layer}" for measure, (_, ls) in OF_TRANSFORMATION.items() for layer in ls]
    names += [f"{KEPT}.{transformation}.{column}.{layer}" for layer in BOTH]
    names += [f"{family}.{column}.{layer}" for family in (PRESERVED, DETAIL) for layer in READ]
    names.append(f"{GAIN}.{column}")
    return [*of_space(), *names, f"{COSTS}.{transformation}.{column}", f"{BOUNDARY}.{transformation}"]
