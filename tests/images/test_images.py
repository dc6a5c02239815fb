"""Any picture file becomes the canvas's pixels, or a reason."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pipeline.images import Input, Unreadable, decode, encode_png, fit_image
from pipeline.spec import Refusal

RNG = np.random.default_rng(0)
COLOUR = RNG.integers(0, 256, (9, 7, 3), dtype=np.uint8)


def saved(image: Image.Image, form: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def canvas(height: int = 8, width: int = 8, channels: int = 3, fit: Any = "resize", background: int = 0) -> Input:
    return Input(height=height, width=width, channels=channels, fit=fit, background=background)


@given(st.integers(1, 12), st.integers(1, 12), st.sampled_from([1, 3]), st.integers(0, 99))
def test_a_png_comes_back_exactly(height: int, width: int, channels: int, seed: int) -> None:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=np.uint8)
    back, extension, *_ = decode(encode_png(pixels))
    assert extension == "png"
    np.testing.assert_array_equal(back, pixels)


@pytest.mark.parametrize(
    ("form", "extension"),
    [("PNG", "png"), ("BMP", "bmp"), ("TIFF", "tif"), ("JPEG", "jpg"), ("WEBP", "webp"), ("GIF", "gif")],
)
def test_the_format_is_decided_by_the_bytes(form: str, extension: str) -> None:
    pixels, found, *_ = decode(saved(Image.fromarray(COLOUR), form))
    assert found == extension
    assert pixels.shape == (9, 7, 3)


def test_sixteen_bit_grey_is_scaled_and_not_clipped() -> None:
    levels = np.array([[0, 200, 257, 32768, 65535]], dtype=np.uint16)
    for form in ("PNG", "TIFF"):
        np.testing.assert_array_equal(decode(saved(Image.fromarray(levels), form))[0][..., 0], [[0, 1, 1, 128, 255]])


def test_pixels_of_unknown_range_are_refused() -> None:
    for dtype in (np.int32, np.float32):
        with pytest.raises(Unreadable, match="values of unknown range"):
            decode(saved(Image.fromarray(np.ones((3, 3), dtype)), "TIFF"))


def test_transparent_pixels_show_the_background_and_never_what_is_under_them() -> None:
    pixels = np.dstack([COLOUR, np.zeros((9, 7), np.uint8)])
    pixels[:, :3, 3] = 255
    content = saved(Image.fromarray(pixels), "PNG")
    shown = fit_image(decode(content)[0], canvas(9, 7, background=200))
    assert (shown[:, :, 3:] == 200).all()
    np.testing.assert_array_equal(shown[:, :, :3], COLOUR[:, :3].transpose(2, 0, 1))


def test_a_palette_with_a_transparent_entry_is_read_as_colours_with_alpha() -> None:
    image = Image.fromarray(COLOUR).quantize(8)
    content = saved(image, "PNG", transparency=0)
    assert decode(content)[0].shape == (9, 7, 4)
    assert decode(saved(image, "PNG"))[0].shape == (9, 7, 3)


def test_cmyk_becomes_rgb_near_its_source() -> None:
    flat = Image.new("RGB", (16, 16), (200, 60, 90))
    pixels = decode(saved(flat.convert("CMYK"), "JPEG", quality=95))[0]
    assert pixels.shape == (16, 16, 3)
    assert np.abs(pixels.astype(int) - (200, 60, 90)).max() < 8


def test_a_picture_is_turned_upright_by_its_exif_orientation() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    pixels = decode(saved(Image.fromarray(COLOUR), "PNG", exif=exif))[0]
    np.testing.assert_array_equal(pixels, np.rot90(COLOUR, -1))


def test_only_the_first_frame_of_an_animation_is_read() -> None:
    frames = [Image.new("RGB", (5, 5), colour) for colour in ("red", "lime")]
    pixels = decode(saved(frames[0], "GIF", save_all=True, append_images=frames[1:]))[0]
    assert (pixels == (255, 0, 0)).all()


def bomb(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


@pytest.mark.parametrize("side", [8_200, 9_500, 20_000])
def test_a_header_of_too_many_pixels_is_refused_before_anything_is_allocated(side: int) -> None:
    content = bomb(side, side)
    tracemalloc.start()
    with pytest.raises(Unreadable, match="too many pixels"):
        decode(content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


@pytest.mark.parametrize(
    "options", [{}, {"lossless": True}, {"save_all": True, "append_images": [Image.new("RGB", (7, 9))]}]
)
def test_the_size_of_a_webp_is_judged_before_its_decoder_makes_room(options: Any) -> None:
    content = saved(Image.fromarray(COLOUR), "WEBP", **options)
    assert decode(content).pixels.shape == (9, 7, 3)
    start = {b"VP8 ": 26, b"VP8L": 21, b"VP8X": 24}[content[12:16]]
    wide = {b"VP8 ": b"\xff\x3f\xff\x3f", b"VP8L": b"\xff\xff\xff\x0f", b"VP8X": b"\xff\xff\0\xff\xff\0"}[
        content[12:16]
    ]
    with pytest.raises(Unreadable, match="too many pixels"):
        decode(content[:start] + wide + content[start + len(wide) :])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not a picture"),
        (b"<html>404</html>", "not a picture"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not a picture"),
        (saved(Image.fromarray(COLOUR), "PNG")[:-40], "damaged picture"),
        (saved(Image.fromarray(np.tile(COLOUR, (9, 9, 1))), "JPEG")[:-900], "damaged picture"),
    ],
)
def test_what_cannot_be_decoded_has_a_reason(content: bytes, reason: str) -> None:
    with pytest.raises(Unreadable) as raised:
        decode(content)
    assert raised.value.reason == reason


@given(st.binary(max_size=300), st.sampled_from(["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP"]), st.integers(0, 200))
def test_damage_of_any_kind_gives_pixels_or_a_reason_and_nothing_else(noise: bytes, form: str, at: int) -> None:
    whole = saved(Image.fromarray(COLOUR), form)
    damaged = whole[:at] + noise + whole[at + len(noise) :]
    try:
        pixels, *_ = decode(damaged)
    except Unreadable:
        return
    assert pixels.dtype == np.uint8
    assert pixels.ndim == 3


def test_pad_centres_without_scaling_and_resize_fills() -> None:
    small = COLOUR[:4, :4, :1]
    padded = fit_image(small, canvas(8, 10, 1, "pad", background=9))
    assert padded.shape == (1, 8, 10)
    np.testing.assert_array_equal(padded[0, 2:6, 3:7], small[..., 0])
    assert (np.delete(padded[0], range(2, 6), axis=0) == 9).all()
    assert fit_image(np.full((4, 4, 1), 7, np.uint8), canvas(8, 10, 1)).tolist() == [[[7] * 10] * 8]


def test_pad_shrinks_what_is_larger_and_keeps_its_aspect() -> None:
    shown = fit_image(np.full((20, 8000), 255, np.uint8), canvas(16, 16, 1, "pad"))
    assert shown[0].any(axis=1).sum() == 1
    shown = fit_image(np.full((32, 16), 255, np.uint8), canvas(16, 16, 1, "pad"))
    assert shown[0].any(axis=0).sum() == 8
    assert shown[0].any(axis=1).sum() == 16


def test_grey_and_colour_convert_as_pillow_does() -> None:
    same = canvas(9, 7, 1)
    np.testing.assert_array_equal(fit_image(COLOUR, same)[0], np.asarray(Image.fromarray(COLOUR).convert("L")))
    grey = COLOUR[..., 0]
    assert (fit_image(grey, canvas(9, 7)) == grey).all()


@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from(["pad", "resize"]), st.sampled_from([1, 2, 3, 4]))
def test_every_picture_gets_the_size_of_the_canvas_and_stays_in_its_range(h: int, w: int, fit: Any, c: int) -> None:
    pixels = np.full((h, w, c), 90, np.uint8)
    shown = fit_image(pixels, canvas(11, 13, 3, fit, background=60))
    assert shown.shape == (3, 11, 13)
    assert 60 <= shown.min() <= shown.max() <= 90


def test_what_cannot_go_on_the_canvas_is_refused() -> None:
    for bad in (np.zeros((2, 2, 5), np.uint8), np.zeros((2, 2, 3)), np.zeros((0, 2, 3), np.uint8)):
        with pytest.raises(Refusal):
            fit_image(bad, canvas())
    assert fit_image(np.zeros((2, 2, 5), np.uint8), canvas(channels=5)).shape == (5, 8, 8)
