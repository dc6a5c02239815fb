"""Thumbnails: RGB of one size, sharp where enlarged, and the mean colour where shrunk."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.images import thumbnail


@pytest.mark.parametrize("channels", [1, 2, 3, 7])
def test_a_thumbnail_is_rgb_whatever_the_channels(channels: int) -> None:
    pixels = np.arange(channels * 6 * 9, dtype=np.uint8).reshape(channels, 6, 9)
    small = thumbnail(pixels, 9)
    assert small.dtype == np.uint8
    assert small.shape == (6, 9, 3)
    shown = pixels[[0, 0, 0]] if channels < 3 else pixels[:3]
    assert (small == np.moveaxis(shown, 0, 2)).all()


def test_a_small_picture_is_enlarged_by_a_whole_factor_and_stays_sharp() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (3, 12, 7), dtype=np.uint8)
    large = thumbnail(pixels, 64)
    assert large.shape == (60, 35, 3)
    assert (large[2::5, 2::5] == np.moveaxis(pixels, 0, 2)).all()
    assert (large[::5] == large[4::5]).all()


def test_a_large_picture_is_shrunk_to_the_mean_of_what_a_pixel_covers() -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (3, 64, 32), dtype=np.uint8)
    small = thumbnail(pixels, 16)
    assert small.shape == (16, 8, 3)
    means = pixels.reshape(3, 16, 4, 8, 4).mean(axis=(2, 4))
    assert np.abs(small - np.moveaxis(means, 0, 2)).max() <= 1


def test_a_line_of_pixels_has_a_thumbnail() -> None:
    assert thumbnail(np.zeros((1, 1, 1000), np.uint8), 32).shape == (1, 32, 3)
