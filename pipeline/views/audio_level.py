"""Invariances to the level of a clip and to its sign.

N clips (N,C,T); gains in dB.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor

from pipeline.keys import Keys
from pipeline.spec import Rule, Spec
from pipeline.views.audio_rows import by_clip, on_rows
from pipeline.views.image_plane import Parameters, applied
from pipeline.views.parameter import Amount, Span, draw, towards, within


class Gain(Spec):
    """Make the whole clip louder or softer by a random number of dB; nothing is cut at full scale."""

    kind: Literal["gain"] = "gain"
    db: Amount
    """largest change either way, in dB, drawn uniformly; or the distribution of the change"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being changed at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"loudness"})
    invertible: ClassVar[bool] = True
    group: ClassVar[bool] = True

    def rules(self) -> Iterator[Rule]:
        yield from within("db", self.db, Span(-120, 120))

    def draw(self, keys: Keys) -> Parameters:
        """``db`` (N,), 0 for no change."""
        return {"db": draw(keys, "db", self.db) * applied(keys, self.probability)}

    def apply(self, clips: Tensor, parameters: Parameters, rate: int) -> Tensor:
        db = parameters["db"]
        return on_rows(clips, db != 0, lambda part, rows: amplify(part, db[rows]))

    def at(self, strength: float) -> Gain:
        """The same with its range scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"db": towards(self.db, 0.0, strength)})

    def channels_fault(self, channels: int) -> str | None:
        return None

    def size_fault(self, samples: int, rate: int) -> str | None:
        return None


class Polarity(Spec):
    """Change the sign of every value: the microphone's wires the other way round."""

    kind: Literal["polarity"] = "polarity"
    probability: float = Field(default=0.5, ge=0, le=1)
    """of the sign being changed"""

    removes: ClassVar[frozenset[str]] = frozenset({"polarity"})
    invertible: ClassVar[bool] = True
    group: ClassVar[bool] = True

    def draw(self, keys: Keys) -> Parameters:
        """``inverted`` (N,) bool."""
        return {"inverted": applied(keys, self.probability)}

    def apply(self, clips: Tensor, parameters: Parameters, rate: int) -> Tensor:
        return on_rows(clips, parameters["inverted"], lambda part, rows: -part)

    def at(self, strength: float) -> Polarity:
        """The same with its probability scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"probability": self.probability * strength})

    def channels_fault(self, channels: int) -> str | None:
        return None

    def size_fault(self, samples: int, rate: int) -> str | None:
        return None


def amplify(clips: Tensor, db: Tensor) -> Tensor:
    """``clips`` (M,C,T) louder by ``db`` (M,): times 10**(db / 20)."""
    return clips * by_clip((db.double() * (math.log(10.0) / 20.0)).exp(), clips)
