"""Have new pictures drifted from those that an encoder was trained on? Channels of the input, and vectors h.

A reference is a small summary of the vectors of pictures that the encoder was meant for; ``summary`` makes it, and a
bundle's card may carry it. Every distance stands beside what two samples of one distribution would show (``expected``),
so that small new data is not taken for drift.

Legend: N new pictures, M pictures of the reference, D the width of h, C channels, Σ a covariance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from pipeline.audit.estimate import Estimate, NotComputable, Z, from_error, not_computable
from pipeline.audit.spectrum import spectrum
from pipeline.embeddings import unusable
from pipeline.neighbours import nearest_others, unit
from pipeline.rounding import rounded
from pipeline.spec import Spec, parse

Rows = npt.NDArray[np.float32]
SIZES = (32, 128, 512, 2048)
"""Numbers of rows at which rank and distance to the nearest other are told, since both depend on how many there are:
new rows are compared at the largest that both have."""
SEED = 0


class Reference(Spec):
    """A summary of vectors (M, D)."""

    count: int = Field(ge=3)
    """M"""
    mean: tuple[float, ...]
    """(D,)"""
    variance: float = Field(gt=0)
    """trace of Σ"""
    effective_rank: dict[str, float]
    """by number of rows, of SIZES"""
    nearest: dict[str, float]
    """median cosine distance to the nearest other, by number of rows"""


@dataclass(frozen=True)
class Drift:
    """One figure of new data beside the same of the reference."""

    measure: str
    found: Estimate
    reference: float | None
    """the same of the reference; None: the measure is itself a distance from it"""
    expected: float | None
    """what no drift would show on average; None: the reference itself"""

    def plain(self) -> dict[str, Any]:
        """As it is written."""
        return {
            "measure": self.measure,
            **asdict(self.found),
            "reference": self.reference,
            "expected_without_drift": self.expected,
        }

    def line(self) -> str:
        """For a terminal."""
        found = self.found
        if found.value is None:
            return f"drift {self.measure:<16} {found.note}"
        interval = "" if found.low is None else f" ({found.low:.4g} to {found.high:.4g})"
        beside = f"reference {self.reference:.4g}" if self.reference is not None else f"no drift {self.expected:.2g}"
        return f"drift {self.measure:<16} {found.value:.4g}{interval}; {beside}{'; drifted' if self.beyond else ''}"

    @property
    def beyond(self) -> bool:
        """Whether the whole interval lies away from what no drift would show."""
        low, high = self.found.low, self.found.high
        if low is None or high is None:
            return False
        if self.reference is not None:
            return not low <= self.reference <= high
        return self.expected is not None and (low > self.expected or (self.expected == 0 and high < 0))


def summary(rows: Rows) -> Reference:
    """What is kept of vectors (M, D) to compare later ones with.

    Raises:
        NotComputable: fewer than three rows, broken numbers or equal rows.
    """
    reason = _reason(rows)
    if reason is not None:
        raise NotComputable(reason)
    sizes = [size for size in SIZES if size <= len(rows)]
    content = {
        "count": len(rows),
        "mean": rows.mean(axis=0, dtype=np.float64).tolist(),
        "variance": float(_squared(rows).mean()),
        "effective_rank": {str(size): _rank(rows, size).value for size in sizes},
        "nearest": {str(size): _nearest(rows, size).value for size in sizes},
    }
    return parse(rounded(content), Reference, "reference")


def drift_of_vectors(rows: Rows, reference: Reference) -> Iterator[Drift]:
    """Compare new vectors (N, D) with the summary of others.

    mean.h: distance of the means in standard deviations (the root of the whole variance) of the reference; variance.h:
    whole variance; effective_rank.h; nearest.h: median cosine distance to the nearest other, of equally many rows.
    """
    n, m, centre = len(rows), reference.count, np.asarray(reference.mean)
    reason = _reason(rows)
    if reason is None and rows.shape[1] != len(centre):
        reason = f"{rows.shape[1]} dimensions, the reference has {len(centre)}"
    if reason is not None:
        names = ("mean.h", "variance.h", "effective_rank.h", "nearest.h")
        yield from (Drift(name, not_computable(reason, n), None, None) for name in names)
        return
    scale = math.sqrt(reference.variance)
    moved = rows.mean(axis=0, dtype=np.float64) - centre
    length = float(np.linalg.norm(moved))
    along = rows @ (moved / max(length, 1e-30)).astype(np.float32)  # (N,)
    error = float(along.std(ddof=1)) * math.sqrt(1 / n + 1 / m)
    yield Drift("mean.h", from_error(length / scale, error / scale, n), None, math.sqrt(1 / n + 1 / m))
    squared = _squared(rows)
    error = float(squared.std(ddof=1)) * math.sqrt(1 / n + 1 / m)
    yield Drift("variance.h", from_error(float(squared.mean()), error, n), reference.variance, None)
    known = {"effective_rank": (_rank, reference.effective_rank), "nearest": (_nearest, reference.nearest)}
    for name, (measure, values) in known.items():
        sizes = [int(size) for size in values if int(size) <= n]
        if not sizes:
            yield Drift(f"{name}.h", not_computable(f"{n} rows; at least {SIZES[0]} are needed", n), None, None)
            continue
        try:
            found = _of_two(measure(rows, max(sizes)))
        except NotComputable as fault:
            found = not_computable(fault, max(sizes))
        yield Drift(f"{name}.h", found, values[str(max(sizes))], None)


def drift_of_channels(moments: npt.NDArray[np.float64], mean: Sequence[float], std: Sequence[float]) -> Iterator[Drift]:
    """Compare channels of new pictures with those that a card holds.

    Args:
        moments: mean and mean square of each picture's channels (N, 2, C), in [0, 1].
        mean, std: of each channel over the pictures of the reference.
    """
    n = len(moments)
    for channel, (middle, spread) in enumerate(zip(mean, std, strict=True)):
        each = (moments[:, 0, channel] - middle) / spread
        variance = float((moments[:, 1, channel] - np.square(moments[:, 0, channel])).mean())
        whole = math.sqrt(max(0.0, variance + float(moments[:, 0, channel].var())))
        if n < 2:
            yield Drift(f"channel.{channel}.mean", not_computable("one picture", n), None, None)
            continue
        error = float(each.std(ddof=1)) / math.sqrt(n)
        yield Drift(f"channel.{channel}.mean", from_error(float(each.mean()), error, n), None, 0.0)
        yield Drift(f"channel.{channel}.std", Estimate(whole, None, None, n), float(spread), None)


def _reason(rows: Rows) -> str | None:
    return unusable(rows) or (f"{len(rows)} rows; at least 3 are needed" if len(rows) < 3 else None)


def _squared(rows: Rows) -> npt.NDArray[np.float64]:
    """Squared distances of rows (N, D) from their mean (N,)."""
    centre = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    squared: npt.NDArray[np.float64] = np.square(rows - centre).sum(axis=1, dtype=np.float64)
    return squared


def _some(rows: Rows, size: int) -> Rows:
    """``size`` drawn rows."""
    some: Rows = rows[np.sort(np.random.default_rng(SEED).permutation(len(rows))[:size])]
    return some


def _rank(rows: Rows, size: int) -> Estimate:
    """Effective rank of ``size`` drawn rows."""
    return spectrum(_some(rows, size)).effective_rank


def _nearest(rows: Rows, size: int) -> Estimate:
    """Median of the cosine distances of ``size`` drawn rows to the nearest other of them, with its interval."""
    some = unit(_some(rows, size))
    near = nearest_others(some, np.arange(size), 1)[:, 0]
    distance = 1 - np.einsum("nd,nd->n", some, some[near], dtype=np.float64)
    reach = Z / (2 * math.sqrt(size))  # of a median: order statistics
    value, low, high = np.quantile(distance, [0.5, max(0.0, 0.5 - reach), min(1.0, 0.5 + reach)])
    return Estimate(float(value), float(low), float(high), size)


def _of_two(found: Estimate) -> Estimate:
    """The interval of a difference from a reference that was measured on equally many rows: √2 times as wide."""
    if found.value is None or found.low is None or found.high is None:
        return found
    low, high = (found.value + math.sqrt(2) * (bound - found.value) for bound in (found.low, found.high))
    return replace(found, low=low, high=high)
