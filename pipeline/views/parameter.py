"""Floor 1: the parameter of an invariance, in YAML a plain number, a pair, or a distribution; and how it is drawn.

What a plain number or pair means is its field's to say, and is what it always was:

| type | plain form | meaning of the plain form |
|---|---|---|
| Amount | number a | uniform on [-a, a] (of a way that has one direction: on [0, a]) |
| Range | [low, high] | uniform, or log-uniform where the field says so |
| Level | number | always that |
| Count, CountRange | whole number, pair of them | always that; all of them equally likely |

N keys; draws (N, ...).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

from pydantic import Discriminator, Field, Tag
from torch import Tensor

from pipeline.keys import Keys
from pipeline.spec import Rule, Spec
from pipeline.views.distribution import (
    Choice,
    Constant,
    Distribution,
    LogUniform,
    Normal,
    Uniform,
    mixed,
    mixed_ratio,
)

LARGEST = 1_000_000  # far beyond all use, and far from what float32 pixels cannot take


def _form(value: Any) -> str | None:
    """Which of its forms a parameter has in YAML."""
    if isinstance(value, (dict, Spec)):
        return "distribution"
    if isinstance(value, (list, tuple)):
        return "pair"
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _number(value: Any) -> str | None:
    return form if (form := _form(value)) != "pair" else None


def _pair(value: Any) -> str | None:
    return form if (form := _form(value)) != "number" else None


_NUMBER = Discriminator(
    _number, "form", "must be a number or a distribution such as {kind: uniform, low: 0.1, high: 0.3}"
)
_PAIR = Discriminator(
    _pair, "form", "must be [low, high] or a distribution such as {kind: uniform, low: 0.1, high: 0.3}"
)

_Named = Annotated[Distribution, Tag("distribution")]
Amount = Annotated[Annotated[float, Field(ge=0), Tag("number")] | _Named, _NUMBER]
"""In YAML a number a, which means uniform on [-a, a], or a distribution."""
Level = Annotated[Annotated[float, Field(ge=0), Tag("number")] | _Named, _NUMBER]
"""In YAML a number, always the same, or a distribution."""
Count = Annotated[Annotated[int, Field(ge=1), Tag("number")] | _Named, _NUMBER]
"""In YAML a whole number, always the same, or a distribution whose draws are rounded."""
Range = Annotated[Annotated[tuple[float, float], Tag("pair")] | _Named, _PAIR]
"""In YAML a pair [low, high], which means uniform (or log-uniform, where the field says so), or a distribution."""
CountRange = Annotated[Annotated[tuple[int, int], Tag("pair")] | _Named, _PAIR]
"""In YAML a pair of whole numbers, all between them equally likely, or a distribution whose draws are rounded."""
Parameter = float | tuple[float, float] | Constant | Uniform | LogUniform | Normal | Choice


class Span(NamedTuple):
    """The values that a parameter may have: low to high, an end left out where it is open."""

    low: float
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False

    def __contains__(self, value: object) -> bool:
        assert isinstance(value, (int, float))
        above = value > self.low if self.open_low else value >= self.low
        return above and (value < self.high if self.open_high else value <= self.high)

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f"above {self.low:g}" if self.open_low else f"{self.low:g} or more"
        if self.open_low:
            return f"above {self.low:g} and {'below' if self.open_high else 'up to'} {self.high:g}"
        return f"from {self.low:g} to {'below ' if self.open_high else ''}{self.high:g}"


def within(name: str, parameter: Parameter, span: Span, pair: str = "") -> Iterator[Rule]:
    """The rule of a field: its parameter stays in ``span``, and a pair rises; ``pair`` is what is said of a pair."""
    low, high = bounds(parameter)
    if max(abs(low), abs(high)) > LARGEST:
        yield name, f"must stay within {LARGEST:,} of 0"
        return
    if isinstance(parameter, (int, float)):
        if parameter not in span and parameter > span.low:
            yield name, f"must be less than {'' if span.open_high else 'or equal to '}{span.high:g}"
        return
    if low in span and high in span and low <= high:
        return
    yield name, pair if isinstance(parameter, tuple) else f"reaches from {low:g} to {high:g}; must stay {span}"


def bounds(parameter: Parameter) -> tuple[float, float]:
    """The lowest and the highest value that can be drawn; of a number, those of an amount to either side."""
    if isinstance(parameter, tuple):
        return parameter
    return (-parameter, parameter) if isinstance(parameter, (int, float)) else parameter.bounds()


def one_sided(parameter: Parameter) -> Parameter:
    """The same, but of a number a uniform on [0, a]."""
    return (0.0, parameter) if isinstance(parameter, (int, float)) else parameter


def varies(parameter: Parameter, neutral: float = 0.0) -> bool:
    """Whether anything but ``neutral``, the value that changes nothing, can be drawn."""
    return bounds(parameter) != (neutral, neutral)


def draw(keys: Keys, stream: str, parameter: Parameter, shape: tuple[int, ...] = (), log: bool = False) -> Tensor:
    """Values of a parameter: (N, *shape) float32.

    Args:
        stream: name of the random stream.
        parameter: a number a is uniform on [-a, a]; a pair is uniform between its two, log-uniform where ``log``.
    """
    if isinstance(parameter, (int, float)):
        return keys.uniform(stream, -parameter, parameter, shape)
    if isinstance(parameter, tuple) and log:
        return keys.uniform(stream, math.log(parameter[0]), math.log(parameter[1]), shape).exp()
    if isinstance(parameter, tuple):
        return keys.uniform(stream, *parameter, shape)
    return parameter.quantile(keys.uniform(stream, shape=shape).double()).float()


def towards(parameter: Parameter, neutral: float, strength: float, log: bool = False) -> Parameter:
    """The parameter drawn in to its ``neutral`` value: 0 is that value always, 1 the parameter itself.

    Args:
        log: of a pair, whether it is log-uniform.
    """
    if isinstance(parameter, (int, float)):
        return parameter * strength
    if isinstance(parameter, tuple):
        blend = mixed_ratio if log else mixed
        return blend(neutral, parameter[0], strength), blend(neutral, parameter[1], strength)
    return parameter.towards(neutral, strength) if strength else Constant(value=neutral)
