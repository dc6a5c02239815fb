"""Pixels -> the canvas that every picture of a data set has.

Shapes: H, W of the file, C its channels (1 grey, 2 grey+alpha, 3 RGB, 4 RGBA, or bands); the canvas is (C, H, W).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from PIL import Image
from pydantic import Field

from pipeline.images.decoding import NUMPY, Decoded, Pixels, decode, decode_array, encode_array, encode_png
from pipeline.samples import Extent, Size, Taken, Values
from pipeline.spec import Refusal, Rule, Spec

if TYPE_CHECKING:
    from torch import Tensor  # decoding processes need no torch


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
    range: tuple[float, float] | None = None
    """the values that become 0 and 255, for pictures of 16 or 32 bits or floats, as [0, 4095]; null: 16 unsigned bits
    over their whole range, other wide pixels are refused. Pixels of 8 bits are never scaled"""

    word: ClassVar[str] = "picture"
    sides: ClassVar[tuple[str, str]] = ("height", "width")
    levels: ClassVar[int] = 255
    exact: ClassVar[bool] = True
    kept: ClassVar[str] = "uint8"
    extent: ClassVar[Extent] = Extent(0.0, 1.0, True, "channels and pixels")

    def rules(self) -> Iterator[Rule]:
        if self.range is not None and not self.range[0] < self.range[1]:
            yield "range", "must rise, as [0, 4095]"

    @property
    def size(self) -> Size:
        """Height and width of the canvas."""
        return self.height, self.width

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a sample as an encoder reads it: (C, H, W)."""
        return self.channels, self.height, self.width

    def take(self, raw: bytes, array: bool) -> Taken:
        """Judge one raw picture, an encoded file's bytes or (``array``) an .npy. Raises Unreadable, Refusal."""
        found = decode_array(raw, self.range) if array else decode(raw, self.range)
        pixels = on_channels(found, self)
        picture = fit_image(pixels, self)
        extension, stored = _stored(found, raw, pixels, array)
        values = picture.reshape(len(picture), -1).astype(np.float64)  # sums below 2**53 are exact
        moments = np.stack([values.sum(axis=1), np.einsum("ij,ij->i", values, values)])
        kept = None if stored is raw else stored
        return Taken(extension, kept, (pixels.shape[0], pixels.shape[1]), moments)

    def raw(self, content: bytes, array: bool) -> Pixels:
        """A raw picture on the canvas: (C, H, W) uint8. Raises Unreadable, Refusal."""
        found = decode_array(content, self.range) if array else decode(content, self.range)
        return fit_image(on_channels(found, self), self)

    def read(self, content: bytes) -> Pixels:
        """A stored sample on the canvas: (C, H, W) uint8."""
        return fit_image(read_image(content, self), self)

    def original(self, content: bytes) -> Pixels:
        """A stored sample at its own size: (C, H', W') uint8, with the channels of a pixel together in memory.

        It may be written to. It lies as it was decoded: cuts are twice as fast so.
        """
        pixels = read_image(content, self)
        return np.moveaxis(pixels if pixels.flags.writeable else pixels.copy(), 2, 0)

    def given(self, values: npt.NDArray[Any]) -> Pixels:
        """A sample that somebody hands over as an array, (H, W, C) or (H, W) uint8, on the canvas. Raises Refusal."""
        return fit_image(values, self)

    def as_float(self, batch: Tensor) -> Tensor:
        """Samples (N, C, H, W) as an encoder reads them: floating point in [0, 1]."""
        return batch.float() / 255.0

    def pictures(self, batch: Tensor) -> Tensor:
        """What samples (N, C, H, W) in [0, 1] look like: themselves."""
        return batch

    def picture(self, sample: Values) -> Pixels:
        """What a sample (C, H, W) looks like: itself."""
        return sample

    def own_size(self, shapes: npt.NDArray[np.int32]) -> bool:
        """Whether views may be cut from samples of their own sides (N, 2): where these differ from the canvas's."""
        return self.fit != "pad" and not bool((shapes == self.size).all())


def read_image(content: bytes, canvas: Input) -> Pixels:
    """Decode a file's bytes, or an array that sharding stored: (H, W, canvas.channels) uint8.

    Raises:
        Unreadable: no picture, or a damaged one.
        Refusal: channels that cannot become the canvas's.
    """
    found = decode_array(content) if content.startswith(NUMPY) else decode(content, canvas.range)
    return on_channels(found, canvas)


def on_channels(found: Decoded, canvas: Input) -> Pixels:
    """A decoded picture with the canvas's channels; bands that are no opacity are never dropped. Raises Refusal."""
    channels = found.pixels.shape[2]
    if channels != canvas.channels and channels in (2, 4) and not found.alpha:
        raise Refusal(_other_channels(channels, canvas.channels))
    return as_channels(found.pixels, canvas.channels, canvas.background)


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
    if (height, width) == (canvas.height, canvas.width):
        return np.array(np.moveaxis(pixels, 2, 0), order="C")
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
    raise Refusal(_other_channels(found, channels))


def _stored(found: Decoded, raw: bytes, pixels: Pixels, array: bool) -> tuple[str, bytes]:
    """Extension and bytes: the raw ones where any reader sees the same pixels in them, else without loss."""
    if found.plain and not array:
        return found.extension, raw
    keeps = pixels if found.alpha else found.pixels
    if keeps.shape[2] in (1, 3):
        return "png", encode_png(keeps)
    return "npy", encode_array(keeps)


def _other_channels(found: int, channels: int) -> str:
    return f"picture with {found} channels: cannot become the {channels} of input.channels; declare channels: {found}"


def _scaled(band: Pixels, height: int, width: int) -> Pixels:
    """Resize one band (H, W), antialiased where it shrinks."""
    if band.shape == (height, width):
        return band
    scaled = Image.fromarray(np.ascontiguousarray(band)).resize((width, height), Image.Resampling.BILINEAR)
    resized: Pixels = np.asarray(scaled)
    return resized
