"""The short way of decoding is the long way: pixel by pixel Pillow's, over every kind of file that it writes."""

from __future__ import annotations

import io
import itertools
import tarfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from pipeline.images import Unreadable, decode

RNG = np.random.default_rng(0)
NOISE = Image.fromarray(RNG.integers(0, 256, (21, 34, 3), dtype=np.uint8))
SMOOTH = Image.linear_gradient("L").resize((34, 21)).convert("RGB")
CIFAR = Path("../shared/data/natural/cifar10_test.tar.gz")


def reference(content: bytes) -> np.ndarray:
    """Pillow's own way: open, turn, convert."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        image = ImageOps.exif_transpose(Image.open(io.BytesIO(content)))
        if image.has_transparency_data:
            image = image.convert("LA" if image.mode in ("1", "L", "LA", "La") else "RGBA")
        elif image.mode not in ("L", "RGB"):
            image = image.convert("L" if image.mode == "1" else "RGB")
        pixels = np.asarray(image)
    return pixels[..., None] if pixels.ndim == 2 else pixels


def saved(image: Image.Image, form: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def turned(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x010F] = "maker"
    return exif


def files() -> Iterator[tuple[str, bytes]]:
    """(name, bytes) of files of every format, mode and option."""
    for image, quality, sub, progressive in itertools.product((NOISE, SMOOTH), (10, 75, 100), (0, 1, 2), (False, True)):
        options = {"quality": quality, "subsampling": sub, "progressive": progressive}
        yield f"jpeg {options}", saved(image, "JPEG", **options)
    for mode in ("L", "CMYK"):
        yield f"jpeg {mode}", saved(NOISE.convert(mode), "JPEG")
    for orientation in range(9):
        for form in ("JPEG", "PNG", "WEBP", "TIFF"):
            yield f"{form} turned {orientation}", saved(NOISE, form, exif=turned(orientation))
    yield "jpeg with a colour profile", saved(NOISE, "JPEG", icc_profile=b"no profile")
    yield "jpeg with a comment", saved(NOISE, "JPEG", comment=b"x" * 4000)
    yield "jpeg with xmp", saved(NOISE, "JPEG", xmp=b"<x:xmpmeta><tiff:Orientation>6</tiff:Orientation></x:xmpmeta>")
    yield "jpeg with broken exif", saved(NOISE, "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff")
    yield "several pictures in one jpeg", saved(NOISE, "MPO", save_all=True, append_images=[SMOOTH])
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA"):
        for form in ("PNG", "WEBP", "GIF", "TIFF", "BMP"):
            image = NOISE.convert("RGBA").convert(mode) if mode != "RGBA" else NOISE.convert("RGBA")
            try:
                yield f"{form} {mode}", saved(image, form)
            except (OSError, ValueError):
                continue
    yield "png with a transparent level", saved(NOISE.convert("L"), "PNG", transparency=7)
    yield "png with a transparent colour", saved(NOISE, "PNG", transparency=(1, 2, 3))
    yield "png palette with opacities", saved(NOISE.quantize(16), "PNG", transparency=bytes(range(16)))
    for bits in (1, 2, 4):
        yield f"png of {bits} bits", saved(NOISE.quantize(2**bits), "PNG", bits=bits)
    yield "animated png", saved(NOISE, "PNG", save_all=True, append_images=[SMOOTH])
    yield "animated webp", saved(NOISE, "WEBP", save_all=True, append_images=[SMOOTH], lossless=True)
    yield "animated gif", saved(NOISE, "GIF", save_all=True, append_images=[SMOOTH])
    yield "transparent gif", saved(NOISE.quantize(8), "GIF", transparency=3)
    for compression in ("raw", "tiff_lzw", "tiff_deflate", "packbits", "jpeg", "zstd"):
        for mode in ("L", "RGB", "CMYK"):
            try:
                yield f"tiff {compression} {mode}", saved(NOISE.convert(mode), "TIFF", compression=compression)
            except (OSError, ValueError):
                continue
    yield "tiff group4", saved(NOISE.convert("1"), "TIFF", compression="group4")


FILES = dict(files())


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_decoded_as_pillow_does(name: str) -> None:
    found = decode(FILES[name])
    np.testing.assert_array_equal(found.pixels, reference(FILES[name]))
    assert found.alpha == (found.pixels.shape[2] in (2, 4))


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data:UserWarning")
@pytest.mark.parametrize("name", FILES)
def test_what_is_called_plain_shows_the_same_to_any_reader(name: str) -> None:
    found = decode(FILES[name])
    if found.plain:
        with Image.open(io.BytesIO(FILES[name])) as image:
            mode = "L" if found.pixels.shape[2] == 1 else "RGB"
            assert getattr(image, "n_frames", 1) == 1 or found.extension == "jpg"
            shown = np.asarray(image.convert(mode))
        np.testing.assert_array_equal(shown.reshape(found.pixels.shape), found.pixels)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_cut_has_a_reason_or_all_of_its_pixels(name: str) -> None:
    content = FILES[name]
    for share in (0.02, 0.3, 0.6, 0.95):
        try:
            pixels = decode(content[: int(len(content) * share)]).pixels
        except Unreadable:
            continue
        np.testing.assert_array_equal(pixels, reference(content))


@pytest.mark.parametrize("form", ["ICO", "PPM", "TGA", "PCX", "SGI", "JPEG2000", "EPS", "PDF", "AVIF", "DDS"])
def test_no_other_format_is_opened(form: str) -> None:
    try:
        content = saved(NOISE, form)
    except (OSError, KeyError, ValueError):
        pytest.skip(f"Pillow does not write {form} here")
    with pytest.raises(Unreadable, match="not a picture"):
        decode(content)


@pytest.mark.skipif(not CIFAR.is_file(), reason="../shared/data/natural is not there")
def test_photographs_are_decoded_as_pillow_does() -> None:
    with tarfile.open(CIFAR) as tar:
        contents = [
            file.read()
            for member in itertools.islice(tar, 600)
            if member.isfile() and (file := tar.extractfile(member))
        ]
    for content in contents:
        found = decode(content)
        np.testing.assert_array_equal(found.pixels, reference(content))
        assert found.plain
