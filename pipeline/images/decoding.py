"""Encoded picture -> pixels. What a file holds is decided by its bytes, never by its name.

Only ``FORMATS`` are opened; the header's size is judged before anything is allocated; a picture is upright (EXIF),
the first of its frames, and has 8 bits a channel: wider values are scaled by the declared range. Plain JPEG and PNG
files, which are nearly all, take a short way past Pillow's dispatch.
"""

from __future__ import annotations

import io
import struct
import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps, JpegImagePlugin, PngImagePlugin, UnidentifiedImageError

from pipeline.images.tiff import PIXEL_LIMIT, read_page, read_values
from pipeline.samples import Unreadable

Pixels = npt.NDArray[np.uint8]
Range = tuple[float, float]

FORMATS = {"JPEG": "jpg", "MPO": "jpg", "PNG": "png", "WEBP": "webp", "TIFF": "tif", "BMP": "bmp", "GIF": "gif"}
"""The formats that are opened, each with its true extension. (MPO is what Pillow calls some JPEGs.)"""

OPENED = tuple(name for name in FORMATS if name != "MPO")
NUMPY = b"\x93NUMPY"

warnings.filterwarnings(
    "ignore", module=r"PIL\."
)  # remarks on odd metadata; once here, since filters are no thread's own
METADATA = frozenset({"exif", "xmp", "Raw profile type exif", "XML:com.adobe.xmp", "transparency"})
"""What may turn a picture or make parts of it transparent."""

UNKNOWN_HEADER = (SyntaxError, IndexError, TypeError, struct.error)
"""What Pillow takes for "another format" while it opens a file."""


class Decoded(NamedTuple):
    """One picture."""

    pixels: Pixels
    """(H, W, C) uint8"""
    extension: str
    """of the format that the bytes are in"""
    alpha: bool
    """whether the last channel is opacity"""
    plain: bool
    """whether any reader of the format sees these pixels: upright, opaque, 8 bits, one frame"""


def decode(content: bytes, levels: Range | None = None) -> Decoded:
    """Decode one picture, upright, first frame, 8 bits a channel.

    Args:
        content: the bytes of a file.
        levels: the values that become 0 and 255, for 16- and 32-bit and floating pixels; None: 16 unsigned bits over
            their whole range (divided by 257), others are refused.

    Raises:
        Unreadable: not one of ``FORMATS``, too many pixels, cut or damaged, or values of unknown range.
    """
    try:
        return _decoded(content, levels)
    except Warning:  # Pillow's remarks on odd metadata, where the caller has made errors of them
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _decoded(content, levels)


def _decoded(content: bytes, levels: Range | None) -> Decoded:
    try:
        if content.startswith(b"\xff\xd8\xff"):
            image: Image.Image = JpegImagePlugin.JpegImageFile(io.BytesIO(content))
            extension = "jpg"
        elif content.startswith(b"\x89PNG\r\n\x1a\n"):
            image, extension = PngImagePlugin.PngImageFile(io.BytesIO(content)), "png"
        else:
            return _other(content, levels)
        _judge(image)
        image.load()
        info, mode = image.info, image.mode
        if mode in ("L", "RGB") and METADATA.isdisjoint(info) and not (extension == "png" and content[24] == 16):
            pixels: Pixels = np.asarray(image)
            plain = not getattr(image, "is_animated", False)
            return Decoded(pixels[..., None] if pixels.ndim == 2 else pixels, extension, alpha=False, plain=plain)
        return _turned(image, extension, content, levels)
    except (Unreadable, Warning):
        raise
    except UNKNOWN_HEADER:
        raise Unreadable("not a picture", f"none of {', '.join(sorted(set(FORMATS.values())))}") from None
    except Exception as error:  # a decoder fed with damaged bytes raises nearly anything
        raise Unreadable("damaged picture", f"{type(error).__name__}: {error}") from None


def decode_array(content: bytes, levels: Range | None = None) -> Decoded:
    """Pixels that a source or this pipeline saved as .npy, (H, W, C) of any type. Raises Unreadable."""
    try:
        values = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise Unreadable("damaged picture", f"{type(error).__name__}: {error}") from None
    return Decoded(scaled(values, levels), "npy", alpha=False, plain=values.dtype == np.uint8)


def scaled(values: npt.NDArray[Any], levels: Range | None) -> Pixels:
    """Values (H, W, C) of any type to 8 bits: uint8 as they are, others by the declared range. Raises Unreadable."""
    if values.dtype == np.uint8:
        return values
    if values.dtype.kind == "b":
        return values.astype(np.uint8) * np.uint8(255)
    if levels is None:
        if values.dtype != np.uint16:
            raise Unreadable("values of unknown range", f"{values.dtype} pixels; declare input.range, as [0, 4095]")
        wide = values.astype(np.uint32)
        return ((wide * 255 + 32767) // 65535).astype(np.uint8)
    if values.dtype.kind not in "uif":
        raise Unreadable("values of unknown range", f"{values.dtype} pixels are no numbers of a range")
    low, high = levels
    numbers = (values.astype(np.float64) - low) * (255 / (high - low))
    if values.dtype.kind == "f" and not np.isfinite(numbers).all():
        where = tuple(int(place) for place in np.argwhere(~np.isfinite(numbers))[0])
        raise Unreadable("not finite", f"{values[where]} at (row, column, channel) {where}")
    return np.clip(np.rint(numbers), 0, 255).astype(np.uint8)


def _judge(image: Image.Image) -> None:
    if image.width * image.height > PIXEL_LIMIT:
        raise Unreadable("too many pixels", f"{image.width}x{image.height}, limit {PIXEL_LIMIT}")


def _judge_webp(content: bytes) -> None:
    """Judge the size before libwebp, which makes room for all of it when it opens a file (RFC 9649, section 2)."""
    number = int.from_bytes
    width = height = 0
    match content[12:16]:
        case b"VP8X":
            width, height = 1 + number(content[24:27], "little"), 1 + number(content[27:30], "little")
        case b"VP8L":
            bits = number(content[21:25], "little")
            width, height = 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            width, height = number(content[26:28], "little") & 0x3FFF, number(content[28:30], "little") & 0x3FFF
    if width * height > PIXEL_LIMIT:
        raise Unreadable("too many pixels", f"{width}x{height}, limit {PIXEL_LIMIT}")


def _other(content: bytes, levels: Range | None) -> Decoded:
    """A file that is neither JPEG nor PNG."""
    alone = True
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        _judge_webp(content)
    if content[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"):
        page = read_page(content)
        alone = page.alone
        if not page.ordinary:
            return _tiff(content, levels)
    try:
        image = Image.open(io.BytesIO(content), formats=OPENED)
    except Image.DecompressionBombError as error:
        raise Unreadable("too many pixels", f"{error}") from None
    except UnidentifiedImageError:
        raise Unreadable("not a picture", f"none of {', '.join(sorted(set(FORMATS.values())))}") from None
    _judge(image)
    image.load()
    found = _turned(image, FORMATS[str(image.format)], content, levels)
    return found._replace(plain=found.plain and alone)


def _tiff(content: bytes, levels: Range | None) -> Decoded:
    """A TIFF of other bits or bands than 8-bit grey and colour."""
    page = read_page(content)
    values = read_values(content, page)
    alpha = page.has_alpha and page.samples in (2, 4)
    pixels = scaled(values[..., : page.samples - alpha], levels)
    if page.one(262, 1) == 0:  # white is zero
        pixels = 255 - pixels
    if alpha:
        whole = None if values.dtype.kind == "u" and values.dtype.itemsize <= 2 else levels
        pixels = np.concatenate([pixels, scaled(values[..., -1:], whole)], axis=2)
    turned = _upright(np.ascontiguousarray(pixels), page.one(274, 1))
    return Decoded(turned, "tif", alpha, plain=False)


def _turned(image: Image.Image, extension: str, content: bytes, levels: Range | None) -> Decoded:
    """A loaded image upright and as 8-bit channels, whatever its mode and metadata."""
    upright = ImageOps.exif_transpose(image)
    turned = bool(image.getexif().get(0x0112, 1) != 1)
    pixels, alpha = _pixels(upright, extension, content, levels)
    simple = image.mode in ("1", "L", "RGB", "P") and not alpha and extension != "gif"
    deep = extension == "png" and content[24] == 16
    plain = simple and not turned and not deep and getattr(image, "n_frames", 1) == 1
    return Decoded(pixels, extension, alpha, plain)


def _pixels(image: Image.Image, extension: str, content: bytes, levels: Range | None) -> tuple[Pixels, bool]:
    """(H, W, C) uint8 of a loaded image, whatever its mode; whether the last channel is opacity."""
    mode = image.mode
    if mode.startswith("I;16") or (mode == "I" and extension == "png"):
        return scaled(np.asarray(image).astype(np.uint16)[..., None], levels), False
    if mode in ("I", "F"):
        raise Unreadable("values of unknown range", f"32-bit pixels (mode {mode})")
    if extension == "png" and content[24] == 16 and levels not in (None, (0.0, 65535.0)):
        raise Unreadable("16-bit colour PNG", "is read over its whole range only; save it as TIFF to use input.range")
    alpha = bool(image.has_transparency_data)
    if alpha:
        image = image.convert("LA" if mode in ("1", "L", "LA", "La") else "RGBA")
    elif mode not in ("L", "RGB"):
        image = image.convert("L" if mode == "1" else "RGB")
    pixels: Pixels = np.asarray(image)
    return (pixels[..., None] if pixels.ndim == 2 else pixels), alpha


def _upright(pixels: Pixels, orientation: int) -> Pixels:
    """Undo an EXIF orientation (1 to 8): first a turn, then a mirror."""
    if orientation in (5, 6, 7, 8):
        pixels = np.swapaxes(pixels, 0, 1)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels)


def encode_png(pixels: Pixels) -> bytes:
    """Encode (H, W, C) uint8, C 1 or 3, as PNG without loss; equal pixels give equal bytes."""
    buffer = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(buffer, "PNG", compress_level=6)
    return buffer.getvalue()


def encode_array(values: npt.NDArray[Any]) -> bytes:
    """Encode pixels of any type and number of channels as .npy; equal values give equal bytes."""
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(values), allow_pickle=False)
    return buffer.getvalue()
