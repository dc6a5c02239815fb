"""Invariances to how a picture is projected: affine maps (turn, move, zoom, shear at once) and changes of perspective.

N images (N,C,H,W); matrices as in image_plane.py.
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
from pipeline.views.image_plane import Parameters, applied, resample


class Affine(Spec):
    """Shear, zoom, turn and move the picture about its centre, each by a uniform amount (the zoom log-uniform)."""

    kind: Literal["affine"] = "affine"
    degrees: float = Field(ge=0, le=180)
    """largest angle to either side, in degrees"""
    pixels: float = Field(ge=0)
    """largest shift each way, in pixels"""
    scale: tuple[float, float]
    """smallest and largest zoom; 1 leaves the size as it is"""
    shear: float = Field(ge=0, lt=90)
    """largest shear along x to either side, in degrees"""
    fill: float = Field(default=0.0, ge=0, le=1)
    """what comes in at the edges, in [0, 1]"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being moved at all"""

    invertible: ClassVar[bool] = True
    group: ClassVar[bool] = True

    @property
    def removes(self) -> frozenset[str]:
        """The factors whose range is not empty."""
        factors = {"orientation": self.degrees > 0, "position": self.pixels > 0}
        factors |= {"scale": self.scale != (1.0, 1.0), "aspect": self.shear > 0}
        return frozenset(name for name, removed in factors.items() if removed)

    def rules(self) -> Iterator[Rule]:
        if not 0 < self.scale[0] <= self.scale[1]:
            yield "scale", "must be two zooms above 0 in rising order"

    def draw(self, keys: Keys) -> Parameters:
        """``degrees`` (N,) counter-clockwise, ``shift`` (N,2) right and down, ``scale`` and ``shear`` (N,), degrees.

        The picture is sheared and zoomed, then turned, then moved.
        """
        acts = applied(keys, self.probability).float()
        log_scale = keys.uniform("scale", math.log(self.scale[0]), math.log(self.scale[1]))
        return {
            "degrees": keys.uniform("degrees", -self.degrees, self.degrees) * acts,
            "shift": keys.uniform("shift", -self.pixels, self.pixels, shape=(2,)) * acts[:, None],
            "scale": (log_scale * acts).exp(),
            "shear": keys.uniform("shear", -self.shear, self.shear) * acts,
        }

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        return resample(images, self.matrix(parameters, *images.shape[-2:]), self.fill)

    def matrix(self, parameters: Parameters, height: int, width: int) -> Tensor:
        angle, tangent = parameters["degrees"].deg2rad(), parameters["shear"].deg2rad().tan()
        cos, sin = angle.cos(), angle.sin()
        rows = [torch.stack([cos + sin * tangent, cos * tangent - sin], 1), torch.stack([sin, cos], 1)]
        linear = torch.stack(rows, dim=1) / parameters["scale"][:, None, None]  # (N,2,2)
        matrix = torch.eye(3).repeat(len(angle), 1, 1)
        matrix[:, :2, :2] = linear
        matrix[:, :2, 2:] = -linear @ parameters["shift"][:, :, None]
        return matrix

    def at(self, strength: float) -> Affine:
        """The same with its ranges scaled by ``strength`` in [0, 1]; 0 is the identity."""
        scaled = {name: getattr(self, name) * strength for name in ("degrees", "pixels", "shear")}
        return self.model_copy(update={**scaled, "scale": tuple(zoom**strength for zoom in self.scale)})

    def channels_fault(self, channels: int) -> str | None:
        return None


class Perspective(Spec):
    """Draw the four corners inwards, each by its own uniform amount, and map the picture onto the quadrilateral."""

    kind: Literal["perspective"] = "perspective"
    distortion: float = Field(ge=0, lt=1)
    """largest way of a corner towards the centre, as a part of half the picture, for x and y"""
    fill: float = Field(default=0.0, ge=0, le=1)
    """what comes in at the edges, in [0, 1]"""
    probability: float = Field(default=0.5, ge=0, le=1)
    """of being distorted at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"viewpoint"})
    invertible: ClassVar[bool] = True
    group: ClassVar[bool] = False  # two of them may leave the family: corners only ever move inwards

    def draw(self, keys: Keys) -> Parameters:
        """``corners`` (N,4,2): ways inwards of top left, top right, bottom right, bottom left, in halves, x and y."""
        corners = keys.uniform("corners", 0.0, self.distortion, shape=(4, 2))
        return {"corners": corners * applied(keys, self.probability)[:, None, None]}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        return resample(images, self.matrix(parameters, *images.shape[-2:]), self.fill)

    def matrix(self, parameters: Parameters, height: int, width: int) -> Tensor:
        corners = parameters["corners"].double()
        edges = torch.tensor([[-1, -1], [1, -1], [1, 1], [-1, 1]], dtype=torch.float64)
        half = torch.tensor([(width - 1) / 2, (height - 1) / 2], dtype=torch.float64).clamp(min=0.5)
        source = (edges * half).expand_as(corners)
        solved = homography(edges * half * (1.0 - corners), source).float()
        still = (corners == 0).flatten(1).all(1)
        return torch.where(still[:, None, None], torch.eye(3), solved)

    def at(self, strength: float) -> Perspective:
        """The same with its range scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"distortion": self.distortion * strength})

    def channels_fault(self, channels: int) -> str | None:
        return None


def homography(points: Tensor, images: Tensor) -> Tensor:
    """The projective maps (N,3,3), lower right entry 1, that take ``points`` (N,4,2) to ``images`` (N,4,2)."""
    x, y = points.unbind(-1)
    u, v = images.unbind(-1)
    one, zero = torch.ones_like(x), torch.zeros_like(x)
    first = torch.stack([x, y, one, zero, zero, zero, -u * x, -u * y], dim=-1)  # (N,4,8)
    second = torch.stack([zero, zero, zero, x, y, one, -v * x, -v * y], dim=-1)
    solved = torch.linalg.solve(torch.cat([first, second], dim=1), torch.cat([u, v], dim=1))  # (N,8)
    return torch.cat([solved, torch.ones_like(solved[:, :1])], dim=1).reshape(-1, 3, 3)
