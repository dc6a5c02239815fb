"""Invariances to where and how a picture lies: shift, rotation, right angles, mirrors; one resampling for all of them.

Each is a map of the plane about the picture's centre. Neighbours in a list are composed as 3x3 matrices first and
resampled once (bilinear), so that a shift and a rotation blur once and the canvas cuts once, at the end. Mirrors and
right angles alone move pixels and are exact.

N images (N,C,H,W); matrices (N,3,3) map pixels of the output to pixels of the input, from the centre, x right, y down.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from pipeline.keys import Keys
from pipeline.spec import Spec

Parameters = dict[str, Tensor]


class Shift(Spec):
    """Move the picture by a uniform number of pixels (fractions too), right and down independently."""

    kind: Literal["shift"] = "shift"
    pixels: float = Field(ge=0)
    """largest shift each way, in pixels"""
    fill: float = Field(default=0.0, ge=0, le=1)
    """what comes in at the edges, in [0, 1]"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being moved at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"position"})
    invertible: ClassVar[bool] = True
    group: ClassVar[bool] = True

    def draw(self, keys: Keys) -> Parameters:
        """``shift`` (N,2): pixels to the right, pixels down."""
        shift = keys.uniform("shift", -self.pixels, self.pixels, shape=(2,))
        return {"shift": shift * applied(keys, self.probability)[:, None]}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        return move(images, [(self, parameters)])

    def matrix(self, parameters: Parameters) -> Tensor:
        matrix = torch.eye(3).repeat(len(parameters["shift"]), 1, 1)
        matrix[:, :2, 2] = -parameters["shift"]
        return matrix

    def at(self, strength: float) -> Shift:
        """The same with its range scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"pixels": self.pixels * strength})

    def channels_fault(self, channels: int) -> str | None:
        return None


class Rotation(Spec):
    """Turn the picture about its centre by a uniform angle, to either side."""

    kind: Literal["rotation"] = "rotation"
    degrees: float = Field(ge=0, le=180)
    """largest angle, in degrees"""
    fill: float = Field(default=0.0, ge=0, le=1)
    """what comes in at the corners, in [0, 1]"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being turned at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"orientation"})
    invertible: ClassVar[bool] = True
    group: ClassVar[bool] = True

    def draw(self, keys: Keys) -> Parameters:
        """``degrees`` (N,): counter-clockwise."""
        degrees = keys.uniform("degrees", -self.degrees, self.degrees)
        return {"degrees": degrees * applied(keys, self.probability)}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        return move(images, [(self, parameters)])

    def matrix(self, parameters: Parameters) -> Tensor:
        angle = parameters["degrees"].deg2rad()
        matrix = torch.eye(3).repeat(len(angle), 1, 1)
        matrix[:, 0, 0] = matrix[:, 1, 1] = angle.cos()
        matrix[:, 1, 0] = angle.sin()
        matrix[:, 0, 1] = -angle.sin()
        return matrix

    def at(self, strength: float) -> Rotation:
        """The same with its range scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"degrees": self.degrees * strength})

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
        return move(images, [(self, parameters)])

    def matrix(self, parameters: Parameters) -> Tensor:
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
        return move(images, [(self, parameters)])

    def matrix(self, parameters: Parameters) -> Tensor:
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
        return move(images, [(self, parameters)])

    def matrix(self, parameters: Parameters) -> Tensor:
        matrix = torch.eye(3).repeat(len(parameters["flipped"]), 1, 1)
        matrix[parameters["flipped"], 1, 1] = -1.0
        return matrix

    def at(self, strength: float) -> VerticalFlip:
        """The same with its probability scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"probability": self.probability * strength})

    def channels_fault(self, channels: int) -> str | None:
        return None


Motion = Shift | Rotation | RightAngle | HorizontalFlip | VerticalFlip
"""An invariance that is a map of the plane, and so composes with its neighbours."""


def applied(keys: Keys, probability: float) -> Tensor:
    """Whether an operation acts on each row: (N,) bool, true with the given probability."""
    return keys.uniform("applied") < probability


def together(first: Motion, second: Motion) -> bool:
    """Whether two neighbours are one resampling: what comes in at the edges must be the same."""
    fills = {motion.fill for motion in (first, second) if isinstance(motion, Shift | Rotation)}
    return len(fills) <= 1


def move(images: Tensor, motions: Sequence[tuple[Motion, Parameters]]) -> Tensor:
    """Apply neighbouring motions, in their order, as one map: (N,C,H,W) -> (N,C,H,W)."""
    matrix = torch.eye(3).expand(len(images), 3, 3)
    for motion, parameters in motions:
        matrix = matrix @ motion.matrix(parameters)
    fills = [motion.fill for motion, _ in motions if isinstance(motion, Shift | Rotation)]
    return resample(images, matrix, fills[0]) if fills else permute(images, matrix)


def resample(images: Tensor, matrix: Tensor, fill: float = 0.0) -> Tensor:
    """Bilinear values of ``images`` (N,C,H,W) at the mapped pixels; ``fill`` outside. Rows with no motion are exact.

    The canvas lies on an unbounded plane of ``fill``, so a pixel at the edge is a mixture of picture and fill.
    """
    height, width = images.shape[-2:]
    size = torch.tensor([width, height], dtype=matrix.dtype)
    theta = matrix[:, :2].clone()
    theta[:, :, :2] *= size[None, None, :] / size[None, :, None]  # pixels to the grid's units, halves of the canvas
    theta[:, :, 2] *= 2.0 / size
    grid = functional.affine_grid(theta.to(images), list(images.shape), align_corners=False)
    moved = (
        functional.grid_sample(images - fill, grid, mode="bilinear", padding_mode="zeros", align_corners=False) + fill
    )
    still = (matrix == torch.eye(3)).flatten(1).all(1).nonzero().flatten().to(images.device)
    return moved.index_copy_(0, still, images[still]) if len(still) else moved


def permute(images: Tensor, matrix: Tensor) -> Tensor:
    """Mirrors and right angles of ``images`` (N,C,H,W), as moves of whole pixels; quarter turns need H = W."""
    moved = images.clone()
    signs = matrix[:, :2, :2].round().long()
    # the eight symmetries of a square: swap x and y or not, then mirror x, y or both
    code = (signs[:, 0, 0] == 0).long() * 4 + (signs[:, 0].sum(-1) < 0).long() * 2 + (signs[:, 1].sum(-1) < 0).long()
    for value in range(1, 8):
        rows = (code == value).nonzero().flatten().to(images.device)
        if len(rows):
            part = images[rows]
            # out(x, y) = in(sx * (x or y), sy * (y or x)): mirror the input first, then swap
            mirrored = [axis for axis, flag in ((-1, value & 2), (-2, value & 1)) if flag]
            part = part.flip(mirrored) if mirrored else part
            moved[rows] = part.transpose(-1, -2) if value & 4 else part
    return moved
