"""The example picture of a data card: what the encoder will see, a line a class, the first pictures of each.

It holds no text, date or font, so that equal data gives equal bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np

from pipeline.images import Pixels, encode_png

LINES, ACROSS = 10, 10
"""most classes, and pictures of each"""

GAP, LEAST = 2, 48
"""pixels between pictures, and the least side that a picture is shown with"""

Row = TypeVar("Row")


def save_examples(lines: Sequence[Sequence[Row]], picture: Callable[[Row], Pixels], file: Path) -> None:
    """Write the page.

    Args:
        lines: rows of each class.
        picture: a row's pixels on the canvas, (C, H, W) uint8.
        file: where to.
    """
    if len(lines) == 1:
        lines = [lines[0][start : start + ACROSS] for start in range(0, LINES * ACROSS, ACROSS)]
    chosen = [[rgb(picture(row)) for row in islice(line, ACROSS)] for line in lines[:LINES] if line]
    height, width = chosen[0][0].shape[:2]
    across = max(map(len, chosen))
    page = np.full((len(chosen) * (height + GAP) - GAP, across * (width + GAP) - GAP, 3), 255, np.uint8)
    for down, line in enumerate(chosen):
        for along, shown in enumerate(line):
            top, left = down * (height + GAP), along * (width + GAP)
            page[top : top + height, left : left + width] = shown
    file.write_bytes(encode_png(page))


def rgb(picture: Pixels) -> Pixels:
    """(C, H, W) → (H', W', 3): grey repeated, the first three of many; small ones enlarged by whole pixels."""
    bands = picture[[0, 0, 0]] if len(picture) < 3 else picture[:3]
    scale, shrink = max(1, LEAST // max(bands.shape[1:])), max(1, max(bands.shape[1:]) // 128)
    shown: Pixels = np.moveaxis(bands, 0, 2)[::shrink, ::shrink]
    return shown.repeat(scale, 0).repeat(scale, 1)
