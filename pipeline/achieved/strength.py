"""Strengths at which a transformation is looked at: from a quarter of what is declared to all of it; 0 is the picture.

Here a transformation always acts, whatever probability the declaration gives it: a grayscale that is drawn for one
picture in five would else leave the median picture where it is. What only acts or does not has no strength, and is
looked at once.
"""

from __future__ import annotations

from typing import Any, get_args

from pipeline.views import Code, Invariance, RightAngle
from pipeline.views.combinators import Choose, Combinator, Compose, Maybe, Repeat

STRENGTHS = (0.25, 0.5, 0.75, 1.0)


def always(invariance: Any, probability: float = 1.0) -> Any:
    """The same with another probability (1: it always acts), its parts as well; a part that is repeated always acts."""
    if isinstance(invariance, Maybe):
        return invariance.model_copy(update={"of": always(invariance.of), "probability": probability})
    if isinstance(invariance, Compose | Choose):
        return invariance.model_copy(update={"of": tuple(always(part, probability) for part in invariance.of)})
    if isinstance(invariance, Repeat):
        return invariance.model_copy(update={"of": always(invariance.of)})
    given = getattr(invariance, "probability", None)
    return invariance if given in (None, probability) else invariance.model_copy(update={"probability": probability})


def scales(invariance: Invariance) -> bool:
    """Whether a transformation has a strength: whether a weaker one of its kind does something else when it acts.

    Raises:
        Refusal: the user's code cannot be used.
    """
    if isinstance(invariance, get_args(Combinator)):
        return any(scales(part) for part in invariance.parts)
    if isinstance(invariance, Code):
        return hasattr(invariance.built, "at")
    return bool(always(always(invariance).at(0.5)) != always(invariance))


def weakened(invariance: Invariance) -> list[tuple[float, Invariance]]:
    """(strength, the transformation that always acts at it), weakest first. Raises Refusal as ``scales`` does."""
    whole = always(invariance)
    if not scales(invariance):
        return [(1.0, whole)]
    return [(strength, always(whole.at(strength))) for strength in STRENGTHS]


def balanced(invariance: Any) -> Any:
    """A transformation whose drawing tells most: one that only acts or does not acts on every second picture.

    Raises:
        Refusal: the user's code cannot be used.
    """
    if isinstance(invariance, Compose | Choose):
        return invariance.model_copy(update={"of": tuple(balanced(part) for part in invariance.of)})
    if isinstance(invariance, Maybe):
        return invariance.model_copy(update={"of": always(invariance.of), "probability": 0.5})
    either = not isinstance(invariance, RightAngle) and not scales(invariance)  # a right angle has four outcomes
    return always(invariance, 0.5 if either and hasattr(invariance, "probability") else 1.0)
