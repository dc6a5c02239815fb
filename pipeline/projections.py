"""The projection h → z, on whose far side the loss acts, the boundary that says which side is handed over, and the
predictor z → q that some methods have behind it.

Source: Chen et al. 2020, section 4.2: a projection keeps what the loss wants to forget out of z without taking it
from h. h (N, width), z (N, dim), q (N, dim).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field
from torch import nn

from pipeline.spec import Spec

Norm = Literal["none", "batch", "layer"]


class NoProjection(Spec):
    """The loss acts on h itself: z = h."""

    kind: Literal["none"]

    def build(self, width: int) -> nn.Module:
        """The identity; h (N, width) → z (N, width)."""
        return nn.Identity()

    def batch_statistics(self) -> bool:
        """Whether a sample's z depends on the rest of its batch while training: no."""
        return False


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

    def batch_statistics(self) -> bool:
        """Whether a sample's z depends on the rest of its batch while training: no."""
        return False


class MLPProjection(Spec):
    """Linear maps with ReLU between them: two as in SimCLR, MoCo v2 and BYOL, three as in SimSiam and MoCo v3."""

    kind: Literal["mlp"]
    hidden: int = Field(ge=1)
    """Width between the linear maps."""
    dim: int = Field(ge=1)
    """Width of z."""
    boundary: Literal["h"]
    """The side that the bundle hands over: h, before the projection."""
    layers: int = Field(default=2, ge=2, le=8)
    """Linear maps."""
    norm: Norm = "none"
    """Normalisation before every ReLU."""
    last_norm: Norm = "none"
    """Normalisation of z, without weights of its own (SimSiam, MoCo v3: batch)."""

    def build(self, width: int) -> nn.Module:
        """h (N, width) → z (N, dim)."""
        return mlp([width, *[self.hidden] * (self.layers - 1), self.dim], self.norm, self.last_norm)

    def batch_statistics(self) -> bool:
        """Whether a sample's z depends on the rest of its batch while training."""
        return "batch" in (self.norm, self.last_norm)


Projection = Annotated[NoProjection | LinearProjection | MLPProjection, Field(discriminator="kind")]


class MLPPredictor(Spec):
    """A predictor of the target's z: q = MLP(z), of the width of z (BYOL, SimSiam, MoCo v3)."""

    kind: Literal["mlp"]
    hidden: int = Field(ge=1)
    """Width between the linear maps; SimSiam: a quarter of the width of z."""
    layers: int = Field(default=2, ge=2, le=8)
    """Linear maps."""
    norm: Norm = "none"
    """Normalisation before every ReLU; the papers: batch."""

    def build(self, dim: int) -> nn.Module:
        """z (N, dim) → q (N, dim)."""
        return mlp([dim, *[self.hidden] * (self.layers - 1), dim], self.norm, "none")

    def batch_statistics(self) -> bool:
        """Whether a sample's q depends on the rest of its batch while training."""
        return self.norm == "batch"


Predictor = MLPPredictor


def mlp(widths: Sequence[int], norm: Norm, last_norm: Norm) -> nn.Sequential:
    """Linear maps from each width to the next, normalised and with ReLU between; a map before a norm has no bias."""
    parts: list[nn.Module] = []
    for number, (before, after) in enumerate(pairwise(widths), start=2):
        last = number == len(widths)
        kind = last_norm if last else norm
        parts.append(nn.Linear(before, after, bias=kind == "none"))
        parts += _norm(kind, after, affine=not last)
        parts += [] if last else [nn.ReLU(inplace=True)]
    return nn.Sequential(*parts)


def _norm(kind: Norm, width: int, affine: bool) -> list[nn.Module]:
    if kind == "batch":
        return [nn.BatchNorm1d(width, affine=affine)]
    return [nn.LayerNorm(width, elementwise_affine=affine)] if kind == "layer" else []
