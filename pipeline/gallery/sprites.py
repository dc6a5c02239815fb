"""Many small pictures in one file, each stored once: a sheet of equal cells, of which the page shows one or another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from pipeline.images import Pixels
from pipeline.shards import Shards

QUALITY = 82
"""Of WebP, whose pictures are a third smaller than JPEG's at the same quality."""
Place = tuple[str, int]
"""(split, row) of a sample."""


@dataclass
class Sprite:
    """Thumbnails of samples, at most ``side`` pixels a side; a sample that is asked for again is the same cell."""

    shards: Shards
    side: int
    places: dict[Place, int] = field(default_factory=dict)
    """of each sample its cell: from left to right, then down"""

    def cell(self, split: str, row: int) -> int:
        """The cell of a sample."""
        return self.places.setdefault((split, row), len(self.places))

    def write(self, file: Path) -> dict[str, int]:
        """Write the sheet as WebP; how many columns, how large a cell (pixels), and how many cells. Nothing is written
        where there are none."""
        pictures = [self.shards.thumbnail(split, row, self.side) for split, row in self.places]
        if not pictures:
            return {"columns": 0, "width": 0, "height": 0, "count": 0}
        sheet, columns = joined(pictures)
        Image.fromarray(sheet).save(file, format="WEBP", quality=QUALITY, method=4)
        height, width = pictures[0].shape[:2]
        return {"columns": columns, "width": width, "height": height, "count": len(pictures)}


def joined(pictures: Sequence[Pixels]) -> tuple[Pixels, int]:
    """Pictures (h, w, 3), all of one size, as one nearly square sheet (H, W, 3), and its columns."""
    height, width = pictures[0].shape[:2]
    columns = max(1, round((len(pictures) * height / width) ** 0.5))
    rows = -(-len(pictures) // columns)
    sheet = np.zeros((rows * height, columns * width, 3), np.uint8)
    for number, picture in enumerate(pictures):
        row, column = divmod(number, columns)
        sheet[row * height : (row + 1) * height, column * width : (column + 1) * width] = picture
    return sheet, columns
