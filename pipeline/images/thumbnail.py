"""A stored picture in small, as a person looks at it: RGB, and of one size for all pictures of one canvas."""

from __future__ import annotations

import numpy as np
from PIL import Image

from pipeline.images.decoding import Pixels


def thumbnail(pixels: Pixels, side: int) -> Pixels:
    """(C, H, W) uint8 → (h, w, 3) uint8, the longer side at most ``side`` pixels.

    Grey is repeated, of many channels the first three are shown. A picture that is smaller is enlarged by a whole
    factor, so that its pixels stay sharp and alike.
    """
    bands = pixels[[0, 0, 0]] if len(pixels) < 3 else pixels[:3]
    whole = np.ascontiguousarray(np.moveaxis(bands, 0, 2))
    factor = side // max(whole.shape[:2])
    if factor >= 1:
        return whole.repeat(factor, axis=0).repeat(factor, axis=1)
    scale = side / max(whole.shape[:2])
    height, width = (max(1, round(scale * length)) for length in whole.shape[:2])
    return np.asarray(Image.fromarray(whole).resize((width, height), Image.Resampling.BOX))
