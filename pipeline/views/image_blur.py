"""Gaussian blur of a width of its own for each picture, as torchvision's ``gaussian_blur``: linear and separable.

Small pictures are blurred by two matrices a picture, in two batched products. Of large ones, the matrices would be
nearly all zeros. So on a CPU, each goes by itself: a band of the matrix, the same for every ``BAND`` pixels of an axis,
times windows that overlap, with a kernel no wider than its own sigma needs.

N images (N,C,H,W); sigma (N,) in pixels.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from pipeline.views.image_plane import filtered
from pipeline.views.image_resize import large

BAND = 16  # pixels of an axis that are made by one small product


def blur(images: Tensor, sigma: Tensor, radius: int) -> Tensor:
    """Gaussian blur of ``images`` (N,C,H,W) by ``sigma`` (N,) pixels, the kernel cut at ``radius`` pixels.

    Equal to torchvision's ``gaussian_blur`` with kernel size 2 * radius + 1 (at most 2 * min(H, W) - 1, as far as
    reflection goes). Rows of sigma 0 stay as they are.
    """
    return blur_own(images.clone(), sigma, radius) if bool((sigma > 0).any()) else images


def blur_own(images: Tensor, sigma: Tensor, radius: int) -> Tensor:
    """The same in place."""
    height, width = images.shape[-2:]
    radius = min(radius, height - 1, width - 1)
    rows = (sigma > 0).nonzero().flatten()
    if radius < 1 or not len(rows):
        return images
    if large(images):
        for row, weights in kernels(sigma, radius).items():
            images[row] = blur_one(images[row], weights)
        return images
    weights = gaussian(sigma[rows, None], radius)
    down = _matrices(weights, height).to(images)  # (n,H,H)
    across = down if height == width else _matrices(weights, width).to(images)  # (n,W,W)
    rows = rows.to(images.device)
    return images.index_copy_(0, rows, filtered(images.index_select(0, rows), down, across))


def gaussian(sigma: Tensor, radius: int) -> Tensor:
    """The kernels (..., 2 * radius + 1) of ``sigma`` (..., 1), of sum 1."""
    offsets = torch.arange(-radius, radius + 1)
    return torch.softmax(-0.5 * (offsets / sigma) ** 2, dim=-1)


def kernels(sigma: Tensor, radius: int) -> dict[int, Tensor]:
    """The kernels of the rows that are blurred, without the weights that are lost in the rounding of the middle one."""
    rows = (sigma > 0).nonzero().flatten()
    weights = gaussian(sigma[rows, None], radius)
    widths = (weights > weights[:, radius : radius + 1] * 2.0**-24).sum(1).tolist()
    pairs = zip(rows.tolist(), weights, widths, strict=True)
    return {row: kernel[radius - width // 2 : radius + width // 2 + 1] for row, kernel, width in pairs}


def _matrices(weights: Tensor, count: int) -> Tensor:
    """Matrices (n,count,count) that filter an axis of ``count`` pixels, reflected at its ends (edge not repeated)."""
    radius = weights.shape[1] // 2
    source = (torch.arange(count)[:, None] + torch.arange(-radius, radius + 1)).abs()
    source = torch.where(source >= count, 2 * (count - 1) - source, source)  # (count,2*radius+1)
    matrices = torch.zeros(len(weights), count, count)
    index = source.expand(len(weights), -1, -1)
    return matrices.scatter_add_(2, index, weights[:, None, :].expand_as(index))


def blur_one(image: Tensor, weights: Tensor) -> Tensor:
    """Blur ``image`` (C,H,W) by the kernel ``weights`` (2*radius+1,) along both axes: (C,H,W)."""
    weights = weights.to(image)
    radius = len(weights) // 2
    channels, height, width = image.shape
    tall, wide = -(-height // BAND), -(-width // BAND)  # bands, the last of which may reach beyond the picture
    spare = (0, wide * BAND - width, 0, tall * BAND - height)
    padded = functional.pad(image, (radius,) * 4, mode="reflect").contiguous()
    padded = functional.pad(padded, spare) if any(spare) else padded  # (C,H',W')
    band = image.new_zeros(BAND, BAND + 2 * radius)
    band.as_strided((BAND, len(weights)), (BAND + 2 * radius + 1, 1)).copy_(weights)  # row i begins at i
    columns = padded.shape[2]
    # down: (BAND, BAND + 2r) @ (BAND + 2r, W') for each band of each channel
    part = image.new_empty(channels, tall, BAND, columns)
    for channel, plane in enumerate(padded):
        window = plane.as_strided((tall, BAND + 2 * radius, columns), (BAND * columns, columns, 1))
        torch.bmm(band.expand(tall, -1, -1), window, out=part[channel])
    # across: (C * H, BAND + 2r) @ (BAND + 2r, BAND) for each band
    lines = channels * tall * BAND
    window = part.as_strided((wide, lines, BAND + 2 * radius), (BAND, columns, 1))
    done = torch.bmm(window, band.T.expand(wide, -1, -1))  # (wide,lines,BAND)
    done = done.view(wide, channels, tall * BAND, BAND).permute(1, 2, 0, 3)[:, :height]  # (C,H,wide,BAND)
    return done.reshape(channels, height, -1)[:, :, :width]
