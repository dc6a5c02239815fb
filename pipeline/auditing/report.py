"""Floor 2: what an audit measures, and what it has found: measures by name, and the structures behind them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.audit.estimate import Estimate, NotComputable, not_computable
from pipeline.audit.similarity import BINS
from pipeline.embeddings import unusable
from pipeline.neighbours import unit

SEED = 0
"""Of every sample of rows, where there are more than are measured."""
Rows = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Vectors:
    """Rows (N, D) of one layer as they are stored, and scaled to length one, or why they have no directions."""

    rows: Rows
    units: Rows | None
    reason: str | None

    @classmethod
    def of(cls, rows: Rows, chosen: Codes) -> Vectors:
        """Take the ``chosen`` of rows (all, D); a fault in any of the rows is a reason."""
        reason = unusable(rows)
        some = rows if len(chosen) == len(rows) else rows[chosen]
        return cls(some, unit(some) if reason is None else None, reason)

    def directions(self) -> Rows:
        """The rows of length one. Raises NotComputable."""
        if self.units is None:
            raise NotComputable(self.reason)
        return self.units


class Report:
    """The content of measures.json and of geometry.json, while it grows."""

    def __init__(self) -> None:
        self.measures: dict[str, dict[str, Any]] = {}
        self.spectra: dict[str, list[float]] = {}
        self.histograms: dict[str, dict[str, list[int]]] = {}
        self.layers: dict[str, dict[str, Any]] = {}

    def add(self, name: str, split: str, estimate: Estimate, **more: Any) -> None:
        """Enter one measure."""
        self.measures[name] = {**asdict(estimate), "split": split, **more}

    def structure(self, layer: str) -> dict[str, Any]:
        """What geometry.json says of a layer, to be written to: plain data."""
        return self.layers.setdefault(layer, {})

    def content(self) -> dict[str, Any]:
        """measures.json: measures; eigenvalue shares and similarity counts over equal bins of [-1, 1], by layer."""
        histograms = {"bins": BINS, "low": -1.0, "high": 1.0, "counts": self.histograms}
        return {"measures": self.measures, "spectra": self.spectra, "similarities": histograms}

    def geometry(self) -> dict[str, Any]:
        """geometry.json: the structures of each layer. A value that cannot be computed is None, and a note says why."""
        return {"layers": self.layers}


def tried(measure: Callable[[], Estimate], count: int) -> Estimate:
    """The estimate that ``measure`` makes of ``count`` rows, or the reason why it makes none."""
    try:
        return measure()
    except NotComputable as reason:
        return not_computable(reason, count)


def choose(count: int, most: int) -> Codes:
    """Indices of at most ``most`` of ``count`` rows, ascending; the same ones whenever the two are the same."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(SEED).permutation(count)[:most])
