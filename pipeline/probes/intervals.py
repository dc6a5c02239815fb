"""The uncertainty of a share of counted successes: Wilson's score interval.

E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927). Unlike p +- z·se
it stays inside [0, 1] and has a width at 0 and at 1, where accuracies of good and of hopeless spaces lie.
"""

from __future__ import annotations

import math
from statistics import NormalDist

CONFIDENCE = 0.95


def wilson(successes: int, count: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return (low, high), the Wilson interval of ``successes`` out of ``count``, both shares in [0, 1].

    Raises:
        ValueError: count < 1, successes outside 0..count, or confidence outside (0, 1).
    """
    if count < 1 or not 0 <= successes <= count:
        raise ValueError(f"successes {successes} of count {count}: must be 0 <= successes <= count, count >= 1")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence {confidence}: must lie between 0 and 1")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = successes / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return max(0.0, middle - half) if successes else 0.0, min(1.0, middle + half) if successes < count else 1.0
