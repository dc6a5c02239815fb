"""Invariances to how channels are mixed: a random matrix near the identity, or the way towards a given one.

Every pixel's channels are one vector, which a matrix of the picture is multiplied with: cameras, stains and scanners
differ so. Any number of channels.

N images (N,C,H,W) with values in [0, 1]; matrices (N,C,C), row c what channel c becomes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from pipeline.keys import Keys, normal_field
from pipeline.spec import Rule, Spec
from pipeline.views.image_plane import Parameters, applied
from pipeline.views.parameter import Amount, Span, draw, one_sided, towards, within

REMOVED = frozenset({"brightness", "hue", "saturation", "spectrum"})


class ColorMatrix(Spec):
    """Multiply the channels of each pixel by the identity plus normal noise: another camera, another stain."""

    kind: Literal["color_matrix"] = "color_matrix"
    spread: float = Field(ge=0, le=1)
    """standard deviation of each entry of the matrix about the identity's"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being changed at all"""

    removes: ClassVar[frozenset[str]] = REMOVED
    invertible: ClassVar[bool] = False  # values are cut at 0 and 1
    group: ClassVar[bool] = False

    def draw(self, keys: Keys) -> Parameters:
        """``acts`` (N,) bool; ``word`` (N,) int64: the key of the matrix."""
        return {"acts": applied(keys, self.probability), "word": torch.from_numpy(keys.bits("word").view(np.int64))}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        channels = images.shape[1]
        change = self.spread * normal_field(parameters["word"], (channels, channels))
        return mix_channels(images, torch.eye(channels) + change * parameters["acts"][:, None, None])

    def at(self, strength: float) -> ColorMatrix:
        """The same with its spread scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"spread": self.spread * strength})

    def channels_fault(self, channels: int) -> str | None:
        return None


class ChannelMix(Spec):
    """Mix the channels of each pixel towards a given matrix, by a random part of the way."""

    kind: Literal["channel_mix"] = "channel_mix"
    rows: tuple[tuple[float, ...], ...] = Field(min_length=1)
    """the matrix at the end of the way: a row for each channel, the share of every channel in it"""
    amount: Amount = 1.0
    """largest part of the way, up to 1, drawn uniformly from 0; or the distribution of that part"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being changed at all"""

    removes: ClassVar[frozenset[str]] = REMOVED
    invertible: ClassVar[bool] = False  # values are cut at 0 and 1
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.rows):
                yield f"rows[{number}]", f"must have as many numbers as there are rows: {len(self.rows)}"
        yield from within("amount", self.amount, Span(0, 1))

    def draw(self, keys: Keys) -> Parameters:
        """``part`` (N,): of the way from the identity to the matrix."""
        return {"part": draw(keys, "part", one_sided(self.amount)) * applied(keys, self.probability)}

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        identity = torch.eye(len(self.rows))
        return mix_channels(images, torch.lerp(identity, torch.tensor(self.rows), parameters["part"][:, None, None]))

    def at(self, strength: float) -> ChannelMix:
        """The same with its way scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"amount": towards(self.amount, 0.0, strength)})

    def channels_fault(self, channels: int) -> str | None:
        if channels == len(self.rows):
            return None
        return f"rows = {len(self.rows)} x {len(self.rows)}, but the data has {channels} channels; give a row for each"


def mix_channels(images: Tensor, matrix: Tensor) -> Tensor:
    """``matrix`` (N,C,C) times the channels of ``images`` (N,C,H,W), cut to [0, 1]; an identity changes no bit."""
    still = (matrix == torch.eye(matrix.shape[-1])).flatten(1).all(1).nonzero().flatten().to(images.device)
    mixed = torch.bmm(matrix.to(images), images.flatten(2)).clamp_(0.0, 1.0).view(images.shape)
    return mixed.index_copy_(0, still, images.index_select(0, still)) if len(still) else mixed
