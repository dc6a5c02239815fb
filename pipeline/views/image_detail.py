"""Invariances to fine detail: Gaussian blur and noise.

N images (N,C,H,W) with values in [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from pipeline.keys import Keys, normal_field
from pipeline.spec import Rule, Spec
from pipeline.views.image_blur import blur
from pipeline.views.image_plane import Parameters, applied
from pipeline.views.parameter import Range, Span, bounds, draw, towards, within


class Blur(Spec):
    """Gaussian blur of a random width; the picture is continued by reflection."""

    kind: Literal["blur"] = "blur"
    sigma: Range = (0.1, 2.0)
    """smallest and largest standard deviation, in pixels, or its distribution"""
    probability: float = Field(default=0.5, ge=0, le=1)
    """of being blurred"""

    removes: ClassVar[frozenset[str]] = frozenset({"texture", "sharpness"})
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        yield from within("sigma", self.sigma, Span(0), "must be two widths in pixels in rising order, 0 or more")

    def draw(self, keys: Keys) -> Parameters:
        """``sigma`` (N,): pixels, 0 for no blur."""
        return {"sigma": draw(keys, "sigma", self.sigma) * applied(keys, self.probability)}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        return blur(images, parameters["sigma"], self.radius)

    @property
    def radius(self) -> int:
        """Of the kernel: pixels on each side of the middle one."""
        return math.ceil(4 * bounds(self.sigma)[1])

    def at(self, strength: float) -> Blur:
        """The same with its range scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"sigma": towards(self.sigma, 0.0, strength)})

    def channels_fault(self, channels: int) -> str | None:
        return None


class Noise(Spec):
    """Independent Gaussian noise on every pixel and channel, cut to [0, 1]."""

    kind: Literal["noise"] = "noise"
    std: Range = (0.0, 0.1)
    """smallest and largest standard deviation, where the picture's values span [0, 1], or its distribution"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of noise being added"""

    removes: ClassVar[frozenset[str]] = frozenset({"noise"})
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        yield from within("std", self.std, Span(0), "must be two standard deviations in rising order, 0 or more")

    def draw(self, keys: Keys) -> Parameters:
        """``std`` (N,), 0 for no noise; ``word`` (N,) int64: the key of the pixels' noise."""
        word = torch.from_numpy(keys.bits("word").view(np.int64))
        return {"std": draw(keys, "std", self.std) * applied(keys, self.probability), "word": word}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        return noise(images, parameters["std"], parameters["word"])

    def at(self, strength: float) -> Noise:
        """The same with its range scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"std": towards(self.std, 0.0, strength)})

    def channels_fault(self, channels: int) -> str | None:
        return None


def noise(images: Tensor, std: Tensor, word: Tensor) -> Tensor:
    """Add noise of ``std`` (N,), keyed by ``word`` (N,) int64, to ``images`` (N,C,H,W) and cut to [0, 1]."""
    rows = (std > 0).nonzero().flatten()
    where = rows.to(images.device)
    field = normal_field(word[rows].to(images.device), tuple(images.shape[1:])).to(images.dtype)
    noisy = field.mul_(std[rows].to(images)[:, None, None, None]).add_(images.index_select(0, where)).clamp_(0.0, 1.0)
    return images.index_copy(0, where, noisy)
