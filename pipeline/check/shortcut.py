"""*Shortcut*: one trivial statistic that survives both views and finds the partner without looking at what is shown.

Chen et al. 2020 (SimCLR, section 3.2): crops of one photograph share their colours, and a network that reads the colour
histogram alone has solved the task. Whatever statistic matches most partners is a candidate; the invariances that
would break it are tried, and told with what they leave.

Legend: n pictures, C channels, D numbers of a statistic.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

from pipeline.check.features import joint_histogram
from pipeline.views import Blur, Brightness, ChannelGain, ColorJitter, Compose, Contrast, Invariance, ResizedCrop

CORNER = 5  # one part in so many of a side
GRID = 8  # pixels of a JPEG block


def statistics(images: Tensor) -> dict[str, Tensor]:
    """Every trivial statistic of images (n, C, H, W): name to (n, D)."""
    height, width = images.shape[-2:]
    down, across = max(1, height // CORNER), max(1, width // CORNER)
    found = {
        "the colour histogram" if images.shape[1] > 1 else "the histogram of values": joint_histogram(images).sqrt(),
        "the mean of each channel" if images.shape[1] > 1 else "the mean value": images.mean((2, 3)),
        "the outermost pixels": _form(
            torch.cat([images[:, :, 0], images[:, :, -1], images[:, :, :, 0], images[:, :, :, -1]], dim=2)
        ),
    }
    for vertical, rows in (("upper", slice(0, down)), ("lower", slice(height - down, None))):
        for side, columns in (("left", slice(0, across)), ("right", slice(width - across, None))):
            found[f"the {vertical} {side} corner"] = _form(images[:, :, rows, columns])
    if min(height, width) >= 2 * GRID:
        found["the JPEG grid"] = jpeg_grid(images)
    return found


def _form(part: Tensor) -> Tensor:
    """A part (n, ...) of every picture, whatever its light: mean 0, length 1."""
    flat = part.flatten(1)
    return functional.normalize(flat - flat.mean(1, keepdim=True), dim=1)


def jpeg_grid(images: Tensor) -> Tensor:
    """Mean step between neighbouring columns and rows at each of the 8 places in a block, relative to their mean."""
    grey = images.mean(1)
    parts = []
    for axis in (1, 2):
        steps = grey.diff(dim=axis).abs().mean(3 - axis)  # (n, side - 1)
        whole = steps[:, : steps.shape[1] // GRID * GRID].reshape(len(steps), -1, GRID).mean(1)
        parts.append(whole / whole.mean(1, keepdim=True).clamp(min=1e-6))
    return torch.cat(parts, dim=1)


def breakers(statistic: str, channels: int) -> Iterator[tuple[str, Invariance]]:
    """Invariances that would break a statistic, as they would be written, mildest first."""
    if "corner" in statistic or "outermost" in statistic:
        yield "resized_crop of area 0.5 to 1", ResizedCrop(area=(0.5, 1.0))
        yield "resized_crop of area 0.2 to 1", ResizedCrop(area=(0.2, 1.0))
    elif "grid" in statistic:
        yield "blur", Blur(sigma=(0.5, 1.5), probability=1.0)
        yield "resized_crop of area 0.5 to 1", ResizedCrop(area=(0.5, 1.0))
    elif channels == 3:
        for amount in (0.2, 0.4, 0.8):
            yield (
                f"color_jitter of {amount:g}",
                ColorJitter(brightness=amount, contrast=amount, saturation=amount, hue=amount / 4),
            )
    else:
        for amount in (0.2, 0.4, 0.8):
            tone = (Brightness(amount=amount), Contrast(amount=amount))
            if channels == 1:
                yield f"brightness and contrast of {amount:g}", Compose(of=tone)
            else:
                yield f"channel_gain of {amount:g}", ChannelGain(amount=amount)
