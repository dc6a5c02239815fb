"""Raw inputs to what the network takes, by the input contract of the card: the one place where a bundle reads inputs.

Another modality needs its own contract and its own ``on_canvas`` and ``as_input``; nothing else of a bundle knows what
an input is.

Legend: n inputs of a batch, C, H, W the canvas.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from pipeline.images import Input, Pixels, Unreadable, fit_image, read_image
from pipeline.sources.names import MEMBER_LIMIT
from pipeline.spec import Refusal

Raw = np.ndarray | bytes | str | Path | Image.Image
"""One raw input: pixels, an encoded image, the path of one, or one that Pillow has opened."""


def on_canvas(raw: Raw, contract: Input) -> Pixels:
    """One raw input on the canvas, (C, H, W) uint8, as in training.

    Raises:
        Refusal: cannot be read, or has another type or channels; one line.
    """
    try:
        return fit_image(_pixels(raw, contract), contract)
    except Unreadable as error:
        raise Refusal(f"{_named(raw)}: {error}") from None
    except OSError as error:
        raise Refusal(f"{_named(raw)}: {(error.strerror or str(error)).lower()}") from None
    except Refusal as refusal:
        if isinstance(raw, (str, Path)):
            raise Refusal(f"{raw}: {refusal}") from None
        raise


def as_input(canvases: Sequence[Pixels]) -> Tensor:
    """Canvases as the network takes them: (n, C, H, W) float in [0, 1]."""
    return torch.from_numpy(np.stack(canvases)).float() / 255.0


def is_one(raw: Any) -> bool:
    """Whether somebody gives one input where many are asked for."""
    return isinstance(raw, (str, bytes, Path, Image.Image)) or (isinstance(raw, np.ndarray) and raw.ndim < 4)


def _pixels(raw: Raw, contract: Input) -> Pixels:
    if isinstance(raw, np.ndarray):
        return raw
    if isinstance(raw, Image.Image):
        return np.asarray(_plain(raw))
    if isinstance(raw, bytes):
        return read_image(raw, contract)
    if not isinstance(raw, (str, Path)):
        raise Refusal(f"embed: {type(raw).__name__} is no image; give arrays, bytes, paths or Pillow's images")
    path = Path(raw)
    if path.exists() and not path.is_dir() and not path.is_file():
        raise Unreadable("no regular file")
    if path.is_file() and path.stat().st_size > MEMBER_LIMIT:
        raise Unreadable("too large", f"limit {MEMBER_LIMIT} bytes")
    return read_image(path.read_bytes(), contract)


def _plain(image: Image.Image) -> Image.Image:
    """Upright, in channels of 8 bits."""
    if image.mode.startswith("I") or image.mode == "F":
        raise Refusal(f"picture of mode {image.mode}: its range is not known; give the file's path, or uint8 pixels")
    image = ImageOps.exif_transpose(image)
    if image.has_transparency_data:
        return image.convert("LA" if image.mode in ("1", "L", "LA", "La") else "RGBA")
    return image if image.mode in ("L", "RGB") else image.convert("L" if image.mode == "1" else "RGB")


def _named(raw: Raw) -> str:
    return str(raw) if isinstance(raw, (str, Path)) else "an encoded image"
