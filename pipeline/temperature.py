"""What divides similarities into logits: a fixed number, a learned one, or one that moves with training.

In YAML a bare number is a fixed temperature.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import torch
from pydantic import BaseModel, BeforeValidator, Field
from pydantic_core import PydanticCustomError
from torch import Tensor

from pipeline.spec import Rule, Spec

Positive = Annotated[float, Field(gt=0)]


class Fixed(Spec):
    """The same number throughout."""

    kind: Literal["fixed"]
    value: Positive

    def learned(self) -> dict[str, Tensor]:
        """Scalars that the loop trains beside the encoder: none."""
        return {}

    def at(self, progress: float, learned: Mapping[str, Tensor]) -> float | Tensor:
        """The temperature when ``progress`` (0 to 1) of the training is done."""
        return self.value


class Learned(Spec):
    """A trained scalar, as in CLIP (Radford et al. 2021, arXiv:2103.00020, section 2.4), parametrised by its log.

    log temperature = log low + (log high - log low) * sigmoid(position): always inside the bounds, and unlike a
    clamped logarithm it never loses its gradient there.
    """

    kind: Literal["learned"]
    start: Positive
    low: Positive
    high: Positive

    def rules(self) -> Iterator[Rule]:
        if not self.low < self.start < self.high:
            yield "start", f"must lie between low ({self.low}) and high ({self.high})"

    def learned(self) -> dict[str, Tensor]:
        """Scalars that the loop trains beside the encoder: the position between the bounds."""
        share = math.log(self.start / self.low) / math.log(self.high / self.low)
        return {"temperature": torch.tensor(math.log(share / (1 - share)))}

    def at(self, progress: float, learned: Mapping[str, Tensor]) -> float | Tensor:
        """The temperature as a scalar tensor that receives a gradient."""
        position = learned["temperature"] if "temperature" in learned else self.learned()["temperature"]
        width = math.log(self.high / self.low)
        return self.low * torch.exp(width * torch.sigmoid(position))


class Scheduled(Spec):
    """A half cosine or a straight line from ``start`` to ``end`` over the training.

    Kukleva, Böhle, Schiele, Kuehne, Rupprecht 2023, arXiv:2303.13664 (temperature schedules for long-tailed data).
    """

    kind: Literal["scheduled"]
    start: Positive
    end: Positive
    shape: Literal["cosine", "linear"]

    def learned(self) -> dict[str, Tensor]:
        """Scalars that the loop trains beside the encoder: none."""
        return {}

    def at(self, progress: float, learned: Mapping[str, Tensor]) -> float | Tensor:
        """The temperature when ``progress`` (0 to 1) of the training is done."""
        done = min(max(progress, 0.0), 1.0)
        if self.shape == "cosine":
            done = (1 - math.cos(math.pi * done)) / 2
        return self.start + (self.end - self.start) * done


Kinds = Annotated[Fixed | Learned | Scheduled, Field(discriminator="kind")]


def _bare_number(value: Any) -> Any:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return {"kind": "fixed", "value": value}
    if not isinstance(value, (dict, BaseModel)):
        raise PydanticCustomError("temperature", "must be a number above 0, or a mapping with a kind")
    return value


Temperature = Annotated[Kinds, BeforeValidator(_bare_number, json_schema_input_type=Positive | Kinds)]
"""A bare number, or a kind with its fields."""
