"""The projection h → z, on whose far side the loss acts, and the boundary that says which side is handed over.

Source: Chen et al. 2020, section 4.2: a projection keeps what the loss wants to forget out of z without taking it
from h. h (N, width), z (N, dim).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from torch import nn

from pipeline.spec import Spec


class NoProjection(Spec):
    """The loss acts on h itself: z = h."""

    kind: Literal["none"]

    def build(self, width: int) -> nn.Module:
        """The identity; h (N, width) → z (N, width)."""
        return nn.Identity()


class LinearProjection(Spec):
    """One linear map."""

    kind: Literal["linear"]
    dim: int = Field(ge=1)
    """Width of z."""
    boundary: Literal["h"]
    """The side that the bundle hands over: h, before the projection."""

    def build(self, width: int) -> nn.Module:
        """h (N, width) → z (N, dim)."""
        return nn.Linear(width, self.dim)


class MLPProjection(Spec):
    """Linear, ReLU, linear."""

    kind: Literal["mlp"]
    hidden: int = Field(ge=1)
    """Width between the two linear maps."""
    dim: int = Field(ge=1)
    """Width of z."""
    boundary: Literal["h"]
    """The side that the bundle hands over: h, before the projection."""

    def build(self, width: int) -> nn.Module:
        """h (N, width) → z (N, dim)."""
        return nn.Sequential(nn.Linear(width, self.hidden), nn.ReLU(inplace=True), nn.Linear(self.hidden, self.dim))


Projection = Annotated[NoProjection | LinearProjection | MLPProjection, Field(discriminator="kind")]
