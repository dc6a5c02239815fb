"""Invariances to where and how a picture lies: shift, rotation, right angles and mirrors.

Each is a map of the plane about the picture's centre, given as ``matrix``; so neighbours in a list compose (see
sequence.py). Mirrors and right angles move whole pixels and are exact.

N images (N,C,H,W); matrices (N,3,3) map pixels of the output to pixels of the input, from the centre, x right, y down.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from pipeline.keys import Keys
from pipeline.spec import Rule, Spec
from pipeline.views.image_plane import Parameters, applied, permute, resample
from pipeline.views.parameter import Amount, Span, draw, towards, within


class Shift(Spec):
    """Move the picture by a random number of pixels (fractions too), right and down independently."""

    kind: Literal["shift"] = "shift"
    pixels: Amount
    """largest shift each way, in pixels, drawn uniformly; or the distribution of the shift to the right, and down"""
    fill: float = Field(default=0.0, ge=0, le=1)
    """what comes in at the edges, in [0, 1]"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being moved at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"position"})
    invertible: ClassVar[bool] = True
    group: ClassVar[bool] = True

    def rules(self) -> Iterator[Rule]:
        yield from within("pixels", self.pixels, Span(-math.inf))

    def draw(self, keys: Keys) -> Parameters:
        """``shift`` (N,2): pixels to the right, pixels down."""
        shift = draw(keys, "shift", self.pixels, shape=(2,))
        return {"shift": shift * applied(keys, self.probability)[:, None]}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        return resample(images, self.matrix(parameters, *images.shape[-2:]), self.fill)

    def matrix(self, parameters: Parameters, height: int, width: int) -> Tensor:
        matrix = torch.eye(3).repeat(len(parameters["shift"]), 1, 1)
        matrix[:, :2, 2] = -parameters["shift"]
        return matrix

    def at(self, strength: float) -> Shift:
        """The same with its range scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"pixels": towards(self.pixels, 0.0, strength)})

    def channels_fault(self, channels: int) -> str | None:
        return None


class Rotation(Spec):
    """Turn the picture about its centre by a random angle."""

    kind: Literal["rotation"] = "rotation"
    degrees: Amount
    """largest angle to either side, in degrees, drawn uniformly; or the distribution of the angle, counter-clockwise"""
    fill: float = Field(default=0.0, ge=0, le=1)
    """what comes in at the corners, in [0, 1]"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being turned at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"orientation"})
    invertible: ClassVar[bool] = True
    group: ClassVar[bool] = True

    def rules(self) -> Iterator[Rule]:
        yield from within("degrees", self.degrees, Span(-180, 180))

    def draw(self, keys: Keys) -> Parameters:
        """``degrees`` (N,): counter-clockwise."""
        degrees = draw(keys, "degrees", self.degrees)
        return {"degrees": degrees * applied(keys, self.probability)}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        return resample(images, self.matrix(parameters, *images.shape[-2:]), self.fill)

    def matrix(self, parameters: Parameters, height: int, width: int) -> Tensor:
        angle = parameters["degrees"].deg2rad()
        matrix = torch.eye(3).repeat(len(angle), 1, 1)
        matrix[:, 0, 0] = matrix[:, 1, 1] = angle.cos()
        matrix[:, 1, 0] = angle.sin()
        matrix[:, 0, 1] = -angle.sin()
        return matrix

    def at(self, strength: float) -> Rotation:
        """The same with its range scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"degrees": towards(self.degrees, 0.0, strength)})

    def channels_fault(self, channels: int) -> str | None:
        return None


class RightAngle(Spec):
    """Turn a square picture by 0, 90, 180 or 270 degrees, all equally likely; exact."""

    kind: Literal["right_angle"] = "right_angle"
    probability: float = Field(default=1.0, ge=0, le=1)
    """of a turn being drawn (one turn in four is by 0 degrees)"""

    removes: ClassVar[frozenset[str]] = frozenset({"orientation"})
    invertible: ClassVar[bool] = True
    group: ClassVar[bool] = True

    def draw(self, keys: Keys) -> Parameters:
        """``turns`` (N,) int64: quarter turns, counter-clockwise."""
        return {"turns": keys.integers("turns", 0, 4) * applied(keys, self.probability)}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        return permute(images, self.matrix(parameters, *images.shape[-2:]))

    def matrix(self, parameters: Parameters, height: int, width: int) -> Tensor:
        turns = torch.tensor([[[1, 0], [0, 1]], [[0, -1], [1, 0]], [[-1, 0], [0, -1]], [[0, 1], [-1, 0]]]).float()
        matrix = torch.eye(3).repeat(len(parameters["turns"]), 1, 1)
        matrix[:, :2, :2] = turns[parameters["turns"]]
        return matrix

    def at(self, strength: float) -> RightAngle:
        """The same with its probability scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"probability": self.probability * strength})

    def channels_fault(self, channels: int) -> str | None:
        return None


class HorizontalFlip(Spec):
    """Mirror left and right; exact."""

    kind: Literal["horizontal_flip"] = "horizontal_flip"
    probability: float = Field(default=0.5, ge=0, le=1)
    """of being mirrored"""

    removes: ClassVar[frozenset[str]] = frozenset({"chirality"})
    invertible: ClassVar[bool] = True
    group: ClassVar[bool] = True

    def draw(self, keys: Keys) -> Parameters:
        """``flipped`` (N,) bool."""
        return {"flipped": applied(keys, self.probability)}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        return permute(images, self.matrix(parameters, *images.shape[-2:]))

    def matrix(self, parameters: Parameters, height: int, width: int) -> Tensor:
        matrix = torch.eye(3).repeat(len(parameters["flipped"]), 1, 1)
        matrix[parameters["flipped"], 0, 0] = -1.0
        return matrix

    def at(self, strength: float) -> HorizontalFlip:
        """The same with its probability scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"probability": self.probability * strength})

    def channels_fault(self, channels: int) -> str | None:
        return None


class VerticalFlip(Spec):
    """Mirror top and bottom; exact. It also turns things upside down."""

    kind: Literal["vertical_flip"] = "vertical_flip"
    probability: float = Field(default=0.5, ge=0, le=1)
    """of being mirrored"""

    removes: ClassVar[frozenset[str]] = frozenset({"chirality", "orientation"})
    invertible: ClassVar[bool] = True
    group: ClassVar[bool] = True

    def draw(self, keys: Keys) -> Parameters:
        """``flipped`` (N,) bool."""
        return {"flipped": applied(keys, self.probability)}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        return permute(images, self.matrix(parameters, *images.shape[-2:]))

    def matrix(self, parameters: Parameters, height: int, width: int) -> Tensor:
        matrix = torch.eye(3).repeat(len(parameters["flipped"]), 1, 1)
        matrix[parameters["flipped"], 1, 1] = -1.0
        return matrix

    def at(self, strength: float) -> VerticalFlip:
        """The same with its probability scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"probability": self.probability * strength})

    def channels_fault(self, channels: int) -> str | None:
        return None
