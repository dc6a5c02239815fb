"""A small convolutional network over time, for series and waveforms, that trains on a CPU in a minute.

The one-dimensional sister of ``small``: one convolution a stage, group normalisation (Wu and He 2018), ReLU, global
mean pooling. Long first strides read raw sound (Dai et al., "Very deep convolutional networks for raw waveforms",
ICASSP 2017: kernel 80, stride 4 at 8 kHz).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from torch import Tensor, nn

from pipeline.spec import Rule, Spec


class Small1dNetwork(nn.Module):
    """x (N, C, T) → h (N, dim); children ``stage1`` … in order, then ``pool``."""

    def __init__(
        self, channels: int, widths: tuple[int, ...], kernels: tuple[int, ...], strides: tuple[int, ...], groups: int
    ):
        super().__init__()
        before = channels
        for number, (width, kernel, stride) in enumerate(zip(widths, kernels, strides, strict=True), start=1):
            stage = nn.Sequential(
                nn.Conv1d(before, width, kernel, stride=stride, padding=kernel // 2, bias=False),
                nn.GroupNorm(min(groups, width), width),
                nn.ReLU(inplace=True),
            )
            self.add_module(f"stage{number}", stage)
            before = width
        self.pool = nn.Sequential(nn.AdaptiveAvgPool1d(1), nn.Flatten(1))
        self.dim = before

    def forward(self, x: Tensor) -> Tensor:
        for module in self.children():
            x = module(x)
        return x


class Small1d(Spec):
    """Convolution over time, group norm, ReLU a stage; global mean pooling."""

    kind: Literal["small_1d"]
    widths: Annotated[tuple[Annotated[int, Field(ge=4, le=4096)], ...], Field(min_length=1)]
    """Channels after each stage; the last is the width of h. Multiples of ``groups``."""
    kernels: Annotated[tuple[Annotated[int, Field(ge=1, le=1024)], ...], Field(min_length=1)]
    """Steps that each stage's convolution sees, one a stage."""
    strides: Annotated[tuple[Annotated[int, Field(ge=1, le=64)], ...], Field(min_length=1)]
    """Stride of each stage's convolution, one a stage."""
    groups: int = Field(ge=1)
    """Groups of the group normalisation."""

    sides: ClassVar[int] = 1

    def rules(self) -> Iterator[Rule]:
        for name in ("kernels", "strides"):
            if len(getattr(self, name)) != len(self.widths):
                yield name, f"must name one a stage: {len(self.widths)} of them"
        for number, width in enumerate(self.widths):
            if width % min(self.groups, width):
                yield f"widths[{number}]", f"must be a multiple of groups ({self.groups})"

    def build(self, channels: int) -> nn.Module:
        """An untrained network for waves of ``channels`` channels, drawn from torch's global generator."""
        return Small1dNetwork(channels, self.widths, self.kernels, self.strides, self.groups)

    def batch_statistics(self) -> bool:
        """Whether a sample's h depends on the rest of its batch while training."""
        return False
