"""What is found, as it is written: scalars by name for thresholds, and tables beside them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from torch import Tensor

from pipeline.audit.estimate import Estimate, not_computable
from pipeline.check.interval import figure


class Found:
    """Measures by name, as in measures.json, and tables, as in achieved.json."""

    def __init__(self) -> None:
        self.measures: dict[str, dict[str, Any]] = {}
        self.tables: dict[str, Any] = {}

    def add(self, name: str, split: str, estimate: Estimate, **more: Any) -> None:
        """Enter one measure."""
        self.measures[name] = {**asdict(estimate), "split": split, **more}

    def add_drawn(self, name: str, split: str, drawn: Tensor, count: int, note: str = "", **more: Any) -> None:
        """Enter a measure from its value over all rows and each resample: (R + 1,)."""
        value, low, high = figure(drawn)
        self.add(name, split, Estimate(value, low, high, count, note), **more)

    def miss(self, name: str, split: str, reason: object, count: int = 0) -> None:
        """Enter a measure that has no value, with the reason."""
        self.add(name, split, not_computable(reason, count))
