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
from pipeline.views.parameter import Amount, Range, Span, draw, one_sided, towards, varies, within


class Affine(Spec):
    """Shear, zoom, turn and move the picture about its centre, each by a random amount."""

    kind: Literal["affine"] = "affine"
    degrees: Amount
    """largest angle to either side, in degrees, drawn uniformly; or the distribution of the angle, counter-clockwise"""
    pixels: Amount
    """largest shift each way, in pixels, drawn uniformly; or the distribution of the shift to the right, and down"""
    scale: Range
    """smallest and largest zoom, log-uniform, or its distribution; 1 leaves the size as it is"""
    shear: Amount
    """largest shear along x to either side, in degrees, drawn uniformly; or its distribution"""
    fill: float = Field(default=0.0, ge=0, le=1)
    """what comes in at the edges, in [0, 1]"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being moved at all"""

    @property
    def invertible(self) -> bool:
        """Turns, zooms and moves are undone by others; once the picture is also sheared, by no map of this kind."""
        return not varies(self.shear)

    @property
    def group(self) -> bool:
        """The same holds of two of them, one after the other."""
        return self.invertible

    @property
    def removes(self) -> frozenset[str]:
        """The factors whose range is not empty."""
        factors = {"orientation": varies(self.degrees), "position": varies(self.pixels)}
        factors |= {"scale": varies(self.scale, 1.0), "aspect": varies(self.shear)}
        return frozenset(name for name, removed in factors.items() if removed)

    def rules(self) -> Iterator[Rule]:
        yield from within("degrees", self.degrees, Span(-180, 180))
        yield from within("pixels", self.pixels, Span(-math.inf))
        yield from within("scale", self.scale, Span(0, open_low=True), "must be two zooms above 0 in rising order")
        yield from within("shear", self.shear, Span(-90, 90, open_low=True, open_high=True))

    def draw(self, keys: Keys) -> Parameters:
        """``degrees`` (N,) counter-clockwise, ``shift`` (N,2) right and down, ``scale`` and ``shear`` (N,), degrees.

        The picture is sheared and zoomed, then turned, then moved.
        """
        acts = applied(keys, self.probability)
        return {
            "degrees": draw(keys, "degrees", self.degrees) * acts,
            "shift": draw(keys, "shift", self.pixels, shape=(2,)) * acts[:, None],
            "scale": torch.where(acts, draw(keys, "scale", self.scale, log=True), 1.0),
            "shear": draw(keys, "shear", self.shear) * acts,
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
        scaled = {name: towards(getattr(self, name), 0.0, strength) for name in ("degrees", "pixels", "shear")}
        return self.model_copy(update={**scaled, "scale": towards(self.scale, 1.0, strength, log=True)})

    def channels_fault(self, channels: int) -> str | None:
        return None


class Perspective(Spec):
    """Draw the four corners inwards, each by its own random amount, and map the picture onto the quadrilateral."""

    kind: Literal["perspective"] = "perspective"
    distortion: Amount
    """largest way of a corner towards the centre, as a part of half the picture, for x and y, drawn uniformly from 0;
    or the distribution of that way"""
    fill: float = Field(default=0.0, ge=0, le=1)
    """what comes in at the edges, in [0, 1]"""
    probability: float = Field(default=0.5, ge=0, le=1)
    """of being distorted at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"viewpoint"})
    invertible: ClassVar[bool] = False  # corners only ever move inwards
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        yield from within("distortion", self.distortion, Span(0, 1, open_high=True))

    def draw(self, keys: Keys) -> Parameters:
        """``corners`` (N,4,2): ways inwards of top left, top right, bottom right, bottom left, in halves, x and y."""
        corners = draw(keys, "corners", one_sided(self.distortion), shape=(4, 2))
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
        return self.model_copy(update={"distortion": towards(self.distortion, 0.0, strength)})

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
