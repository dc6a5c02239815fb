"""Invariances made of others, in YAML alone: one of several, several in order, one sometimes, one several times.

Parameters of the parts are those of the parts, with the part's position before the name: "0.degrees".

N images (N,C,H,W), or waves (N,C,T) with their rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from pipeline.keys import Keys
from pipeline.spec import Rule, Spec
from pipeline.views.image_plane import Parameters, applied
from pipeline.views.sequence import apply_all, draw_all
from pipeline.views.waves import apply_waves

if TYPE_CHECKING:
    from pipeline.views import Invariance


class Compose(Spec):
    """All of the given invariances, in their order."""

    kind: Literal["compose"] = "compose"
    of: tuple[Invariance, ...] = Field(min_length=1)
    """the parts, in order of application"""

    group: ClassVar[bool] = False

    @property
    def parts(self) -> tuple[Invariance, ...]:
        return self.of

    @property
    def removes(self) -> frozenset[str]:
        return frozenset().union(*(part.removes for part in self.of))

    @property
    def invertible(self) -> bool:
        return all(part.invertible for part in self.of)

    def draw(self, keys: Keys) -> Parameters:
        """The parameters of all parts."""
        return _join(draw_all(self.of, keys))

    def apply(self, images: Tensor, parameters: Parameters, rate: int | None = None) -> Tensor:
        return _apply_all(images, self.of, _split(parameters, len(self.of)), rate)

    def at(self, strength: float) -> Compose:
        """The same of its parts at ``strength``; 0 is the identity."""
        return self.model_copy(update={"of": tuple(part.at(strength) for part in self.of)})

    def channels_fault(self, channels: int) -> str | None:
        return _first_fault(self.of, channels)


class Choose(Spec):
    """One of the given invariances, drawn for each picture."""

    kind: Literal["choose"] = "choose"
    of: tuple[Invariance, ...] = Field(min_length=2)
    """what is chosen from"""
    weights: tuple[float, ...]
    """how likely each is, in proportion"""

    group: ClassVar[bool] = False

    @property
    def parts(self) -> tuple[Invariance, ...]:
        return self.of

    @property
    def removes(self) -> frozenset[str]:
        return frozenset().union(*(part.removes for part in self.of))

    @property
    def invertible(self) -> bool:
        return all(part.invertible for part in self.of)

    def rules(self) -> Iterator[Rule]:
        if len(self.weights) != len(self.of):
            yield "weights", f"must be as many as what is chosen from: {len(self.of)}"
        elif min(self.weights) < 0 or sum(self.weights) == 0:
            yield "weights", "must be 0 or more, and one of them above 0"

    def draw(self, keys: Keys) -> Parameters:
        """``chosen`` (N,) int64, and the parameters of all parts."""
        bounds = torch.tensor(self.weights).cumsum(0)
        lot = keys.uniform("chosen") * bounds[-1]
        # the last part that can be chosen at all takes what rounding leaves over
        last = max(number for number, weight in enumerate(self.weights) if weight > 0)
        chosen = torch.searchsorted(bounds, lot, right=True).clamp(max=last)
        return {"chosen": chosen} | _join(draw_all(self.of, keys))

    def apply(self, images: Tensor, parameters: Parameters, rate: int | None = None) -> Tensor:
        parts = _split(parameters, len(self.of))
        for number, (part, drawn) in enumerate(zip(self.of, parts, strict=True)):
            images = _apply_to(images, parameters["chosen"] == number, part, drawn, rate)
        return images

    def at(self, strength: float) -> Choose:
        """The same of its parts at ``strength``; 0 is the identity."""
        return self.model_copy(update={"of": tuple(part.at(strength) for part in self.of)})

    def channels_fault(self, channels: int) -> str | None:
        return _first_fault(self.of, channels)


class Maybe(Spec):
    """The given invariance, with a probability."""

    kind: Literal["maybe"] = "maybe"
    of: Invariance
    """what is applied or not"""
    probability: float = Field(ge=0, le=1)
    """of its being applied"""

    group: ClassVar[bool] = False

    @property
    def parts(self) -> tuple[Invariance, ...]:
        return (self.of,)

    @property
    def removes(self) -> frozenset[str]:
        return self.of.removes

    @property
    def invertible(self) -> bool:
        return self.of.invertible

    def draw(self, keys: Keys) -> Parameters:
        """``acts`` (N,) bool, and the parameters of the part."""
        return {"acts": applied(keys, self.probability)} | _join(draw_all([self.of], keys))

    def apply(self, images: Tensor, parameters: Parameters, rate: int | None = None) -> Tensor:
        return _apply_to(images, parameters["acts"], self.of, _split(parameters, 1)[0], rate)

    def at(self, strength: float) -> Maybe:
        """The same of its part at ``strength``; 0 is the identity."""
        return self.model_copy(update={"of": self.of.at(strength)})

    def channels_fault(self, channels: int) -> str | None:
        return _first_fault(self.parts, channels)


class Repeat(Spec):
    """The given invariance several times, drawn anew each time."""

    kind: Literal["repeat"] = "repeat"
    of: Invariance
    """what is repeated"""
    times: int = Field(ge=1, le=100)
    """how often"""

    group: ClassVar[bool] = False

    @property
    def parts(self) -> tuple[Invariance, ...]:
        return (self.of,)

    @property
    def removes(self) -> frozenset[str]:
        return self.of.removes

    @property
    def invertible(self) -> bool:
        return self.of.invertible

    def draw(self, keys: Keys) -> Parameters:
        """The parameters of every time."""
        return _join(draw_all([self.of] * self.times, keys))

    def apply(self, images: Tensor, parameters: Parameters, rate: int | None = None) -> Tensor:
        return _apply_all(images, [self.of] * self.times, _split(parameters, self.times), rate)

    def at(self, strength: float) -> Repeat:
        """The same of its part at ``strength``; 0 is the identity."""
        return self.model_copy(update={"of": self.of.at(strength)})

    def channels_fault(self, channels: int) -> str | None:
        return _first_fault(self.parts, channels)


Combinator = Compose | Choose | Maybe | Repeat


def _join(parts: Sequence[Parameters]) -> Parameters:
    return {f"{number}.{name}": values for number, part in enumerate(parts) for name, values in part.items()}


def _split(parameters: Parameters, count: int) -> list[Parameters]:
    parts: list[Parameters] = [{} for _ in range(count)]
    for name, values in parameters.items():
        number, dot, rest = name.partition(".")
        if dot:
            parts[int(number)][rest] = values
    return parts


def _apply_all(
    images: Tensor, parts: Sequence[Invariance], parameters: Sequence[Parameters], rate: int | None
) -> Tensor:
    """Apply the parts in their order: to pictures, or to waves, which have a rate."""
    if rate is None:
        return apply_all(images, parts, parameters)
    return apply_waves(images, parts, parameters, (images.shape[-1], rate))


def _apply_to(images: Tensor, acts: Tensor, part: Any, parameters: Parameters, rate: int | None) -> Tensor:
    """Apply ``part`` to the rows where ``acts`` (N,) is true."""
    rows = acts.nonzero().flatten()
    if not len(rows):
        return images
    where = rows.to(images.device)
    drawn = {name: values[rows] for name, values in parameters.items()}
    timed = {} if rate is None else {"rate": rate}
    changed = part.apply(images.index_select(0, where), drawn, **timed)
    return images.index_copy(0, where, changed)


def _first_fault(parts: Sequence[Invariance], channels: int) -> str | None:
    faults = ((part.kind, part.channels_fault(channels)) for part in parts)
    return next((f"{kind} {reason}" for kind, reason in faults if reason), None)
