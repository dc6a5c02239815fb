"""The sizing family: a box of the picture, brought to the view's size. One of them may stand first in a list of
invariances; it then takes pictures of any size, where they are decoded, and fixes the size of everything after it.

Elsewhere in a list they act on the canvas. The resizing itself is ``image_resize.crop``.

N images (N,C,H,W), boxes (N,4) int64 as top, left, height, width in whole pixels; heights, widths (N,) of the pictures.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from pipeline.keys import Keys
from pipeline.spec import Rule, Spec
from pipeline.views.image_plane import Parameters, applied
from pipeline.views.image_resize import crop
from pipeline.views.parameter import Range, Span, bounds, draw, towards, within

TRIES = 10  # torchvision's: boxes drawn before a central one is taken


class ResizedCrop(Spec):
    """Cut a box of random area, shape and place (Szegedy et al. 2015; torchvision's ``RandomResizedCrop``)."""

    kind: Literal["resized_crop"] = "resized_crop"
    area: Range = (0.08, 1.0)
    """smallest and largest part of the picture's area, in (0, 1], or its distribution"""
    ratio: Range = (0.75, 4.0 / 3.0)
    """smallest and largest width / height of the box, in pixels, log-uniform; or its distribution"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being cropped at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"position", "scale", "aspect", "border"})
    invertible: ClassVar[bool] = False  # what lies outside the box is lost, so crops are no group either
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        pair = "must be two parts of the area in rising order, above 0 and up to 1"
        yield from within("area", self.area, Span(0, 1, open_low=True), pair)
        yield from within("ratio", self.ratio, Span(0, open_low=True), "must be two ratios above 0 in rising order")

    def draw(self, keys: Keys) -> Parameters:
        """``area``, ``ratio`` (N,10): tries; ``top``, ``left`` (N,): place of the box in [0, 1); ``cropped`` (N,)."""
        return {
            "area": draw(keys, "area", self.area, shape=(TRIES,)),
            "ratio": draw(keys, "ratio", self.ratio, shape=(TRIES,), log=True),
            "top": keys.uniform("top"),
            "left": keys.uniform("left"),
            "cropped": applied(keys, self.probability),
        }

    def boxes(self, parameters: Parameters, heights: Tensor, widths: Tensor, size: tuple[int, int]) -> Tensor:
        return random_boxes(parameters, heights, widths, bounds(self.ratio))

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        return crop_canvas(self, images, parameters)

    def at(self, strength: float) -> ResizedCrop:
        """The same with its ranges drawn in to the whole picture by ``strength`` in [0, 1]; 0 is the identity.

        A square is what the box's shape is drawn in to, so only 0 itself leaves a picture that is no square whole.
        """
        area, ratio = towards(self.area, 1.0, strength), towards(self.ratio, 1.0, strength, log=True)
        probability = self.probability if strength > 0 else 0.0
        return self.model_copy(update={"area": area, "ratio": ratio, "probability": probability})

    def channels_fault(self, channels: int) -> str | None:
        return None

    def size_fault(self, height: int, width: int) -> str | None:
        area = bounds(self.area)
        if area[1] * height * width >= 1:
            return None
        return f"area = {list(area)} of {height} x {width} is less than one pixel; use a larger part"


class Resize(Spec):
    """The whole picture, each side scaled to the view's. Nothing is drawn; on the canvas it is the identity."""

    kind: Literal["resize"] = "resize"

    removes: ClassVar[frozenset[str]] = frozenset({"scale", "aspect"})  # of pictures of several sizes
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def draw(self, keys: Keys) -> Parameters:
        """Nothing."""
        return {}

    def boxes(self, parameters: Parameters, heights: Tensor, widths: Tensor, size: tuple[int, int]) -> Tensor:
        return torch.stack([torch.zeros_like(heights), torch.zeros_like(widths), heights, widths], dim=1)

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        return crop_canvas(self, images, parameters)

    def at(self, strength: float) -> Resize:
        """Itself: it has no strength."""
        return self

    def channels_fault(self, channels: int) -> str | None:
        return None

    def size_fault(self, height: int, width: int) -> str | None:
        return None


class CentreCrop(Spec):
    """The middle of the picture, of the view's shape. Nothing is drawn.

    A share of 0.875 is torchvision's ``Resize(256)`` and ``CenterCrop(224)``, in one resizing of whole pixels.
    """

    kind: Literal["centre_crop"] = "centre_crop"
    share: float = Field(default=0.875, gt=0, le=1)
    """side of the box, as a part of the largest box of the view's shape: for square views, of the shorter side"""

    removes: ClassVar[frozenset[str]] = frozenset({"scale", "border"})
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def draw(self, keys: Keys) -> Parameters:
        """Nothing."""
        return {}

    def boxes(self, parameters: Parameters, heights: Tensor, widths: Tensor, size: tuple[int, int]) -> Tensor:
        return central_boxes(heights, widths, size, self.share)

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        return crop_canvas(self, images, parameters)

    def at(self, strength: float) -> CentreCrop:
        """The same with its share drawn in to 1 by ``strength`` in [0, 1]; 0 is the identity on the canvas."""
        return self.model_copy(update={"share": 1.0 - strength + self.share * strength})

    def channels_fault(self, channels: int) -> str | None:
        return None

    def size_fault(self, height: int, width: int) -> str | None:
        if self.share * min(height, width) >= 1:
            return None
        return f"share = {self.share:g} of {height} x {width} is less than one pixel; use a larger part"


Sizing = ResizedCrop | Resize | CentreCrop
"""What has ``boxes(parameters, heights, widths, size)``: the box (N,4) of each picture that becomes the view."""


def crop_canvas(invariance: Sizing, images: Tensor, parameters: Parameters) -> Tensor:
    """Crop ``images`` (N,C,H,W) and bring them back to their own size."""
    count, (height, width) = len(images), images.shape[-2:]
    heights, widths = torch.full((count,), height), torch.full((count,), width)
    return crop(images, invariance.boxes(parameters, heights, widths, (height, width)), (height, width))


def random_boxes(parameters: Parameters, heights: Tensor, widths: Tensor, ratio: tuple[float, float]) -> Tensor:
    """The box of each sample: (N,4), the first of its tries that fits into the picture (``RandomResizedCrop``).

    If none does, it is a central box: the picture's larger side cut until width / height is within ``ratio``. Rows
    that are not ``cropped`` keep the whole picture.
    """
    box, found = fitting_boxes(parameters, heights, widths)
    if not bool(found.all()):
        tall = (widths.double() / ratio[0]).round().long().clamp(min=1).minimum(heights)
        wide = (heights.double() * ratio[1]).round().long().clamp(min=1).minimum(widths)
        central = torch.stack([(heights - tall) // 2, (widths - wide) // 2, tall, wide], dim=1)
        box = torch.where(found[:, None], box, central)
    whole = torch.stack([torch.zeros_like(heights), torch.zeros_like(widths), heights, widths], dim=1)
    return torch.where(parameters["cropped"][:, None], box, whole)


def fitting_boxes(parameters: Parameters, heights: Tensor, widths: Tensor) -> tuple[Tensor, Tensor]:
    """The first tries of ``area`` and ``ratio`` (N,TRIES) that fit into the pictures: boxes (N,4); whether any does."""
    area, ratio = parameters["area"].double(), parameters["ratio"].double()
    area = area * (heights * widths)[:, None]  # pixels
    tall, wide = (area / ratio).sqrt().round().long(), (area * ratio).sqrt().round().long()
    fits = (tall > 0) & (tall <= heights[:, None]) & (wide > 0) & (wide <= widths[:, None])
    first = fits.int().argmax(1, keepdim=True)
    tall, wide = tall.gather(1, first)[:, 0], wide.gather(1, first)[:, 0]  # (N,)
    top = (parameters["top"] * (heights - tall + 1)).floor().long().minimum(heights - tall)
    left = (parameters["left"] * (widths - wide + 1)).floor().long().minimum(widths - wide)
    return torch.stack([top, left, tall, wide], dim=1), fits.any(1)


def central_boxes(heights: Tensor, widths: Tensor, size: tuple[int, int], share: float) -> Tensor:
    """Central boxes (N,4) of the shape of ``size``, ``share`` times as large as fits; at least a pixel."""
    rows, columns = size
    scale = share * torch.minimum(heights.double() / rows, widths.double() / columns)  # picture's pixels in a view's
    tall = (scale * rows).round().long().clamp(min=1)
    wide = (scale * columns).round().long().clamp(min=1)
    top, left = ((heights - tall) / 2).round().long(), ((widths - wide) / 2).round().long()
    return torch.stack([top, left, tall, wide], dim=1)
