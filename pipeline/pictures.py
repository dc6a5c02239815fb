"""Pictures of images, as PNG files: what the network saw, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor


def to_rgb(images: Tensor) -> Tensor:
    """images (N, C, H, W) float of any number of channels → (N, 3, H, W): grey repeated, first three of many."""
    if images.shape[1] == 3:
        return images
    return images[:, :1].expand(-1, 3, -1, -1) if images.shape[1] < 3 else images[:, :3]


def sheet(images: Tensor, columns: int, scale: int, gap: int = 2) -> Tensor:
    """images (N, C, H, W) in [0, 1] → one picture (H', W', 3) uint8, row by row, each pixel ``scale`` pixels wide."""
    pixels = to_rgb(images).clamp(0, 1).repeat_interleave(scale, 2).repeat_interleave(scale, 3)
    count, _, height, width = pixels.shape
    rows = -(-count // columns)
    page = torch.ones(3, rows * (height + gap) - gap, columns * (width + gap) - gap)
    for number, image in enumerate(pixels):
        row, column = divmod(number, columns)
        top, left = row * (height + gap), column * (width + gap)
        page[:, top : top + height, left : left + width] = image
    return (page.permute(1, 2, 0) * 255).round().to(torch.uint8)


def save_png(picture: Tensor, file: Path) -> None:
    """Write (H, W, 3) uint8 as a PNG without any date in it."""
    from PIL import Image

    Image.fromarray(picture.numpy()).save(file, optimize=True)


def views_picture(views: Tensor, file: Path) -> None:
    """Views in pair order (2n, C, H, W): one column a sample, its two views one above the other."""
    pairs = torch.cat([views[0::2], views[1::2]])
    save_png(sheet(pairs, columns=len(views) // 2, scale=max(1, 64 // views.shape[-1])), file)


def role_pictures(seen: Mapping[str, Tensor], folder: Path) -> None:
    """One file a name, in order (view-00-sample.png, view-01-first.png …): a row of images (n, C, h, w) in [0, 1]."""
    side = max(images.shape[-1] for images in seen.values())
    for number, (name, images) in enumerate(seen.items()):
        picture = sheet(images, columns=len(images), scale=max(1, 64 // side))
        save_png(picture, folder / f"view-{number:02d}-{name.replace(' ', '_')}.png")
