"""Have new pictures drifted from those that an encoder was trained on? Channels of the input, and vectors h.

A reference is a small summary of the vectors of pictures that the encoder was meant for; ``summary`` makes it, and a
bundle's card may carry it. Every distance stands beside what two samples of one distribution would show (``expected``),
and every interval holds the error of both sides (``pipeline.spread``), so that neither small new data nor a small
reference is taken for drift.

Legend: N new pictures, M pictures of the reference, D the width of h, C channels, Σ a covariance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from pipeline.audit.estimate import Estimate, NotComputable, Z, from_error, not_computable
from pipeline.embeddings import unusable
from pipeline.rounding import rounded
from pipeline.spec import Spec, parse
from pipeline.spread import LEAST, Spread, effective_rank, longest, nearest, squared

Rows = npt.NDArray[np.float32]
SIZES = (32, 128, 512, 2048)
"""Numbers of rows at which rank and distance to the nearest other are told, since both depend on how many there are:
new rows are compared at the largest that both have."""
FEW = 10
"""Of fewer rows a variance is told, not judged: which of the far ones are among them decides it."""
UNKNOWN = 2.0
"""The error of a reference whose card does not hold it (those of before 2026-12), as a multiple of that of the new rows
at the same number of rows: equal would be the best guess, so this is wide."""


class Errors(Spec):
    """How sure a reference is of itself."""

    longest: float = Field(ge=0)
    """standard deviation along the direction in which it is largest"""
    squared: float = Field(ge=0)
    """standard deviation of the squared distances from the mean"""
    effective_rank: dict[str, float]
    nearest: dict[str, float]
    """standard errors of the logarithms, by number of rows"""


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
    errors: Errors | None = None
    """None in older cards"""


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
        judged = "; drifted" if self.beyond else f"; {found.note}" if found.note else ""
        return f"drift {self.measure:<16} {found.value:.4g}{interval}; {beside}{judged}"

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
    ranks = {str(size): effective_rank(rows, size) for size in sizes}
    distances = {str(size): nearest(rows, size) for size in sizes}
    far = squared(rows)
    content = {
        "count": len(rows),
        "mean": rows.mean(axis=0, dtype=np.float64).tolist(),
        "variance": float(far.mean()),
        "effective_rank": {size: found.value for size, found in ranks.items()},
        "nearest": {size: found.value for size, found in distances.items()},
        "errors": {
            "longest": longest(rows),
            "squared": float(far.std(ddof=1)),
            "effective_rank": {size: found.error for size, found in ranks.items()},
            "nearest": {size: found.error for size, found in distances.items()},
        },
    }
    return parse(rounded(content), Reference, "reference")


def drift_of_vectors(rows: Rows, reference: Reference) -> Iterator[Drift]:
    """Compare new vectors (N, D) with the summary of others.

    mean.h: distance of the means in standard deviations (the root of the whole variance) of the reference; variance.h:
    whole variance; effective_rank.h; nearest.h: median cosine distance to the nearest other, of equally many rows.
    """
    n, m = len(rows), reference.count
    reason = _reason(rows)
    if reason is None and rows.shape[1] != len(reference.mean):
        reason = f"{rows.shape[1]} dimensions, the reference has {len(reference.mean)}"
    if reason is not None:
        names = ("mean.h", "variance.h", "effective_rank.h", "nearest.h")
        yield from (Drift(name, not_computable(reason, n), None, None) for name in names)
        return
    yield _of_means(rows, reference)
    yield _of_variances(rows, reference)
    errors = reference.errors
    ranks, distances = (None, None) if errors is None else (errors.effective_rank, errors.nearest)
    yield _of_spreads("effective_rank.h", rows, reference.effective_rank, ranks, m)
    yield _of_spreads("nearest.h", rows, reference.nearest, distances, m)


def _of_means(rows: Rows, reference: Reference) -> Drift:
    n, m, scale = len(rows), reference.count, math.sqrt(reference.variance)
    moved = rows.mean(axis=0, dtype=np.float64) - np.asarray(reference.mean)
    length = float(np.linalg.norm(moved))
    along = float((rows @ (moved / max(length, 1e-30)).astype(np.float32)).std(ddof=1))
    theirs = along if reference.errors is None else max(along, reference.errors.longest)
    error = math.hypot(_wide(n) * along / math.sqrt(n), theirs / math.sqrt(m))
    found = from_error(length / scale, error / scale, n).within(0, math.inf)
    return Drift("mean.h", found, None, math.sqrt(1 / n + 1 / m))


def _of_variances(rows: Rows, reference: Reference) -> Drift:
    """Of few rows the wider of both spreads is taken: few rows seldom hold the far ones, which make most of it."""
    n, m, far = len(rows), reference.count, squared(rows)
    value, theirs = float(far.sum()) / (n - 1), reference.variance * m / (m - 1)
    spread = float(far.std(ddof=1))
    least = FEW if reference.errors is not None else SIZES[0]
    if n < least:
        older = "" if reference.errors is not None else " against a card that does not hold the errors of its reference"
        note = f"not judged: {n} rows; at least {least} are needed{older}"
        return Drift("variance.h", Estimate(value, None, None, n, note), theirs, None)
    if reference.errors is None:
        error = spread * math.hypot(1 / math.sqrt(n), UNKNOWN / math.sqrt(m))
    else:
        error = _wide(max(n, m)) * max(spread, reference.errors.squared) * math.sqrt(1 / n + 1 / m)
    return Drift("variance.h", from_error(value, error, n).within(0, math.inf), theirs, None)


def _of_spreads(name: str, rows: Rows, values: dict[str, float], errors: dict[str, float] | None, count: int) -> Drift:
    """Compare what depends on the number of rows, at the largest number that both have."""
    n = len(rows)
    sizes = [int(size) for size in values if int(size) <= n]
    if not sizes:
        few = f"the reference is of {count} rows" if n >= SIZES[0] else f"{n} rows"
        return Drift(name, not_computable(f"{few}; at least {SIZES[0]} are needed", n), None, None)
    size = max(sizes)
    try:
        found = (effective_rank if name.startswith("effective_rank") else nearest)(rows, size)
    except NotComputable as fault:
        return Drift(name, not_computable(fault, size), None, None)
    theirs = UNKNOWN * found.error if errors is None else errors[str(size)]
    return Drift(name, _interval(found, theirs, size), values[str(size)], None)


def _interval(found: Spread, theirs: float, size: int) -> Estimate:
    """The interval of a difference from a reference, whose own error is ``theirs``; of a distance it may reach 0."""
    by = min(_wide(size) * Z * math.hypot(found.error, theirs), 50.0)
    low, high = (max(found.value, LEAST) * math.exp(sign * by) for sign in (-1, 1))
    return Estimate(found.value, low if low > LEAST else 0.0, high, size)


def _wide(count: int) -> float:
    """By which factor an interval of few rows is wider than that of many (Student's t)."""
    from scipy.special import stdtrit

    return float(stdtrit(count - 1, 0.975)) / Z


def drift_of_channels(
    moments: npt.NDArray[np.float64], mean: Sequence[float], std: Sequence[float], count: float = math.inf
) -> Iterator[Drift]:
    """Compare channels of new pictures with those that a card holds.

    Args:
        moments: mean and mean square of each picture's channels (N, 2, C), in [0, 1].
        mean, std: of each channel over the pictures of the reference.
        count: how many those are; infinity where they are taken as known without error.
    """
    n = len(moments)
    for channel, (middle, spread) in enumerate(zip(mean, std, strict=True)):
        each = (moments[:, 0, channel] - middle) / spread
        variance = float((moments[:, 1, channel] - np.square(moments[:, 0, channel])).mean())
        whole = math.sqrt(max(0.0, variance + float(moments[:, 0, channel].var())))
        if n < 2:
            yield Drift(f"channel.{channel}.mean", not_computable("one sample; at least 2 are needed", n), None, None)
            continue
        error = _wide(n) * float(each.std(ddof=1)) * math.sqrt(1 / n + 1 / count)
        yield Drift(f"channel.{channel}.mean", from_error(float(each.mean()), error, n), None, 0.0)
        yield Drift(f"channel.{channel}.std", Estimate(whole, None, None, n), float(spread), None)


def _reason(rows: Rows) -> str | None:
    return unusable(rows) or (f"{len(rows)} rows; at least 3 are needed" if len(rows) < 3 else None)
