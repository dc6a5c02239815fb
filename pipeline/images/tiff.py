"""TIFF beyond 8-bit grey and colour: any number of bands, 8 to 64 bits, integers and floats, as they are in the file.

Strips or tiles, bands together or apart, either byte order, classic and BigTIFF. The compressed segments are undone by
libtiff (each is shown to Pillow as a one-band picture of bytes), predictors by NumPy. Sizes are judged before anything
is allocated. Source: Adobe, "TIFF Revision 6.0", 1992; predictor 3: "TIFF Technical Note 3", 2005.

Legend: H, W of the first page, S samples (bands) a pixel.
"""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
from PIL import Image

from pipeline.samples import Unreadable

PIXEL_LIMIT = 2**26
"""Largest height x width of a header that is decoded (201 MB as RGB)."""

BYTE_LIMIT = 2**28
"""Largest size of a page's values in memory."""

KINDS = {1: "u", 2: "i", 3: "f"}
FORMATS = {1: "B", 2: "B", 3: "H", 4: "I", 5: "II", 6: "b", 7: "B", 8: "h", 9: "i", 11: "f", 12: "d", 13: "I"}
WIDE = {16: "Q", 17: "q", 18: "Q"}
COMPRESSIONS = {1: 1, 5: 5, 8: 8, 32946: 8, 32773: 32773, 34925: 34925, 50000: 50000}
"""none, LZW, deflate (old and new number), PackBits, LZMA, Zstandard: as in a file → as libtiff is asked."""

MIRRORED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
"""Each byte with its bits in the other order (fill order 2)."""


@dataclass(frozen=True)
class Page:
    """The first page's tags, and what it needs of the file."""

    order: Literal["<", ">"]
    """struct's sign of the byte order"""
    tags: dict[int, tuple[Any, ...]]
    alone: bool
    """whether there is no second page"""

    def one(self, tag: int, default: int | None = None) -> int:
        """The first value of a tag. Raises Unreadable where it is missing and has no default."""
        values = self.tags.get(tag)
        if not values:
            if default is None:
                raise Unreadable("damaged picture", f"TIFF tag {tag} is missing")
            return default
        return int(values[0])

    @property
    def samples(self) -> int:
        """S."""
        return self.one(277, 1)

    @property
    def bits(self) -> set[int]:
        """Bits a sample, of all bands."""
        return {int(bits) for bits in self.tags.get(258, (1,))}

    @property
    def has_alpha(self) -> bool:
        """Whether the last band is declared to be opacity."""
        return int((self.tags.get(338) or (0,))[-1]) in (1, 2)

    @property
    def ordinary(self) -> bool:
        """Whether Pillow reads all of it without loss: at most 8 bits, grey or colour with or without alpha."""
        if max(self.bits) > 8 or set(self.tags.get(339, (1,))) - {1, 4}:
            return False
        colours = {5: 4, 2: 3, 6: 3, 8: 3}.get(self.one(262, 1), 1)
        return self.samples == colours + self.has_alpha


def read_page(content: bytes) -> Page:
    """Read the first page's tags. Raises Unreadable."""
    order = {b"II": "<", b"MM": ">"}.get(content[:2])
    try:
        if order is None:
            raise Unreadable("not a picture", "no TIFF")
        (version,) = struct.unpack_from(order + "H", content, 2)
        wide = version == 43
        at = struct.unpack_from(order + ("Q" if wide else "I"), content, 8 if wide else 4)[0]
        (count,) = struct.unpack_from(order + ("Q" if wide else "H"), content, at)
        step, at = (20, at + 8) if wide else (12, at + 2)
        if version not in (42, 43) or count > 4096:
            raise Unreadable("damaged picture", "impossible TIFF header")
        tags = {}
        for entry in range(at, at + count * step, step):
            tag, kind, number = struct.unpack_from(order + ("HHQ" if wide else "HHI"), content, entry)
            form = WIDE.get(kind, FORMATS.get(kind))
            if form is None:
                continue
            place, room = entry + step - (8 if wide else 4), 8 if wide else 4
            size = struct.calcsize("=" + form) * number
            if size > len(content):
                raise Unreadable("damaged picture", f"TIFF tag {tag} is larger than the file")
            if size > room:
                (place,) = struct.unpack_from(order + ("Q" if wide else "I"), content, place)
            tags[tag] = struct.unpack_from(order + form * number, content, place)
        (following,) = struct.unpack_from(order + ("Q" if wide else "I"), content, at + count * step)
    except struct.error as error:
        raise Unreadable("damaged picture", f"TIFF header: {error}") from None
    return Page(cast(Literal["<", ">"], order), tags, alone=following == 0)


def read_values(content: bytes, page: Page) -> npt.NDArray[Any]:
    """The values of the first page, (H, W, S), in the file's own type and native byte order. Raises Unreadable."""
    height, width, samples, bits = page.one(257), page.one(256), page.samples, page.bits
    kinds = {int(kind) for kind in page.tags.get(339, (1,))}
    dtype = _dtype(bits, kinds)
    if height * width > PIXEL_LIMIT or height * width * samples * dtype.itemsize > BYTE_LIMIT:
        raise Unreadable("too many pixels", f"{width}x{height} of {samples} bands, {dtype}")
    if min(height, width, samples) < 1:
        raise Unreadable("damaged picture", f"{width}x{height} of {samples} bands")
    tiled = 322 in page.tags
    rows = page.one(323) if tiled else min(page.one(278, height), height)
    across = page.one(322) if tiled else width
    if min(rows, across) < 1 or rows * across * samples * dtype.itemsize > BYTE_LIMIT:
        raise Unreadable("damaged picture", f"TIFF segments of {across}x{rows}")
    apart = page.one(284, 1) == 2
    inner, planes = (1, samples) if apart else (samples, 1)
    offsets, sizes = (page.tags.get(tag, ()) for tag in ((324, 325) if tiled else (273, 279)))
    down, aside = -(-height // rows), -(-width // across)
    if len(offsets) != down * aside * planes or len(sizes) != len(offsets):
        raise Unreadable("damaged picture", f"{len(offsets)} TIFF segments where {down * aside * planes} are needed")
    values = np.empty((height, width, samples), dtype)
    for number, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
        plane, place = divmod(number, down * aside)
        top, left = (place // aside) * rows, (place % aside) * across
        tall = rows if tiled else min(rows, height - top)
        data = _undone(content[offset : offset + size], page, tall, across * inner * dtype.itemsize)
        segment = _unpredicted(data, page, (tall, across, inner), dtype)[: height - top, : width - left]
        target = values[top : top + rows, left : left + across]
        target[..., plane : plane + inner] = segment
    return values


def _dtype(bits: set[int], kinds: set[int]) -> np.dtype[Any]:
    if len(bits) == 1 and len(kinds) == 1:
        kind, width = KINDS.get(next(iter(kinds)), ""), next(iter(bits))
        if kind and width in (8, 16, 32, 64) and not (kind == "f" and width == 8):
            return np.dtype(f"{kind}{width // 8}")
    raise Unreadable("TIFF layout", f"bits {sorted(bits)}, sample formats {sorted(kinds)}")


def _undone(data: bytes, page: Page, rows: int, row_bytes: int) -> bytes:
    """One segment without its compression: exactly rows x row_bytes."""
    compression = COMPRESSIONS.get(page.one(259, 1))
    if compression is None:
        raise Unreadable("TIFF layout", f"compression {page.one(259, 1)}")
    if page.one(266, 1) == 2:
        data = data.translate(MIRRORED)
    if compression != 1:
        entries = {256: row_bytes, 257: rows, 258: 8, 259: compression, 262: 1, 273: 8, 277: 1, 278: rows}
        entries[279] = len(data)
        table = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in sorted(entries.items()))
        start = 8 + len(data) + len(data) % 2
        header = b"II*\0" + struct.pack("<I", start) + data + b"\0" * (len(data) % 2)
        with Image.open(io.BytesIO(header + struct.pack("<H", len(entries)) + table + b"\0" * 4)) as image:
            data = image.tobytes()
    if len(data) < rows * row_bytes:
        raise Unreadable("damaged picture", "a TIFF segment is cut")
    return data[: rows * row_bytes]


def _unpredicted(data: bytes, page: Page, shape: tuple[int, int, int], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Values (rows, columns, inner) of a segment, differences along each row summed up."""
    predictor = page.one(317, 1)
    if predictor == 3:
        rows, columns, inner = shape
        table = np.frombuffer(data, np.uint8).reshape(rows, columns * dtype.itemsize, inner)
        summed = np.cumsum(table, axis=1, dtype=np.uint8).reshape(rows, dtype.itemsize, columns * inner)
        ordered = np.ascontiguousarray(summed.transpose(0, 2, 1))  # most significant byte first
        return ordered.view(dtype.newbyteorder(">")).astype(dtype).reshape(shape)
    values = np.frombuffer(data, dtype.newbyteorder(page.order)).reshape(shape).astype(dtype)
    if predictor == 2 and dtype.kind != "f":
        return np.cumsum(values, axis=1, dtype=dtype)
    if predictor != 1:
        raise Unreadable("TIFF layout", f"predictor {predictor} on {dtype}")
    return values
