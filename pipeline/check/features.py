"""Cheap features of pictures, with all their constants: what a label can be read from without training an encoder.

Several, since each is blind to something: histograms see colour and no form, pooled pixels see place and no detail,
random filters (the untrained layer of Jarrett et al., "What is the best multi-stage architecture for object
recognition?", ICCV 2009) see texture, gradient histograms (Dalal and Triggs, CVPR 2005) see form and no colour.
``all`` is the four side by side.

Legend: N pictures, C channels, H, W pixels, D features. Nothing here depends on any data set; every function takes any
C, H and W, down to one pixel.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

SIDE = 32  # larger pictures are pooled to at most this many pixels a side before filters and gradients
BINS = 16  # of a channel's histogram
JOINT = 4  # bins a channel of the joint colour histogram, of the first three channels
POOLED = 6  # pixels a side of the pooled picture
FILTERS = 64  # random filters
WIDTH, STRIDE = 5, 2  # of a filter, pixels
FLOOR = 0.1  # standard deviation, of values in [0, 1], below which a patch counts as flat
CELLS = 2  # a side, over which filters are averaged
BLOCKS, TURNS = 4, 8  # cells a side and orientations (of 180 degrees) of the gradient histogram
SEED = 5
CHUNK = 128  # pictures at a time: their values stay in the cache

KINDS = ("histogram", "pixels", "filters", "gradients", "all")
"""The probes. ``all`` is the others side by side."""


def features(images: Tensor) -> dict[str, Tensor]:
    """Every feature of every picture: images (N, C, H, W) in [0, 1] → kind to (N, D) float32."""
    parts = [_features(images[start : start + CHUNK].float()) for start in range(0, len(images), CHUNK)]
    found = {kind: torch.cat([part[kind] for part in parts]) for kind in KINDS if kind != "all"}
    return {**found, "all": torch.cat(list(found.values()), dim=1)}


def _features(images: Tensor) -> dict[str, Tensor]:
    height, width = images.shape[-2:]
    small = images
    if height > SIDE or width > SIDE:
        small = functional.adaptive_avg_pool2d(images, (min(SIDE, height), min(SIDE, width)))
    return {
        "histogram": histogram(images),
        "pixels": functional.adaptive_avg_pool2d(images, (min(POOLED, height), min(POOLED, width))).flatten(1),
        "filters": filters(small),
        "gradients": gradients(small),
    }


def histogram(images: Tensor) -> Tensor:
    """Square roots of the shares of pixels in each bin: every channel's own bins, then the joint bins of up to three.

    The root makes the Euclidean distance Hellinger's.
    """
    own = (images.clamp(0, 1) * BINS).long().clamp_(max=BINS - 1).flatten(2)  # (N, C, P)
    shares = [_shares(own[:, channel], BINS) for channel in range(images.shape[1])]
    if images.shape[1] > 1:
        shares.append(joint_histogram(images))
    return torch.cat(shares, dim=1).sqrt()


def joint_histogram(images: Tensor) -> Tensor:
    """Shares of pixels in each of 4 x 4 x 4 colours, of the first three channels: (N, C, H, W) → (N, 4**min(C, 3))."""
    codes = (images[:, :3].clamp(0, 1) * JOINT).long().clamp_(max=JOINT - 1).flatten(2)  # (N, C, P)
    powers = JOINT ** torch.arange(codes.shape[1])
    return _shares((codes * powers[:, None]).sum(1), JOINT ** codes.shape[1])


def _shares(codes: Tensor, bins: int) -> Tensor:
    """codes (N, P) from 0 to bins - 1 → the share of each, (N, bins)."""
    rows = torch.arange(len(codes))[:, None] * bins
    counts = torch.bincount((codes + rows).flatten(), minlength=len(codes) * bins)
    return counts.reshape(len(codes), bins).float() / codes.shape[1]


def filters(images: Tensor) -> Tensor:
    """Means over CELLS x CELLS of both signs of random filters of locally normalised patches."""
    channels, height, width = images.shape[1:]
    size = (min(WIDTH, height), min(WIDTH, width))
    generator = torch.Generator().manual_seed(SEED)
    weight = torch.randn(FILTERS, channels, *size, generator=generator)
    weight = weight / weight.flatten(1).norm(dim=1)[:, None, None, None]
    ones = torch.ones(1, channels, *size) / (channels * size[0] * size[1])
    mean = functional.conv2d(images, ones, stride=STRIDE)
    spread = (
        (functional.conv2d(images.square(), ones, stride=STRIDE) - mean.square()).clamp_(min=0).add_(FLOOR**2).sqrt_()
    )
    answers = functional.conv2d(images, weight, stride=STRIDE) - mean * weight.sum((1, 2, 3))[:, None, None]
    answers = answers / (spread * math.sqrt(channels))
    both = torch.cat([answers.clamp(min=0), (-answers).clamp(min=0)], dim=1)
    grid = (min(CELLS, both.shape[-2]), min(CELLS, both.shape[-1]))
    return functional.adaptive_avg_pool2d(both, grid).flatten(1)


def gradients(images: Tensor) -> Tensor:
    """Square roots of the shares of gradient in each orientation and cell, and the mean gradient of each cell.

    At each pixel the gradient is that of the channel where it is steepest.
    """
    padded = functional.pad(images, (1, 1, 1, 1), mode="replicate")
    across = padded[..., 1:-1, 2:] - padded[..., 1:-1, :-2]  # (N, C, H, W)
    down = padded[..., 2:, 1:-1] - padded[..., :-2, 1:-1]
    steepest, x, y = _squares(across, down, 0), across[:, 0], down[:, 0]
    for channel in range(1, images.shape[1]):  # a comparison a channel is faster than an arg max over few
        here = _squares(across, down, channel)
        x, y = torch.where(here > steepest, across[:, channel], x), torch.where(here > steepest, down[:, channel], y)
        steepest = torch.maximum(steepest, here)
    length = steepest.sqrt()
    angle = torch.atan2(y, x).remainder(math.pi) * (TURNS / math.pi)  # in [0, TURNS]
    low = angle.floor().long() % TURNS
    part = angle - angle.floor()
    votes = torch.zeros(len(images), TURNS, *images.shape[-2:])
    votes.scatter_add_(1, low[:, None], ((1 - part) * length)[:, None])
    votes.scatter_add_(1, ((low + 1) % TURNS)[:, None], (part * length)[:, None])
    grid = (min(BLOCKS, images.shape[-2]), min(BLOCKS, images.shape[-1]))
    cells = functional.adaptive_avg_pool2d(votes, grid)  # (N, TURNS, *grid)
    total = cells.sum(1, keepdim=True)
    shares = (cells / (total + FLOOR * total.mean((2, 3), keepdim=True) + 1e-6)).sqrt()
    return torch.cat([shares.flatten(1), total.flatten(1)], dim=1)


def _squares(across: Tensor, down: Tensor, channel: int) -> Tensor:
    return across[:, channel].square() + down[:, channel].square()
