"""Raw inputs to what the network takes, by the input contract of the card: the one place where a bundle reads inputs.

The contract of the modality does it (``pipeline.modalities``); nothing else of a bundle knows what
an input is.

Legend: n inputs of a batch, C, H, W the canvas.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from pipeline.modalities import Modality
from pipeline.samples import Unreadable, Values
from pipeline.sources.names import MEMBER_LIMIT
from pipeline.spec import Refusal

NUMPY = b"\x93NUMPY"
Raw = np.ndarray | bytes | str | Path | Image.Image
"""One raw input: pixels, an encoded image, the path of one, or one that Pillow has opened."""


def on_canvas(raw: Raw, contract: Modality) -> Values:
    """One raw input on the canvas, a picture (C, H, W) uint8, as in training.

    Raises:
        Refusal: cannot be read, or has another type or channels; one line.
    """
    try:
        return _sample(raw, contract)
    except Unreadable as error:
        raise Refusal(f"{_named(raw)}: {error}") from None
    except OSError as error:
        raise Refusal(f"{_named(raw)}: {(error.strerror or str(error)).lower()}") from None
    except Refusal as refusal:
        if isinstance(raw, (str, Path)):
            raise Refusal(f"{raw}: {refusal}") from None
        raise


def as_input(canvases: Sequence[Values]) -> Tensor:
    """Canvases as the network takes them: pictures, which alone are uint8, (n, C, H, W) float in [0, 1]."""
    stacked = torch.from_numpy(np.stack(canvases))
    return stacked.float() / 255.0 if stacked.dtype == torch.uint8 else stacked.float()


def is_one(raw: Any) -> bool:
    """Whether somebody gives one input where many are asked for."""
    return isinstance(raw, (str, bytes, Path, Image.Image)) or (
        isinstance(raw, np.ndarray) and raw.ndim < (3 if raw.dtype.kind == "f" else 4)
    )


def _sample(raw: Raw, contract: Modality) -> Values:
    if isinstance(raw, np.ndarray):
        return contract.given(raw)
    if isinstance(raw, Image.Image):
        return contract.given(np.asarray(_plain(raw)))
    if isinstance(raw, bytes):
        return contract.raw(raw, raw.startswith(NUMPY))
    if not isinstance(raw, (str, Path)):
        raise Refusal(
            f"embed: {type(raw).__name__} is no {contract.word}; give arrays, bytes, paths or Pillow's images"
        )
    content = _file_bytes(raw)
    return contract.raw(content, content.startswith(NUMPY))


def _file_bytes(path: str | Path) -> bytes:
    """A regular file's bytes; a pipe is not waited for. Raises OSError, Unreadable."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(handle)
        if stat.S_ISDIR(status.st_mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable("no regular file")
        if status.st_size > MEMBER_LIMIT:
            raise Unreadable("too large", f"{status.st_size} bytes, limit {MEMBER_LIMIT}")
        return FileIO(handle, closefd=False).readall()
    finally:
        os.close(handle)


def _plain(image: Image.Image) -> Image.Image:
    """Upright, in channels of 8 bits."""
    if image.mode.startswith("I") or image.mode == "F":
        raise Refusal(f"picture of mode {image.mode}: its range is not known; give the file's path, or uint8 pixels")
    image = ImageOps.exif_transpose(image)
    if image.has_transparency_data:
        return image.convert("LA" if image.mode in ("1", "L", "LA", "La") else "RGBA")
    return image if image.mode in ("L", "RGB") else image.convert("L" if image.mode == "1" else "RGB")


def _named(raw: Raw) -> str:
    return str(raw) if isinstance(raw, (str, Path)) else "encoded bytes"
