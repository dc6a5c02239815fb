"""What a series looks like: a line a channel, each in a band of its own and scaled by its own least and largest value.

N series (N, C, T), pictures (N, 3, TALL, WIDE).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

WIDE, TALL = 96, 64
MOST = 6
"""channels that are drawn; of more, so many at equal distances"""
FINE = 4
"""points of a line to a column of pixels"""
STROKE, MARGIN = 1.6, 2.0
"""pixels: how thick a line is, and how far it stays from the edge of its band, at most"""
PAPER = (1.0, 1.0, 1.0)
LINES = ((0.12, 0.23, 0.42), (0.75, 0.30, 0.18), (0.20, 0.48, 0.30), (0.50, 0.33, 0.60))


def pictures(series: Tensor) -> Tensor:
    """series (N, C, T) → (N, 3, TALL, WIDE) in [0, 1]."""
    drawn = series.detach().cpu().float()
    if drawn.shape[1] > MOST:
        drawn = drawn[:, torch.linspace(0, drawn.shape[1] - 1, MOST).round().long()]
    count, channels = drawn.shape[:2]
    lowest, highest = drawn.amin(2, keepdim=True), drawn.amax(2, keepdim=True)
    spread = highest - lowest
    level = ((drawn - lowest) / spread.clamp(min=1e-12)).where(spread > 0, 0.5)
    top, bottom = _columns(level), -_columns(-level)  # (N, C, WIDE)
    page = torch.empty(count, 3, TALL, WIDE)
    edges = torch.linspace(0, TALL, channels + 1).round().long().tolist()
    for channel in range(channels):
        rows = edges[channel + 1] - edges[channel]
        margin = min(MARGIN, rows / 8)
        reach = rows - 1 - 2 * margin
        row = torch.arange(rows - 1, -1, -1)[None, :, None]  # from below
        above = row - (margin + reach * top[:, channel, None])
        below = (margin + reach * bottom[:, channel, None]) - row
        ink = (STROKE / 2 + 0.5 - torch.maximum(above, below).clamp(min=0)).clamp(0, 1)[:, None]  # (N, 1, rows, WIDE)
        paper, line = (torch.tensor(colour)[:, None, None] for colour in (PAPER, LINES[channel % len(LINES)]))
        page[:, :, edges[channel] : edges[channel + 1]] = paper + (line - paper) * ink
    return page


def _columns(level: Tensor) -> Tensor:
    """The highest point of each line (N, C, T) in every column of pixels, its ends among them, so that it is joined."""
    points = FINE * WIDE + 1
    if level.shape[2] > points:
        level = functional.adaptive_max_pool1d(level, points)
    else:
        level = functional.interpolate(level, points, mode="linear", align_corners=True)
    return functional.max_pool1d(level, FINE + 1, FINE)
