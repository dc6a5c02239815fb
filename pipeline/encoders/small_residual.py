"""A small residual network for images of 16 to 96 pixels that trains on a CPU in minutes.

A 3x3 convolution at full size, halved by max-pooling, then basic residual blocks (He et al. 2016, figure 2: two 3x3
convolutions, and a 1x1 convolution beside them where width or size change), global mean pooling. With widths 32, 64,
128 and strides 1, 2, 2 it has 0.307 million parameters and, at 32x32, 12.9 million multiply-adds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from torch import Tensor, nn

from pipeline.spec import Rule, Spec

Norm = Callable[[int], nn.Module]


class ResidualBlock(nn.Module):
    """x (N, before, H, W) → (N, width, H / stride, W / stride)."""

    def __init__(self, before: int, width: int, stride: int, norm: Norm):
        super().__init__()
        self.conv1 = nn.Conv2d(before, width, 3, stride=stride, padding=1, bias=False)
        self.norm1 = norm(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm2 = norm(width)
        self.shortcut = nn.Sequential()
        if before != width or stride != 1:
            self.shortcut = nn.Sequential(nn.Conv2d(before, width, 1, stride=stride, bias=False), norm(width))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        out: Tensor = self.relu(y.add_(self.shortcut(x)))
        return out


class SmallResidualNetwork(nn.Module):
    """x (N, C, H, W) → h (N, dim); children ``stem``, ``block1`` … in order, then ``pool``."""

    def __init__(self, channels: int, widths: tuple[int, ...], strides: tuple[int, ...], norm: Norm):
        super().__init__()
        before = widths[0]
        self.stem = nn.Sequential(
            nn.Conv2d(channels, before, 3, padding=1, bias=False),
            norm(before),
            nn.MaxPool2d(2, ceil_mode=True),  # one pixel stays one
            nn.ReLU(inplace=True),  # commutes with the maximum, and has a quarter of the work behind it
        )
        for number, (width, stride) in enumerate(zip(widths, strides, strict=True), start=1):
            self.add_module(f"block{number}", ResidualBlock(before, width, stride, norm))
            before = width
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(1))
        self.dim = before

    def forward(self, x: Tensor) -> Tensor:
        for module in self.children():
            x = module(x)
        return x


class SmallResidual(Spec):
    """A 3x3 stem, 2x2 max-pooling, basic residual blocks; global mean pooling."""

    kind: Literal["small_residual"]
    widths: Annotated[tuple[Annotated[int, Field(ge=4, le=4096)], ...], Field(min_length=1)]
    """Channels after each block; the first is the stem's too, the last is the width of h. Multiples of ``groups``."""
    strides: Annotated[tuple[Annotated[int, Field(ge=1, le=4)], ...], Field(min_length=1)]
    """Stride of each block's first convolution, one a block; the stem has halved the image's side already."""
    groups: Annotated[int, Field(ge=1)] | None
    """Groups of the group normalisation; null: batch normalisation instead."""

    sides: ClassVar[int] = 2

    def rules(self) -> Iterator[Rule]:
        if len(self.strides) != len(self.widths):
            yield "strides", f"must name one stride a block: {len(self.widths)} of them"
        if self.groups is None:
            return
        for number, width in enumerate(self.widths):
            if width % min(self.groups, width):
                yield f"widths[{number}]", f"must be a multiple of groups ({self.groups})"

    def build(self, channels: int) -> nn.Module:
        """An untrained network for images of ``channels`` channels, drawn from torch's global generator."""
        groups = self.groups

        def norm(width: int) -> nn.Module:
            return nn.BatchNorm2d(width) if groups is None else nn.GroupNorm(min(groups, width), width)

        return SmallResidualNetwork(channels, self.widths, self.strides, norm)

    def batch_statistics(self) -> bool:
        """Whether a sample's h depends on the rest of its batch while training: with batch normalisation."""
        return self.groups is None
