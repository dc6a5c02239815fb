"""Resized crop: a part of the picture, at its own size and shape, brought back to the canvas (Szegedy et al. 2015).

Per-sample boxes, one batch: resizing is linear and separable, so a crop is two small matrices a sample, built from
the antialiased triangle filter of torchvision and Pillow, and applied as two batched products. Large pictures on a CPU
go one by one instead, where a filter that skips its zeros is faster (4 times at 224 pixels, 0.8 times at 32).

N images (N,C,H,W), boxes (N,4) as top, left, height, width in whole pixels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from pipeline.keys import Keys
from pipeline.spec import Rule, Spec
from pipeline.views.image_plane import Parameters, applied, filtered

TRIES = 10  # torchvision's: boxes drawn before the whole picture is taken
LARGE = 48 * 48  # pixels from which pictures on a CPU go one by one


class ResizedCrop(Spec):
    """Cut a box of random area and shape and resize it to the whole canvas."""

    kind: Literal["resized_crop"] = "resized_crop"
    area: tuple[float, float] = (0.08, 1.0)
    """smallest and largest part of the picture's area, in (0, 1]"""
    ratio: tuple[float, float] = (0.75, 4.0 / 3.0)
    """smallest and largest width / height of the box, relative to the picture's (log-uniform)"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being cropped at all"""

    removes: ClassVar[frozenset[str]] = frozenset({"position", "scale", "aspect"})
    invertible: ClassVar[bool] = False  # what lies outside the box is lost, so crops are no group either
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        if not 0 < self.area[0] <= self.area[1] <= 1:
            yield "area", "must be two parts of the area in rising order, above 0 and up to 1"
        if not 0 < self.ratio[0] <= self.ratio[1]:
            yield "ratio", "must be two ratios above 0 in rising order"

    def draw(self, keys: Keys) -> Parameters:
        """``area``, ``ratio`` (N,10): tries; ``top``, ``left`` (N,): place of the box in [0, 1); ``cropped`` (N,)."""
        low, high = (math.log(ratio) for ratio in self.ratio)
        return {
            "area": keys.uniform("area", *self.area, shape=(TRIES,)),
            "ratio": keys.uniform("ratio", low, high, shape=(TRIES,)).exp(),
            "top": keys.uniform("top"),
            "left": keys.uniform("left"),
            "cropped": applied(keys, self.probability),
        }

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        return crop(images, boxes(parameters, images.shape[-2], images.shape[-1]))

    def at(self, strength: float) -> ResizedCrop:
        """The same with its ranges drawn in to the whole picture by ``strength`` in [0, 1]; 0 is the identity."""
        area = tuple(1.0 - strength + part * strength for part in self.area)
        return self.model_copy(update={"area": area, "ratio": tuple(ratio**strength for ratio in self.ratio)})

    def channels_fault(self, channels: int) -> str | None:
        return None


def boxes(parameters: Parameters, height: int, width: int) -> Tensor:
    """The box of each sample: (N,4) int64, the first try that fits into the picture, else the whole picture."""
    area, ratio = parameters["area"].double(), parameters["ratio"].double()  # (N,TRIES)
    heights = (height * (area / ratio).sqrt()).round().long()
    widths = (width * (area * ratio).sqrt()).round().long()
    fits = (heights > 0) & (heights <= height) & (widths > 0) & (widths <= width) & parameters["cropped"][:, None]
    first = fits.int().argmax(1, keepdim=True)
    found = fits.any(1)
    box_height = torch.where(found, heights.gather(1, first)[:, 0], height)
    box_width = torch.where(found, widths.gather(1, first)[:, 0], width)
    top = (parameters["top"] * (height - box_height + 1)).floor().long().minimum(height - box_height)
    left = (parameters["left"] * (width - box_width + 1)).floor().long().minimum(width - box_width)
    return torch.stack([top, left, box_height, box_width], dim=1)


def crop(images: Tensor, box: Tensor, size: tuple[int, int] | None = None) -> Tensor:
    """The boxes (N,4) of ``images`` (N,C,H,W), resized to ``size`` (default H, W), bilinear and antialiased."""
    height, width = images.shape[-2:]
    rows, columns = size or (height, width)
    if images.device.type == "cpu" and height * width > LARGE:
        boxed = zip(images, box.tolist(), strict=True)
        return torch.cat([_crop_one(image, edges, (rows, columns)) for image, edges in boxed])
    box = box.to(images.device)
    down = filters(box[:, 0], box[:, 2], height, rows).to(images.dtype)  # (N,rows,H)
    across = filters(box[:, 1], box[:, 3], width, columns).to(images.dtype)  # (N,columns,W)
    return filtered(images, down, across)


def _crop_one(image: Tensor, box: Sequence[int], size: tuple[int, int]) -> Tensor:
    """One box (4,) of one picture, resized: (C,H,W) -> (1,C,rows,columns)."""
    top, left, height, width = box
    part = image[None, :, top : top + height, left : left + width]
    return functional.interpolate(part, size=size, mode="bilinear", antialias=True)


def filters(start: Tensor, length: Tensor, count: int, out: int) -> Tensor:
    """Matrices (N,out,count) that resize pixels start .. start+length-1 of an axis of ``count`` pixels to ``out``.

    The weights of ``torch.nn.functional.interpolate(mode="bilinear", antialias=True)``: a triangle as wide as the
    larger of an input and an output pixel, normalised within the box.
    """
    scale = length.float() / out  # input pixels in an output pixel
    centre = scale[:, None] * (torch.arange(out, device=start.device) + 0.5)  # (N,out), from the box's start
    place = torch.arange(count, device=start.device) + 0.5 - start[:, None]  # (N,count), likewise
    place = torch.where((place > 0) & (place < length[:, None]), place, torch.inf)
    weights = (place[:, None, :] - centre[:, :, None]).abs_()  # (N,out,count)
    weights = weights.div_(-scale.clamp(min=1.0)[:, None, None]).add_(1.0).clamp_(min=0.0)
    return weights.div_(weights.sum(-1, keepdim=True))
