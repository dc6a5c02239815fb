"""Pictures: what check and audit ask of them. N pictures (N, C, H, W) in [0, 1]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional

from pipeline.check import features
from pipeline.check.shortcut import breakers, statistics
from pipeline.images import Input
from pipeline.modalities import image_controls
from pipeline.views import (
    Blur,
    Brightness,
    ChannelGain,
    ColorJitter,
    Contrast,
    Erase,
    Grayscale,
    HorizontalFlip,
    Hue,
    Invariance,
    Noise,
    ResizedCrop,
    RightAngle,
    Rotation,
    Saturation,
    Shift,
    Solarize,
    VerticalFlip,
)


@dataclass(frozen=True)
class ImageProof:
    """The questions, of pictures on one canvas."""

    contract: Input

    def features(self, batch: Tensor) -> dict[str, Tensor]:
        """Histograms, pooled pixels, random filters, gradients."""
        return features.features(batch)

    def statistics(self, batch: Tensor) -> dict[str, Tensor]:
        """Colours, corners, edges, the JPEG grid."""
        return statistics(batch)

    def breakers(self, statistic: str) -> Iterator[tuple[str, Invariance]]:
        """Crops, blurs and jitters."""
        return breakers(statistic, self.contract.channels)

    def drafts(self) -> Sequence[Invariance]:
        """The usual invariances of photographs."""
        return candidates(self.contract.height, self.contract.width)

    def controls(self, fill: float) -> Sequence[Invariance]:
        """Moves, parts, light and noise."""
        return image_controls.family(self._canvas(), fill)

    def mover(self, factor: str, fill: float) -> tuple[Invariance, str] | None:
        """One transformation a factor."""
        return image_controls.mover(factor, self._canvas(), fill)

    def raw(self, batch: Tensor, side: int) -> Tensor:
        """The pixels (N, C·H'·W'), pooled to at most ``side`` a side."""
        return functional.adaptive_avg_pool2d(batch, self._pooled(side)).flatten(1)

    def raw_again(self, rows: Tensor, side: int, smaller: int) -> Tensor:
        """Pooled pixels, pooled on."""
        return self.raw(rows.reshape(len(rows), self.contract.channels, *self._pooled(side)), smaller)

    def _pooled(self, side: int) -> tuple[int, int]:
        return min(side, self.contract.height), min(side, self.contract.width)

    def _canvas(self) -> image_controls.Canvas:
        return self.contract.channels, self.contract.height, self.contract.width


def candidates(height: int, width: int) -> list[Invariance]:
    """The invariances that are tried, in the order in which they would be applied."""
    return [
        ResizedCrop(area=(0.5, 1.0)),
        ResizedCrop(area=(0.2, 1.0)),
        Shift(pixels=max(1.0, round(min(height, width) / 16))),
        Rotation(degrees=15.0),
        Rotation(degrees=180.0),
        RightAngle(probability=1.0),
        HorizontalFlip(probability=0.5),
        VerticalFlip(probability=0.5),
        Brightness(amount=0.2),
        Contrast(amount=0.2),
        Saturation(amount=0.4),
        Hue(amount=0.1),
        Hue(amount=0.5),
        ColorJitter(brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1, probability=0.8),
        Grayscale(probability=0.2),
        ChannelGain(amount=0.2),
        Solarize(probability=0.2),
        Blur(sigma=(0.1, 1.0), probability=0.5),
        Noise(),
        Erase(probability=0.5),
    ]
