"""What a series looks like: a line a channel, each scaled by its own least and largest value. N series (N, C, T)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

WIDE, TALL = 96, 64
MOST = 8
"""channels that are drawn, a band each"""
PAPER = (1.0, 1.0, 1.0)
LINES = ((0.12, 0.23, 0.42), (0.75, 0.30, 0.18), (0.20, 0.48, 0.30), (0.50, 0.33, 0.60))


def pictures(series: Tensor) -> Tensor:
    """series (N, C, T) → (N, 3, TALL, WIDE) in [0, 1]."""
    drawn = series.detach().cpu().float()[:, :MOST]
    count, channels = drawn.shape[:2]
    page = torch.tensor(PAPER)[:, None, None].expand(count, 3, TALL, WIDE).clone()
    lowest, highest = drawn.amin(2, keepdim=True), drawn.amax(2, keepdim=True)
    level = (drawn - lowest) / (highest - lowest).clamp(min=1e-12)
    top = functional.adaptive_max_pool1d(level, WIDE)  # (N, C, WIDE)
    bottom = -functional.adaptive_max_pool1d(-level, WIDE)
    edges = torch.linspace(0, TALL, channels + 1).round().long().tolist()
    for channel in range(channels):
        rows = edges[channel + 1] - edges[channel]
        height = torch.linspace(1, 0, rows)[None, :, None]
        half = 0.5 / max(1, rows - 1)
        inked = (height <= top[:, channel, None] + half) & (height >= bottom[:, channel, None] - half)
        band = page[:, :, edges[channel] : edges[channel + 1]]
        colour = torch.tensor(LINES[channel % len(LINES)])[None, :, None, None]
        page[:, :, edges[channel] : edges[channel + 1]] = torch.where(inked[:, None], colour, band)
    return page
