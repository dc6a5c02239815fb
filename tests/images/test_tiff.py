"""TIFF of any layout: written here tag by tag, read back value by value; and damage of any kind has a reason."""

from __future__ import annotations

import io
import itertools
import struct
import tracemalloc
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pipeline.images import Input, Unreadable, decode, read_image
from pipeline.images.tiff import read_page, read_values
from pipeline.spec import Refusal

KINDS = {"u": 1, "i": 2, "f": 3}


def lzw(data: bytes) -> bytes:
    """Weak but valid LZW: literals only, the table cleared before it grows to ten bits."""
    codes = []
    for start in range(0, len(data), 200):
        codes += [256, *data[start : start + 200]]
    bits = "".join(f"{code:09b}" for code in [*codes, 257])
    bits += "0" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def packbits(data: bytes) -> bytes:
    return b"".join(
        bytes([len(data[start : start + 128]) - 1]) + data[start : start + 128] for start in range(0, len(data), 128)
    )


SQUEEZE = {1: bytes, 5: lzw, 8: zlib.compress, 32946: zlib.compress, 32773: packbits}


def written(
    values: np.ndarray,
    order: str = "<",
    compression: int = 1,
    tile: tuple[int, int] | None = None,
    rows: int | None = None,
    apart: bool = False,
    predictor: int = 1,
    wide: bool = False,
    **tags: Any,
) -> bytes:
    """A TIFF of one page (H, W, S), tag by tag."""
    height, width, samples = values.shape
    rows = rows or height
    down, across = tile or (rows, width)
    segments = []
    for plane in range(samples) if apart else [None]:
        chosen = values if plane is None else values[..., plane : plane + 1]
        for top, left in itertools.product(range(0, height, down), range(0, width, across)):
            part = chosen[top : top + down, left : left + across]
            if tile:
                part = np.pad(part, ((0, down - part.shape[0]), (0, across - part.shape[1]), (0, 0)))
            segments.append(SQUEEZE[compression](predicted(part, predictor, order)))
    entries: dict[int, tuple[str, list[int]]] = {
        256: ("I", [width]),
        257: ("I", [height]),
        258: ("H", [values.dtype.itemsize * 8] * samples),
        259: ("H", [compression]),
        262: ("H", [1]),
        277: ("H", [samples]),
        284: ("H", [2 if apart else 1]),
        317: ("H", [predictor]),
        339: ("H", [KINDS[values.dtype.kind]] * samples),
    }
    entries |= {323: ("I", [down]), 322: ("I", [across])} if tile else {278: ("I", [rows])}
    where, sizes = (324, 325) if tile else (273, 279)
    body, offsets = b"", []
    start = 16 if wide else 8
    for segment in segments:
        offsets.append(start + len(body))
        body += segment + b"\0" * (len(segment) % 2)
    entries[where] = ("Q" if wide else "I", offsets)
    entries[sizes] = ("I", [len(segment) for segment in segments])
    entries |= {int(tag.removeprefix("tag")): ("H", value) for tag, value in tags.items()}
    return header(order, wide, start + len(body)) + body + table(entries, order, wide, start + len(body))


def header(order: str, wide: bool, at: int) -> bytes:
    sign = b"II" if order == "<" else b"MM"
    return sign + (struct.pack(order + "HHHQ", 43, 8, 0, at) if wide else struct.pack(order + "HI", 42, at))


def table(entries: dict[int, tuple[str, list[int]]], order: str, wide: bool, at: int) -> bytes:
    numbers = {"H": 3, "I": 4, "Q": 16}
    step, room, form = (20, 8, "Q") if wide else (12, 4, "I")
    after = at + (16 if wide else 6) + step * len(entries)
    listed, loose = b"", b""
    for tag, (kind, content) in sorted(entries.items()):
        data = struct.pack(order + kind * len(content), *content)
        if len(data) > room:
            place = struct.pack(order + form, after + len(loose))
            loose += data + b"\0" * (len(data) % 2)
            data = place
        listed += struct.pack(order + "HH" + form, tag, numbers[kind], len(content)) + data.ljust(room, b"\0")
    return struct.pack(order + ("Q" if wide else "H"), len(entries)) + listed + bytes(room) + loose


def predicted(part: np.ndarray, predictor: int, order: str) -> bytes:
    if predictor == 2:
        part = np.diff(part, axis=1, prepend=np.zeros_like(part[:, :1]))
    if predictor == 3:
        rows, columns, samples = part.shape
        ordered = part.astype(part.dtype.newbyteorder(">")).tobytes()
        planes = np.frombuffer(ordered, np.uint8).reshape(rows, columns * samples, part.dtype.itemsize)
        spread = planes.transpose(0, 2, 1).reshape(rows, -1, samples)
        return np.diff(spread, axis=1, prepend=np.zeros_like(spread[:, :1])).astype(np.uint8).tobytes()
    return part.astype(part.dtype.newbyteorder(order)).tobytes()


def random(shape: tuple[int, int, int], dtype: Any, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return generator.normal(size=shape).astype(kind)
    limits = np.iinfo(kind)
    return generator.integers(limits.min, limits.max, shape, dtype=kind, endpoint=True)


LAYOUTS: list[dict[str, Any]] = [
    {},
    {"rows": 4},
    {"tile": (16, 16)},
    {"apart": True},
    {"apart": True, "rows": 3},
    {"apart": True, "tile": (16, 32)},
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("compression", SQUEEZE)
@pytest.mark.parametrize("dtype", ["u1", "u2", "i2", "f4"])
def test_every_layout_comes_back_value_by_value(layout: Any, order: str, compression: int, dtype: str) -> None:
    values = random((19, 37, 5), dtype)
    content = written(values, order, compression, **layout)
    np.testing.assert_array_equal(read_values(content, read_page(content)), values)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("dtype", "predictor"), [("u1", 2), ("u2", 2), ("i4", 2), ("f4", 3), ("f8", 3), ("f8", 1)])
def test_predictors_and_big_files_come_back(order: str, wide: bool, dtype: str, predictor: int) -> None:
    values = random((7, 11, 2), dtype)
    content = written(values, order, 8, predictor=predictor, wide=wide, rows=2)
    np.testing.assert_array_equal(read_values(content, read_page(content)), values)


def test_bits_in_the_other_order_and_lzma_come_back() -> None:
    values = random((7, 11, 5), "u2")
    plain = written(values, tag266=[2])
    start, size = 8, values.nbytes
    mirrored = bytes(int(f"{byte:08b}"[::-1], 2) for byte in plain[start : start + size])
    content = plain[:start] + mirrored + plain[start + size :]
    np.testing.assert_array_equal(read_values(content, read_page(content)), values)
    buffer = io.BytesIO()
    try:
        Image.fromarray(values[..., 0]).save(buffer, "TIFF", compression="lzma")
    except (OSError, ValueError):
        pytest.skip("Pillow has no LZMA here")
    np.testing.assert_array_equal(read_values(buffer.getvalue(), read_page(buffer.getvalue())), values[..., :1])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"tag258": [12] * 5}, r"TIFF layout \(bits \[12\]"),
        ({"tag258": [8, 8, 8, 8, 16]}, r"bits \[8, 16\]"),
        ({"tag339": [6] * 5}, r"sample formats \[6\]"),
        ({"tag259": [7]}, "compression 7"),
        ({"tag278": [0]}, "damaged picture"),
        ({"tag256": [0]}, "damaged picture"),
    ],
)
def test_other_layouts_are_refused_by_their_names(changes: Any, told: str) -> None:
    with pytest.raises(Unreadable, match=told):
        decode(written(random((8, 10, 5), "u1"), **changes))


def test_a_page_that_names_itself_as_the_next_is_read_once() -> None:
    content = bytearray(written(random((4, 4, 5), "u1")))
    (at,) = struct.unpack_from("<I", content, 4)
    (count,) = struct.unpack_from("<H", content, at)
    struct.pack_into("<I", content, at + 2 + 12 * count, at)
    assert decode(bytes(content)).pixels.shape == (4, 4, 5)


def test_wide_values_are_scaled_by_the_declared_range_and_refused_without_one() -> None:
    values = np.array([[[-1.0], [0.0], [0.5], [1.0], [2.0]]], np.float32)
    assert decode(written(values), (0.0, 1.0)).pixels[0, :, 0].tolist() == [0, 0, 128, 255, 255]
    with pytest.raises(Unreadable, match=r"float32 pixels; declare input\.range"):
        decode(written(values))
    twelve = np.array([[[0], [2048], [4095]]], np.uint16)
    assert decode(written(twelve), (0.0, 4095.0)).pixels[0, :, 0].tolist() == [0, 128, 255]
    values[0, 2, 0] = np.nan
    with pytest.raises(Unreadable, match=r"not finite \(nan at \(row, column, channel\) \(0, 2, 0\)\)"):
        decode(written(values), (0.0, 1.0))


def test_bands_are_never_taken_for_opacity_nor_dropped() -> None:
    four = random((4, 4, 4), "u1")
    canvas = Input(height=4, width=4, channels=3, fit="resize", background=9)
    unspecified = written(four, tag262=[2], tag338=[0])
    with pytest.raises(Refusal, match="4 channels"):
        read_image(unspecified, canvas)
    np.testing.assert_array_equal(read_image(unspecified, canvas.model_copy(update={"channels": 4})), four)
    deep = random((4, 4, 4), "u2")
    deep[..., 3] = 0
    shown = read_image(written(deep, tag262=[2], tag338=[2]), canvas)
    assert (shown == 9).all()


def test_white_is_zero_and_turned_pages_are_undone() -> None:
    values = random((3, 5, 1), "u2")
    plain = decode(written(values)).pixels
    np.testing.assert_array_equal(decode(written(values, tag262=[0])).pixels, 255 - plain)
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        buffer = io.BytesIO()
        Image.fromarray(plain[..., 0]).save(buffer, "PNG", exif=exif)
        turned = decode(written(values, tag274=[orientation])).pixels
        np.testing.assert_array_equal(turned, decode(buffer.getvalue()).pixels)


def test_ordinary_files_stay_with_pillow_and_keep_their_bytes() -> None:
    colour = random((9, 8, 3), "u1")
    for options in ({}, {"compression": "tiff_lzw"}, {"compression": "tiff_deflate"}, {"compression": "packbits"}):
        buffer = io.BytesIO()
        Image.fromarray(colour).save(buffer, "TIFF", **options)
        found = decode(buffer.getvalue())
        np.testing.assert_array_equal(found.pixels, colour)
        assert found.plain
    buffer = io.BytesIO()
    Image.fromarray(colour).save(buffer, "TIFF", save_all=True, append_images=[Image.new("RGB", (3, 3))])
    found = decode(buffer.getvalue())
    np.testing.assert_array_equal(found.pixels, colour)
    assert not found.plain


@pytest.mark.parametrize("changes", [{"tag256": [60000], "tag257": [60000]}, {"tag277": [60000]}, {"tag258": [12] * 5}])
def test_a_header_that_promises_too_much_allocates_nothing(changes: Any) -> None:
    content = written(random((8, 8, 5), "u1"), **changes)
    tracemalloc.start()
    with pytest.raises(Unreadable):
        decode(content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**23


@given(st.binary(min_size=1, max_size=40), st.integers(0, 900), st.sampled_from([1, 5, 8, 32773]))
def test_damage_of_any_kind_gives_pixels_or_a_reason(noise: bytes, at: int, compression: int) -> None:
    whole = written(random((8, 9, 5), "u2"), compression=compression, tile=(16, 16))
    try:
        found = decode(whole[:at] + noise + whole[at + len(noise) :])
    except Unreadable:
        return
    assert found.pixels.dtype == np.uint8


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_cut_file_has_a_reason(share: float) -> None:
    whole = written(random((8, 9, 5), "u2"))
    with pytest.raises(Unreadable):
        decode(whole[: int(len(whole) * share)])
