"""Log-mel spectrograms as a layer without weights: framed, windowed, transformed by one matrix product, filtered.

The arithmetic is librosa's (``feature.melspectrogram`` with ``center=True``, zeros outside, Slaney's scale and filters
of equal area, ``power_to_db`` with ``ref=1``): M. Slaney, "Auditory Toolbox", Interval Research 1998-010; S. Davis and
P. Mermelstein, IEEE Trans. ASSP 28, 1980. The transform is a product with cosines and sines, which every device and
every exported format can do, and which float32 keeps exact where TF32 convolutions do not.

Legend: N clips, C channels, T samples, F = 1 + T // hop frames, K samples of a transform, M mel bins.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

LINEAR = 200.0 / 3  # hertz a mel below KNEE
KNEE = 1000.0  # hertz, from where the scale is logarithmic
STEP = math.log(6.4) / 27  # of the logarithm a mel above
Numbers = npt.NDArray[np.float64]


def to_mel(hertz: Numbers) -> Numbers:
    """Hertz on Slaney's mel scale."""
    above = KNEE / LINEAR + np.log(np.maximum(hertz, KNEE) / KNEE) / STEP
    return np.where(hertz < KNEE, hertz / LINEAR, above)


def to_hertz(mel: Numbers) -> Numbers:
    """The inverse of ``to_mel``."""
    knee = KNEE / LINEAR
    return np.where(mel < knee, mel * LINEAR, KNEE * np.exp(STEP * (np.maximum(mel, knee) - knee)))


def mel_filters(rate: int, points: int, bins: int, low: float, high: float) -> Numbers:
    """Triangles of equal area (bins, points // 2 + 1) over the frequencies of a transform of ``points`` samples."""
    frequencies = np.linspace(0, rate / 2, points // 2 + 1)
    first, last = to_mel(np.array([low, high])).tolist()
    edges = to_hertz(np.linspace(first, last, bins + 2))
    rising = (frequencies - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - frequencies) / np.diff(edges)[1:, None]
    triangles = np.maximum(0.0, np.minimum(rising, falling))
    filters: Numbers = triangles * (2.0 / (edges[2:] - edges[:-2]))[:, None]
    return filters


def transform_points(rate: int, window: float) -> tuple[int, int]:
    """Samples of a window of ``window`` ms, and of the transform: the next power of two."""
    samples = round(rate * window / 1000)
    return samples, 1 << max(1, (samples - 1).bit_length())


def empty_filters(rate: int, window: float, bins: int, low: float, high: float) -> int:
    """How many of the filters fall between two frequencies of the transform, and so hear nothing."""
    filters = mel_filters(rate, transform_points(rate, window)[1], bins, low, high)
    return int((filters.max(axis=1) == 0).sum())


def fitting_bins(rate: int, window: float, most: int) -> int:
    """How many bins up to half the rate a window of ``window`` ms tells apart: ``most``, or a usual smaller number."""
    usual = (most, *(count for count in (32, 24, 16, 8) if count < most))
    return next((count for count in usual if not empty_filters(rate, window, count, 0.0, rate / 2)), 4)


class LogMelLayer(nn.Module):
    """x (N, C, T) → decibels (N, C, M, F).

    Args:
        rate: hertz.
        window, hop: milliseconds.
        bins: M.
        low, high: hertz, the edges of the filters.
        floor: decibels, the least.
    """

    basis: Tensor
    filters: Tensor

    def __init__(self, rate: int, window: float, hop: float, bins: int, low: float, high: float, floor: float):
        super().__init__()
        samples, points = transform_points(rate, window)
        self.points, self.hop, self.least = points, max(1, round(rate * hop / 1000)), 10 ** (floor / 10)
        before = (points - samples) // 2
        hann = np.zeros(points)
        hann[before : before + samples] = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(samples) / samples)
        turns = 2 * np.pi * np.outer(np.arange(points), np.arange(points // 2 + 1)) / points
        basis = np.concatenate([np.cos(turns), -np.sin(turns)], axis=1) * hann[:, None]  # (K, 2 (K/2 + 1))
        filters = mel_filters(rate, points, bins, low, high).T  # (K/2 + 1, M)
        self.register_buffer("basis", torch.tensor(basis, dtype=torch.float32), persistent=False)
        self.register_buffer("filters", torch.tensor(filters, dtype=torch.float32), persistent=False)

    def power(self, x: Tensor) -> Tensor:
        """Mel power (N, C, F, M)."""
        frames = functional.pad(x, (self.points // 2, self.points // 2)).unfold(-1, self.points, self.hop)
        parts = frames @ self.basis.to(x.dtype)  # (N, C, F, 2 (K/2 + 1))
        real, imaginary = parts.chunk(2, dim=-1)
        power: Tensor = (real.square() + imaginary.square()) @ self.filters.to(x.dtype)
        return power

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cuda" if x.is_cuda else "cpu", enabled=False):  # half precision has too few digits
            wide = x if x.dtype == torch.float64 else x.float()
            decibels = 10.0 * self.power(wide).clamp(min=self.least).log10()
        return decibels.transpose(-1, -2)
