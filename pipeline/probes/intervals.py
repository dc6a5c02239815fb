"""The uncertainty of what a probe reads, in closed form: nothing is resampled, so the same answers give the same bytes.

``wilson``: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927). Unlike
p ± z·se it stays inside [0, 1] and has a width at 0 and at 1, where accuracies of good and of hopeless spaces lie.
``over_draws``: the same interval for the effective number of rows (Korn & Graubard, Survey Methodology 24, 1998), where
both the labelled rows and the test rows were drawn; degrees of freedom by Satterthwaite (Biometrics Bulletin 2, 1946).
``explained``: R² is one minus a ratio of two means over the same rows; its error is the delta method's.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

CONFIDENCE = 0.95

Numbers = npt.NDArray[np.float64]


def wilson(successes: int, count: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return (low, high), the Wilson interval of ``successes`` out of ``count``, both shares in [0, 1].

    Raises:
        ValueError: count < 1, successes outside 0..count, or confidence outside (0, 1).
    """
    if count < 1 or not 0 <= successes <= count:
        raise ValueError(f"successes {successes} of count {count}: must be 0 <= successes <= count, count >= 1")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence {confidence}: must lie between 0 and 1")
    return _score_interval(successes / count, count, NormalDist().inv_cdf((1 + confidence) / 2))


def over_draws(right: npt.NDArray[np.bool_]) -> tuple[float, float, float]:
    """Return (mean, low, high) of the accuracy over draws of the training labels and over test rows.

    Args:
        right: (draws, rows), at least two of each: whether a probe trained on a draw was right about a test row.
    """
    from scipy.special import stdtrit

    draws, rows = right.shape
    mean = float(right.mean())
    drawn = float(right.mean(axis=1).var(ddof=1)) / draws
    tested = float(right.mean(axis=0).var(ddof=1)) / rows
    variance = drawn + tested
    if variance == 0:  # all right or all wrong
        return mean, *_score_interval(mean, rows, NormalDist().inv_cdf((1 + CONFIDENCE) / 2))
    freedom = variance**2 / (drawn**2 / (draws - 1) + tested**2 / (rows - 1))
    effective = min(mean * (1 - mean) / variance, float(rows * draws))
    return mean, *_score_interval(mean, effective, float(stdtrit(freedom, (1 + CONFIDENCE) / 2)))


def explained(errors: Numbers, deviations: Numbers) -> tuple[float, float, float]:
    """Return (R², low, high): the share of the squared deviations that the squared errors do not hold.

    Args:
        errors: (n,) truth less prediction.
        deviations: (n,) truth less its mean, not all 0.
    """
    left, whole = np.square(errors), np.square(deviations)
    ratio = float(left.mean() / whole.mean())
    half = _half(left - ratio * whole) / float(whole.mean())
    return 1 - ratio, 1 - ratio - half, min(1.0, 1 - ratio + half)


def mean_error(errors: Numbers) -> tuple[float, float, float]:
    """Return (mean absolute error, low, high) of errors (n,)."""
    absolute = np.abs(errors)
    mean, half = float(absolute.mean()), _half(absolute)
    return mean, max(0.0, mean - half), mean + half


def _half(values: Numbers) -> float:
    """Half the width of the interval of a mean of values (n,); 0 of one value."""
    if len(values) < 2:
        return 0.0
    return NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * float(values.std(ddof=1)) / math.sqrt(len(values))


def _score_interval(share: float, count: float, z: float) -> tuple[float, float]:
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return max(0.0, middle - half) if share > 0 else 0.0, min(1.0, middle + half) if share < 1 else 1.0
