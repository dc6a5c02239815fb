"""Invariances to damage: a part erased, artefacts of JPEG.

N images (N,C,H,W) with values in [0, 1].
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field
from torch import Tensor

from pipeline.keys import Keys
from pipeline.spec import Rule, Spec
from pipeline.views.image_crop import TRIES, fitting_boxes
from pipeline.views.image_plane import Parameters, applied
from pipeline.views.parameter import CountRange, Range, Span, draw, towards, within


class Erase(Spec):
    """Cover a box of random area and shape (Zhong et al. 2017, "Random erasing")."""

    kind: Literal["erase"] = "erase"
    area: Range = (0.02, 0.33)
    """smallest and largest part of the picture's area, from 0 to below 1, or its distribution"""
    ratio: Range = (0.3, 3.3)
    """smallest and largest width / height of the box, in pixels, log-uniform; or its distribution"""
    fill: float = Field(default=0.0, ge=0, le=1)
    """what it is covered with, in [0, 1]"""
    probability: float = Field(default=0.5, ge=0, le=1)
    """of any part being covered"""

    removes: ClassVar[frozenset[str]] = frozenset({"occlusion"})
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        pair = "must be two parts of the area in rising order, from 0 to below 1"
        yield from within("area", self.area, Span(0, 1, open_high=True), pair)
        yield from within("ratio", self.ratio, Span(0, open_low=True), "must be two ratios above 0 in rising order")

    def draw(self, keys: Keys) -> Parameters:
        """As a resized crop's: tries of ``area`` and ``ratio`` (N,10), ``top``, ``left`` (N,); ``erased`` (N,)."""
        return {
            "area": draw(keys, "area", self.area, shape=(TRIES,)),
            "ratio": draw(keys, "ratio", self.ratio, shape=(TRIES,), log=True),
            "top": keys.uniform("top"),
            "left": keys.uniform("left"),
            "erased": applied(keys, self.probability),
        }

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        height, width = images.shape[-2:]
        sides = torch.full((len(images),), height), torch.full((len(images),), width)
        box, found = fitting_boxes(parameters, *sides)
        top, left, tall, wide = box.unbind(1)
        acts = parameters["erased"] & found
        down, across = torch.arange(height), torch.arange(width)
        rows = (down >= top[:, None]) & (down < (top + tall)[:, None]) & acts[:, None]  # (N,H)
        columns = (across >= left[:, None]) & (across < (left + wide)[:, None])  # (N,W)
        covered = (rows[:, :, None] & columns[:, None, :])[:, None].to(images.device)
        return images.masked_fill(covered, self.fill)

    def at(self, strength: float) -> Erase:
        """The same with its areas scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"area": towards(self.area, 0.0, strength)})

    def channels_fault(self, channels: int) -> str | None:
        return None


class Jpeg(Spec):
    """Store the picture as JPEG of a random quality and read it again. One by one, on the CPU."""

    kind: Literal["jpeg"] = "jpeg"
    quality: CountRange
    """lowest and highest quality, from 1 to 100, or its distribution"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being stored so"""

    removes: ClassVar[frozenset[str]] = frozenset({"compression"})
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        pair = "must be two qualities in rising order, from 1 to 100"
        yield from within("quality", self.quality, Span(1, 100), pair)

    def draw(self, keys: Keys) -> Parameters:
        """``quality`` (N,) int64, 0 for a picture that is left alone."""
        if isinstance(self.quality, tuple):
            quality = keys.integers("quality", self.quality[0], self.quality[1] + 1)
        else:
            quality = draw(keys, "quality", self.quality).round().long()
        return {"quality": quality * applied(keys, self.probability)}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        rows = parameters["quality"].nonzero().flatten()
        where = rows.to(images.device)
        pixels = (
            (images.index_select(0, where) * 255.0)
            .round()
            .clamp(0, 255)
            .to(torch.uint8)
            .permute(0, 2, 3, 1)
            .cpu()
            .numpy()
        )
        read = [store(*pair) for pair in zip(pixels, parameters["quality"][rows].tolist(), strict=True)]
        if not read:
            return images
        return images.index_copy(0, where, torch.from_numpy(np.stack(read)).to(images).permute(0, 3, 1, 2) / 255.0)

    def at(self, strength: float) -> Jpeg:
        """The same with its qualities drawn up to 100 by ``strength`` in [0, 1]; 0 is the identity."""
        quality = towards(self.quality, 100.0, strength)
        if isinstance(quality, tuple):
            quality = round(quality[0]), round(quality[1])
        return self.model_copy(update={"quality": quality, "probability": self.probability if strength else 0.0})

    def channels_fault(self, channels: int) -> str | None:
        return None if channels in (1, 3) else f"needs 1 or 3 channels, the data has {channels}"


def store(pixels: NDArray[np.uint8], quality: int) -> NDArray[np.uint8]:
    """What is read back of one picture (H,W,C) that was stored as JPEG, C = 1 or 3."""
    file = io.BytesIO()
    Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels).save(file, "jpeg", quality=quality)
    return np.asarray(Image.open(file)).reshape(pixels.shape)
