"""Floor 1: the distributions that a parameter of an invariance can be given, by name.

A distribution is its inverse cumulative function (``quantile``), so that a draw is a pure function of one uniform
number, which is a pure function of the key (inverse transform sampling: Devroye, "Non-Uniform Random Variate
Generation", 1986, chapter II.2). All are bounded: a parameter has a lowest and a highest value that are known.

Weakened to a strength s, every draw x becomes neutral + s * (x - neutral), where neutral is the value that changes
nothing; on a logarithmic scale it becomes neutral^(1-s) * x^s.

Each has ``bounds()``: the lowest and the highest value that can be drawn; ``quantile(unit)``: the values at ``unit``,
uniform float64 numbers in [0, 1), multiples of 2**-24, of any shape; ``towards(neutral, strength)``: itself weakened.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from pipeline.spec import Rule, Spec

FAR = 30.0  # standard deviations from which a normal distribution has no mass worth a draw (5e-198)
FLAT = 1e6  # widths of the range from which on a normal distribution is uniform there, and its digits are lost
Positive = Annotated[float, Field(gt=0)]


class Constant(Spec):
    """Always the same value."""

    kind: Literal["constant"] = "constant"
    value: float
    """the value"""

    def bounds(self) -> tuple[float, float]:
        return self.value, self.value

    def quantile(self, unit: Tensor) -> Tensor:
        return torch.full_like(unit, self.value)

    def towards(self, neutral: float, strength: float) -> Constant:
        return self.model_copy(update={"value": mixed(neutral, self.value, strength)})


class Uniform(Spec):
    """Every value from low to high equally likely."""

    kind: Literal["uniform"] = "uniform"
    low: float
    """smallest value"""
    high: float
    """largest value"""

    def rules(self) -> Iterator[Rule]:
        if self.low > self.high:
            yield "low", f"must not be above high ({self.high:g})"

    def bounds(self) -> tuple[float, float]:
        return self.low, self.high

    def quantile(self, unit: Tensor) -> Tensor:
        return self.low + (self.high - self.low) * unit

    def towards(self, neutral: float, strength: float) -> Uniform:
        ends = {name: mixed(neutral, getattr(self, name), strength) for name in ("low", "high")}
        return self.model_copy(update=ends)


class LogUniform(Spec):
    """Every ratio equally likely: the logarithm is uniform, so 0.5 to 1 is drawn as often as 1 to 2."""

    kind: Literal["log_uniform"] = "log_uniform"
    low: Positive
    """smallest value, above 0"""
    high: Positive
    """largest value"""

    def rules(self) -> Iterator[Rule]:
        if self.low > self.high:
            yield "low", f"must not be above high ({self.high:g})"

    def bounds(self) -> tuple[float, float]:
        return self.low, self.high

    def quantile(self, unit: Tensor) -> Tensor:
        low, high = math.log(self.low), math.log(self.high)
        return (low + (high - low) * unit).exp().clamp(self.low, self.high)

    def towards(self, neutral: float, strength: float) -> LogUniform:
        blend = mixed_ratio if neutral > 0 else mixed  # 0 lies on no logarithmic scale
        return self.model_copy(update={name: blend(neutral, getattr(self, name), strength) for name in ("low", "high")})


class Normal(Spec):
    """Normal, cut off at low and high: what would lie outside is drawn again, not moved to the ends."""

    kind: Literal["normal"] = "normal"
    mean: float
    """where the bell has its top (not the mean of what is left, unless the cuts are symmetric)"""
    std: Positive
    """standard deviation before the cuts, above 0"""
    low: float
    """smallest value"""
    high: float
    """largest value"""

    def rules(self) -> Iterator[Rule]:
        if self.low >= self.high:
            yield "low", f"must be below high ({self.high:g})"
        elif max(self.low - self.mean, self.mean - self.high) > FAR * self.std:
            yield "mean", f"lies over {FAR:g} std from [low, high], where nothing is drawn; move it, or widen std"
        elif self.std > FLAT * (self.high - self.low):
            yield "std", "is so wide that all of [low, high] is equally likely; use {kind: uniform}"

    def bounds(self) -> tuple[float, float]:
        return self.low, self.high

    def quantile(self, unit: Tensor) -> Tensor:
        start, end = ((edge - self.mean) / self.std for edge in (self.low, self.high))
        middle = unit + 2.0**-25  # of the unit's cell: no draw comes from a tail that has no mass
        if start > 0:  # the upper tail, whose probabilities near 1 have no digits left: its mirror image
            first, last = _phi(-start), _phi(-end)
            score: Tensor = -torch.special.ndtri(first - (first - last) * middle)
        else:
            first, last = _phi(start), _phi(end)
            score = torch.special.ndtri(first + (last - first) * middle)
        return (self.mean + self.std * score).clamp(self.low, self.high)

    def towards(self, neutral: float, strength: float) -> Normal:
        places = {name: mixed(neutral, getattr(self, name), strength) for name in ("mean", "low", "high")}
        return self.model_copy(update={**places, "std": self.std * strength})


class Choice(Spec):
    """One of the given values."""

    kind: Literal["choice"] = "choice"
    values: tuple[float, ...] = Field(min_length=1)
    """what is chosen from"""
    weights: tuple[float, ...]
    """how likely each is, in proportion"""

    def rules(self) -> Iterator[Rule]:
        if len(self.weights) != len(self.values):
            yield "weights", f"must be as many as the values: {len(self.values)}"
        elif min(self.weights) < 0 or sum(self.weights) == 0:
            yield "weights", "must be 0 or more, and one of them above 0"

    def bounds(self) -> tuple[float, float]:
        possible = [value for value, weight in zip(self.values, self.weights, strict=True) if weight > 0]
        return min(possible), max(possible)

    def quantile(self, unit: Tensor) -> Tensor:
        ends = torch.tensor(self.weights, dtype=unit.dtype).cumsum(0)
        # the last value that can be chosen at all takes what rounding leaves over
        last = max(number for number, weight in enumerate(self.weights) if weight > 0)
        chosen = torch.searchsorted(ends, unit * ends[-1], right=True).clamp(max=last)
        return torch.tensor(self.values, dtype=unit.dtype)[chosen]

    def towards(self, neutral: float, strength: float) -> Choice:
        return self.model_copy(update={"values": tuple(mixed(neutral, value, strength) for value in self.values)})


Distribution = Annotated[Constant | Uniform | LogUniform | Normal | Choice, Field(discriminator="kind")]
"""Each has ``bounds()``, ``quantile(unit)`` and ``towards(neutral, strength)``, as the header says."""


def mixed(neutral: float, value: float, strength: float) -> float:
    """``value`` drawn in to ``neutral``; exact at strengths 0 and 1."""
    return neutral * (1.0 - strength) + value * strength


def mixed_ratio(neutral: float, value: float, strength: float) -> float:
    """The same on a logarithmic scale, both above 0."""
    return float(neutral ** (1.0 - strength) * value**strength)


def _phi(score: float) -> float:
    """Probability of a standard normal number below ``score``, with all its digits in the lower tail."""
    return 0.5 * math.erfc(-score / math.sqrt(2.0))
