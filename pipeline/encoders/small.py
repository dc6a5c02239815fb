"""A small convolutional network that trains on a CPU in a minute.

One 3x3 convolution a stage, group normalisation (Wu & He 2018: no statistics over the batch, so the loss of one
sample depends on no other through the encoder), ReLU, stride 2 from the second stage on, global mean pooling.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from torch import Tensor, nn

from pipeline.spec import Rule, Spec


class SmallNetwork(nn.Module):
    """x (N, C, H, W) → h (N, dim); children ``stage1`` … in order, then ``pool``."""

    def __init__(self, channels: int, widths: tuple[int, ...], groups: int, strides: tuple[int, ...]):
        super().__init__()
        before = channels
        for number, (width, stride) in enumerate(zip(widths, strides, strict=True), start=1):
            stage = nn.Sequential(
                nn.Conv2d(before, width, 3, stride=stride, padding=1, bias=False),
                nn.GroupNorm(min(groups, width), width),
                nn.ReLU(inplace=True),
            )
            self.add_module(f"stage{number}", stage)
            before = width
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(1))
        self.dim = before

    def forward(self, x: Tensor) -> Tensor:
        for module in self.children():
            x = module(x)
        return x


class Small(Spec):
    """Convolution, group norm, ReLU a stage; global mean pooling."""

    kind: Literal["small"]
    widths: Annotated[tuple[Annotated[int, Field(ge=4, le=4096)], ...], Field(min_length=1)]
    """Channels after each stage; the last is the width of h. Multiples of ``groups``."""
    strides: Annotated[tuple[Annotated[int, Field(ge=1, le=4)], ...], Field(min_length=1)]
    """Stride of each stage's convolution, one a stage; their product should stay below the image's side."""
    groups: int = Field(ge=1)
    """Groups of the group normalisation."""

    sides: ClassVar[int] = 2

    def rules(self) -> Iterator[Rule]:
        if len(self.strides) != len(self.widths):
            yield "strides", f"must name one stride a stage: {len(self.widths)} of them"
        for number, width in enumerate(self.widths):
            if width % min(self.groups, width):
                yield f"widths[{number}]", f"must be a multiple of groups ({self.groups})"

    def build(self, channels: int) -> nn.Module:
        """An untrained network for images of ``channels`` channels, drawn from torch's global generator."""
        return SmallNetwork(channels, self.widths, self.groups, self.strides)

    def batch_statistics(self) -> bool:
        """Whether a sample's h depends on the rest of its batch while training."""
        return False
