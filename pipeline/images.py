"""Encoded picture -> pixels -> the canvas that every picture of a data set has.

What a file holds is decided by its bytes, never by its name; the header's size is judged before anything is
allocated. Shapes: H, W of the file, C its channels (1 grey, 2 grey+alpha, 3 RGB, 4 RGBA); the canvas is (C, H, W).
"""

from __future__ import annotations

import io
import warnings
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps, UnidentifiedImageError
from pydantic import Field

from pipeline.spec import Refusal, Spec

Pixels = npt.NDArray[np.uint8]

FORMATS = {"JPEG": "jpg", "MPO": "jpg", "PNG": "png", "WEBP": "webp", "TIFF": "tif", "BMP": "bmp", "GIF": "gif"}
"""The formats that are opened, each with its true extension. (MPO is what Pillow calls some JPEGs.)"""

PIXEL_LIMIT = 2**26
"""Largest height x width of a header that is decoded (201 MB as RGB); under the limit at which Pillow itself warns."""


class Unreadable(Exception):
    """A file that is no usable picture: ``reason`` to be counted by, ``detail`` to be read."""

    def __init__(self, reason: str, detail: str = ""):
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason} ({detail})" if detail else reason)


class Input(Spec):
    """The canvas: what a picture of any size and mode becomes before anything else sees it."""

    height: int = Field(ge=1, le=4096)
    """pixels"""
    width: int = Field(ge=1, le=4096)
    """pixels"""
    channels: int = Field(ge=1, le=64)
    """1 grey, 3 RGB; any other number must be the files' own"""
    fit: Literal["pad", "resize", "cover"]
    """pad: aspect kept, shrunk where larger, never enlarged, centred; resize: each side scaled to the canvas; cover:
    aspect kept, scaled until the canvas is covered, the centre kept. Views that begin with a cut or a resize read the
    file's own pixels with resize and cover, and the padded canvas with pad"""
    background: int = Field(default=0, ge=0, le=255)
    """level (0 to 255, all channels) of the padding and behind transparent pixels"""


def decode(content: bytes) -> tuple[Pixels, str]:
    """Decode one picture, upright (EXIF orientation applied), first frame; 16-bit grey is divided by 257.

    Returns: pixels (H, W, C) uint8 with C in 1 (grey), 2 (grey, alpha), 3 (RGB), 4 (RGBA); the true extension.

    Raises:
        Unreadable: not one of ``FORMATS``, too many pixels, cut or damaged, or values of unknown range.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's remarks on odd metadata
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            image = Image.open(io.BytesIO(content), formats=tuple(name for name in FORMATS if name != "MPO"))
        except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
            raise Unreadable("too many pixels", f"{error}") from None
        except UnidentifiedImageError:
            raise Unreadable("not a picture", f"none of {', '.join(sorted(set(FORMATS.values())))}") from None
        except Exception as error:  # a decoder fed with damaged bytes raises nearly anything
            raise Unreadable("damaged picture", f"{type(error).__name__}: {error}") from None
        with image:
            extension = FORMATS[str(image.format)]
            if image.width * image.height > PIXEL_LIMIT:
                raise Unreadable("too many pixels", f"{image.width}x{image.height}, limit {PIXEL_LIMIT}")
            try:
                image.load()
                upright = ImageOps.exif_transpose(image)
                pixels = _pixels(upright, extension)
            except Unreadable:
                raise
            except Exception as error:
                raise Unreadable("damaged picture", f"{type(error).__name__}: {error}") from None
    return pixels, extension


def _pixels(image: Image.Image, extension: str) -> Pixels:
    """(H, W, C) uint8 of a loaded image, whatever its mode."""
    mode = image.mode
    if mode.startswith("I;16") or (mode == "I" and extension == "png"):
        levels = np.asarray(image).astype(np.uint32)
        return ((levels * 255 + 32767) // 65535).astype(np.uint8)[..., None]
    if mode in ("I", "F"):
        raise Unreadable("values of unknown range", f"32-bit pixels (mode {mode})")
    if image.has_transparency_data:
        image = image.convert("LA" if mode in ("1", "L", "LA", "La") else "RGBA")
    elif mode not in ("L", "RGB"):
        image = image.convert("L" if mode == "1" else "RGB")
    pixels: Pixels = np.asarray(image)
    return pixels[..., None] if pixels.ndim == 2 else pixels


def encode_png(pixels: Pixels) -> bytes:
    """Encode (H, W, C) uint8, C 1 or 3, as PNG without loss; equal pixels give equal bytes."""
    buffer = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(buffer, "PNG", compress_level=6)
    return buffer.getvalue()


def fit_image(pixels: npt.NDArray[Any], canvas: Input) -> Pixels:
    """Put one picture on the canvas: alpha composited, channels converted, then padded or resized.

    Grey becomes RGB by repetition, RGB grey by ITU-R 601 luma; any other number of channels must be the canvas's.

    Args:
        pixels: (H, W, C) or (H, W) uint8, H and W any.
        canvas: the data set's ``input``.

    Returns: (channels, height, width) uint8.

    Raises:
        Refusal: not uint8, no pixels, or channels that cannot become the canvas's.
    """
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or pixels.size == 0:
        raise Refusal(f"picture of {pixels.dtype} {pixels.shape}: must be uint8 of shape (height, width, channels)")
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    pixels = as_channels(pixels, canvas.channels, canvas.background)
    height, width = pixels.shape[:2]
    if canvas.fit == "cover":
        pixels = _covering(pixels, canvas.height, canvas.width)
    if canvas.fit in ("resize", "cover"):
        return np.stack([_scaled(band, canvas.height, canvas.width) for band in np.moveaxis(pixels, 2, 0)])
    shrink = min(1.0, canvas.height / height, canvas.width / width)
    height, width = max(1, round(height * shrink)), max(1, round(width * shrink))
    top, left = (canvas.height - height) // 2, (canvas.width - width) // 2
    placed = np.full((canvas.channels, canvas.height, canvas.width), canvas.background, dtype=np.uint8)
    for channel, band in enumerate(np.moveaxis(pixels, 2, 0)):
        placed[channel, top : top + height, left : left + width] = _scaled(band, height, width)
    return placed


def _covering(pixels: Pixels, height: int, width: int) -> Pixels:
    """The largest central part of a picture (H, W, C) with the aspect of ``height`` x ``width``, to whole pixels."""
    share = min(pixels.shape[0] / height, pixels.shape[1] / width)
    rows, columns = max(1, round(height * share)), max(1, round(width * share))
    top, left = (pixels.shape[0] - rows) // 2, (pixels.shape[1] - columns) // 2
    return pixels[top : top + rows, left : left + columns]


def as_channels(pixels: Pixels, channels: int, background: int) -> Pixels:
    """Bring (H, W, C) to (H, W, channels): alpha composited, grey repeated, RGB to its luma. Raises Refusal."""
    found = pixels.shape[2]
    if found == channels:
        return pixels
    if found in (2, 4) and channels in (1, 3):
        color, alpha = pixels[..., :-1].astype(np.uint32), pixels[..., -1:].astype(np.uint32)
        pixels = ((color * alpha + background * (255 - alpha) + 127) // 255).astype(np.uint8)
    if pixels.shape[2] == channels:
        return pixels
    if pixels.shape[2] == 1 and channels == 3:
        return np.repeat(pixels, 3, axis=2)
    if pixels.shape[2] == 3 and channels == 1:
        red, green, blue = np.moveaxis(pixels.astype(np.uint32), 2, 0)
        luma: Pixels = ((red * 19595 + green * 38470 + blue * 7471 + 32768) >> 16).astype(np.uint8)
        return luma[..., None]
    raise Refusal(f"picture with {found} channels: cannot become the {channels} of the spec's input.channels")


def _scaled(band: Pixels, height: int, width: int) -> Pixels:
    """Resize one band (H, W), antialiased where it shrinks."""
    if band.shape == (height, width):
        return band
    scaled = Image.fromarray(np.ascontiguousarray(band)).resize((width, height), Image.Resampling.BILINEAR)
    resized: Pixels = np.asarray(scaled)
    return resized
