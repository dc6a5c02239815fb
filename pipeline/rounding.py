"""Floor 0: figures are written to six significant digits, so that no file changes with a number's last bit."""

from __future__ import annotations

from typing import Any

import numpy as np


def rounded(content: Any, digits: int = 6) -> Any:
    """Plain data with every float to ``digits`` significant digits; mappings and sequences are walked, NumPy unpacked.

    Raises:
        ValueError: a number is not finite: a figure that cannot be computed is None and says why.
    """
    if isinstance(content, dict):
        return {key: rounded(value, digits) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [rounded(value, digits) for value in content]
    if isinstance(content, np.ndarray | np.generic):
        return rounded(content.tolist(), digits)
    if isinstance(content, float):
        if content != content or content in (float("inf"), float("-inf")):
            raise ValueError(f"{content} is no figure")
        return float(f"{content:.{digits}g}") + 0.0  # never -0.0
    return content
