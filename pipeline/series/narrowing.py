"""Measurements as float32, which is what is kept of them, or why they cannot be: what float32 would lose is refused.

A float32 has 24 bits: of 2^40 + 0, 1, 2, ... all become one number. A channel that varies, and whose rounding errors
are more than a small share of its spread, is refused with its remedy instead of kept as something else. Legend: C
channels, T steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.samples import Unreadable

Numbers = npt.NDArray[np.float32]
EXACT, WHOLE = 2**24, 2**53
"""whole numbers up to these are exact in float32, and in float64"""
LOST = 0.1
"""the most that rounding errors may be of a channel's spread, as standard deviations: ten steps of float32 across it"""
NOISE = 2.0**-40
"""variation below this share of a channel's size is float64's own noise in a value that stays, and no variation"""


def narrowed(
    values: npt.NDArray[Any], channel: Callable[[int], str] = "channel {}".format, at: Callable[[int], str] = str
) -> Numbers:
    """Finite values (C, T) of any real type as float32.

    Args:
        channel: what a channel is called.
        at: what a step is called.

    Raises:
        Unreadable: a number beyond float32, or a channel whose values float32 does not tell apart.
    """
    with np.errstate(over="ignore", under="ignore"):
        found: Numbers = np.ascontiguousarray(values, np.float32)
    if not found.size or np.can_cast(values.dtype, np.float32):
        return found
    beyond = np.isinf(found)
    if beyond.any():
        place, step = (int(index) for index in np.argwhere(beyond)[0])
        told = f"{values[place, step]:g} in {channel(place)} at step {at(step)}"
        raise Unreadable("beyond float32", f"{told}; scale it to under 3e38, or leave it out of input.names")
    changed = abs(found) >= EXACT if values.dtype.kind in "iu" else found != values
    for place in np.flatnonzero(changed.any(axis=1)).tolist():
        if _lost(values[place], found[place]):
            kept, given = (len(np.unique(each)) for each in (found[place], values[place]))
            told = f"of {given} different values in {channel(place)} float32 keeps {kept}"
            remedy = "scale it up" if np.abs(values[place]).max() < np.finfo(np.float32).tiny else "subtract an offset"
            raise Unreadable("lost in float32", f"{told}; {remedy}, or leave it out of input.names")
    return found


def whole(lowest: int, highest: int, column: str) -> None:
    """Hold that whole numbers of a table are exact in float64, in which columns are read. Raises Unreadable."""
    most = max(lowest, highest, key=abs)
    if abs(most) > WHOLE and lowest != highest:
        told = f"whole numbers as {most} in column {column}, beyond 2^53"
        raise Unreadable("lost in float32", f"{told}; subtract an offset, or leave it out of input.names")


def cells(texts: Sequence[str], column: str) -> list[float]:
    """Cells of a table as numbers, NaN where one is none. Raises Unreadable as ``whole``."""
    found = [_number(text) for text in texts]
    pairs = zip(texts, found, strict=True)
    large = [int(text) for text, value in pairs if WHOLE <= abs(value) < math.inf and _is_whole(text)]
    if large and any(int(float(each)) != each for each in large):
        whole(min(large), max(large), column)
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _is_whole(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True


def _lost(values: npt.NDArray[Any], found: Numbers) -> bool:
    """Whether one channel (T,) varies, and float32 keeps little of how."""
    low, high = values.min(), values.max()
    if values.dtype.kind in "iu":  # exact: whole numbers may be beyond float64, too
        spread = values.astype(np.uint64) - np.asarray(low).astype(np.uint64)  # modulo 2^64, so right for both kinds
        moved, size = spread.astype(np.float64), float(max(abs(int(low)), abs(int(high))))
    else:
        moved, size = values.astype(np.float64) - float(low), max(abs(float(low)), abs(float(high)))
    span = float(moved.max())
    if span <= (NOISE * size if values.dtype.kind == "f" else 0):
        return False
    errors = (moved - (found.astype(np.float64) - float(low))) / span
    return float(errors.std()) > LOST * float((moved / span).std())
