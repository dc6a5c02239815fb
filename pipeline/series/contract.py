"""Measurements -> the series that every sample of a data set has: so many channels, one length, one rate.

Values keep their unit; the network is normalised by the mean and spread of each channel over train. C channels, T steps
of a series, T' those of a file.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from pipeline.samples import TENTH, Extent, Steps, Taken, Unreadable, Values, drawn
from pipeline.series.decoding import decode
from pipeline.series.narrowing import Numbers, narrowed
from pipeline.spec import Refusal, Rule, Spec

if TYPE_CHECKING:
    from torch import Tensor  # decoding processes need no torch


class Series(Spec):
    """The window: what a file of measurements becomes before anything else sees it."""

    kind: Literal["series"]
    channels: int = Field(ge=1, le=4096)
    """files of another number are refused"""
    steps: int = Field(ge=1, le=2**24)
    """length of a series"""
    rate: int = Field(ge=1, le=10**9)
    """steps a second; 1 where time has no unit. Nothing is resampled"""
    names: tuple[str, ...] | None
    """of an .npz its one array; of CSV and Parquet the columns that are channels, of Parquet also columns of lists (all
    of one, or NAME[7:14]); null: the only array, all columns"""
    layout: Literal["time_first", "channels_first"]
    """of arrays: (steps, channels) or (channels, steps)"""
    longer: Literal["centre", "start"]
    """which part of a longer file is the series. Views that begin with a window read the whole file"""
    shorter: Literal["hold", "zero"]
    """what follows a shorter file: its last values, or 0"""

    word: ClassVar[str] = "series"
    sides: ClassVar[tuple[str, str]] = ("steps", "channels")
    levels: ClassVar[int] = 1
    exact: ClassVar[bool] = False
    kept: ClassVar[str] = "float32"
    extent: ClassVar[Extent] = Extent(-1.0, 1.0, False, "channels and time")  # in whatever unit

    def rules(self) -> Iterator[Rule]:
        if self.names is not None and not self.names:
            yield "names", "must name at least one, or be null"

    @property
    def size(self) -> Steps:
        """Steps of a series, and the rate."""
        return Steps(self.steps, self.rate)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a series as an encoder reads it: (C, T)."""
        return self.channels, self.steps

    def take(self, raw: bytes, array: bool) -> Taken:
        """Judge one raw file. What is stored is an .npy of (channels, steps). Raises Unreadable, Refusal."""
        values = self._values(raw, array)
        buffer = io.BytesIO()
        np.save(buffer, values, allow_pickle=False)
        window = self.fitted(values).astype(np.float64)
        moments = np.stack([window.sum(axis=1), np.einsum("ij,ij->i", window, window)])
        filled = "the last values held" if self.shorter == "hold" else "the rest is 0"
        short = values.shape[1] * TENTH < self.steps
        odd = (f"shorter than a tenth of input.steps, {filled}",) if short else ()
        return Taken("npy", buffer.getvalue(), (values.shape[1], values.shape[0]), moments, odd)

    def raw(self, content: bytes, array: bool) -> Numbers:
        """A raw file as a series: (C, T) float32. Raises Unreadable, Refusal."""
        return self.fitted(self._values(content, array))

    def read(self, content: bytes) -> Numbers:
        """A stored sample as a series: (C, T) float32."""
        return self.fitted(self._stored(content))

    def original(self, content: bytes) -> Numbers:
        """A stored sample at its own length, but at least a series': (C, T') float32."""
        values = self._stored(content)
        return self.fitted(values) if values.shape[1] < self.steps else values.copy()

    def given(self, values: npt.NDArray[Any]) -> Numbers:
        """Measurements that somebody hands over, laid out as ``layout`` says. Raises Refusal."""
        if values.dtype.kind not in "buif" or values.ndim not in (1, 2) or not values.size:
            raise Refusal(
                f"series of {values.dtype} {values.shape}: must be numbers (steps, channels), as input.layout"
            )
        values = values[:, None] if values.ndim == 1 else values
        turned = values.T if self.layout == "time_first" or values.shape[1] == 1 else values
        try:
            return self.fitted(self._channels(narrowed(turned)))
        except Unreadable as fault:
            raise Refusal(f"series: {fault}") from None

    def fitted(self, values: Numbers) -> Numbers:
        """Values (C, T') cut or filled up to a series: (C, T)."""
        length = values.shape[1]
        if length >= self.steps:
            start = (length - self.steps) // 2 if self.longer == "centre" else 0
            return np.array(values[:, start : start + self.steps], order="C")
        mode: Any = "edge" if self.shorter == "hold" else "constant"
        return np.pad(values, ((0, 0), (0, self.steps - length)), mode)

    def as_float(self, batch: Tensor) -> Tensor:
        """Series (N, C, T) as an encoder reads them: as they are."""
        return batch.float()

    def pictures(self, batch: Tensor) -> Tensor:
        """What series (N, C, T) look like: a line a channel, (N, 3, H, W) in [0, 1]."""
        from pipeline.series.picture import pictures

        return pictures(batch)

    def picture(self, sample: Values) -> npt.NDArray[np.uint8]:
        """What one series (C, T) looks like: (3, H, W) uint8."""
        return drawn(self.pictures, sample)

    def own_size(self, shapes: npt.NDArray[np.int32]) -> bool:
        """Whether a file is longer than a series, of (steps, channels) (N, 2): then windows may be cut from it."""
        return bool((shapes[:, 0] > self.steps).any())

    def _values(self, raw: bytes, array: bool) -> Numbers:
        return self._channels(decode(raw, None if array else self.names, self.layout == "time_first"))

    def _stored(self, content: bytes) -> Numbers:
        return decode(content, None, time_first=False)

    def _channels(self, values: Numbers) -> Numbers:
        if len(values) != self.channels:
            raise Refusal(
                f"series of {len(values)} channels: input.channels is {self.channels}; name them in input.names"
            )
        return values
