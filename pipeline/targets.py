"""What encodes the keys that an anchor is compared with: the same network, without a gradient, or a slow copy of it.

same: both sides are trained by the loss (SimCLR). stop_gradient: the keys are the network's, but the loss does not
train it through them (SimSiam: Chen & He 2021, arXiv:2011.10566). momentum: a copy that follows the network's weights
(MoCo: He et al. 2020, arXiv:1911.05722, equation 2; BYOL: Grill et al. 2020, arXiv:2006.07733, equation 1).

In YAML the bare words ``same`` and ``stop_gradient`` stand for their kinds.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from pipeline.spec import Spec


class Same(Spec):
    """The network itself, with a gradient."""

    kind: Literal["same"]


class StopGradient(Spec):
    """The network itself, without a gradient."""

    kind: Literal["stop_gradient"]


class Momentum(Spec):
    """A copy whose weights are a moving average of the network's."""

    kind: Literal["momentum"]
    m: float = Field(ge=0, lt=1)
    """Share of its weights that the copy keeps in a step (MoCo 0.999, BYOL 0.996; less for short trainings)."""
    schedule: Literal["constant", "cosine"]
    """cosine: from m at the first step to 1 at the end (BYOL)."""

    def at(self, step: int, steps: int) -> float:
        """The share that is kept after ``step`` (from 0) of ``steps``."""
        return momentum_at(self.m, step, steps) if self.schedule == "cosine" else self.m


def momentum_at(start: float, step: int, steps: int) -> float:
    """1 - (1 - start) (cos(pi step / steps) + 1) / 2."""
    return 1 - (1 - start) * (math.cos(math.pi * step / steps) + 1) / 2


Kinds = Annotated[Same | StopGradient | Momentum, Field(discriminator="kind")]
WORDS = ("same", "stop_gradient")


def _bare_word(value: Any) -> Any:
    if value in WORDS:
        return {"kind": value}
    if not isinstance(value, (dict, BaseModel)):
        raise PydanticCustomError(
            "target", "must be same, stop_gradient, or {kind: momentum, m: 0.99, schedule: cosine}"
        )
    return value


Target = Annotated[Kinds, BeforeValidator(_bare_word, json_schema_input_type=Literal["same", "stop_gradient"] | Kinds)]
"""A bare word, or a kind with its fields."""
