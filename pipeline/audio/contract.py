"""Sound -> the clip that every sample of a data set has: one rate, one number of channels, one length.

Legend: C channels, T samples of a clip, T' those of a file after resampling.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from pipeline.audio.decoding import Decoded, Sound, decode, judged, resampled
from pipeline.audio.riff import encode_wave, whole_numbers
from pipeline.samples import TENTH, Extent, Taken, Values, Waveform, drawn
from pipeline.spec import Refusal, Rule, Spec

if TYPE_CHECKING:
    from torch import Tensor  # decoding processes need no torch

LONGEST = 2**24
"""samples of a clip"""


class Audio(Spec):
    """The clip: what a sound of any length, rate, depth and channels becomes before anything else hears it."""

    kind: Literal["audio"]
    rate: int = Field(ge=100, le=1_000_000)
    """hertz; files of another rate are resampled"""
    seconds: float = Field(gt=0)
    """length of a clip"""
    channels: int = Field(ge=1, le=64)
    """1 mono, 2 stereo; files of fewer are repeated, of more as ``mix`` says"""
    mix: Literal["mean", "first"]
    """what becomes of channels that are too many. mean: their mean, in every channel of the clip; first: the first are
    taken"""
    longer: Literal["centre", "start"]
    """which part of a longer file is the clip. Views that begin with a window read the whole file"""
    shorter: Literal["centre", "start", "repeat"]
    """where a shorter file lies in the clip: silence on both sides, or behind it; or it is repeated from its start"""

    word: ClassVar[str] = "clip"
    sides: ClassVar[tuple[str, str]] = ("samples", "file_rate")
    levels: ClassVar[int] = 1
    exact: ClassVar[bool] = False
    kept: ClassVar[str] = "float32"
    extent: ClassVar[Extent] = Extent(-1.0, 1.0, False, "channels and time")  # above full scale is no fault

    def rules(self) -> Iterator[Rule]:
        if not 1 <= round(self.rate * self.seconds) <= LONGEST:
            yield "seconds", f"at {self.rate} Hz a clip must have from 1 to {LONGEST} samples"

    @property
    def size(self) -> Waveform:
        """Samples of a clip, and the rate."""
        return Waveform(round(self.rate * self.seconds), self.rate)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a clip as an encoder reads it: (C, T)."""
        return self.channels, self.size.samples

    def take(self, raw: bytes, array: bool) -> Taken:
        """Judge one raw sound, an encoded file's bytes. Raises Unreadable, Refusal."""
        if array:
            raise Refusal("arrays are no sound files; give wav, flac or ogg, or input: {kind: series, …}")
        found, stored, values = self._heard(raw)
        extension = found.extension if stored is None else "wav"
        clip = self.fitted(values).astype(np.float64)
        moments = np.stack([clip.sum(axis=1), np.einsum("ij,ij->i", clip, clip)])
        odd = tuple(self._odd(len(found.values), values.shape[1]))
        return Taken(extension, stored, (values.shape[1], found.rate), moments, odd)

    def raw(self, content: bytes, array: bool) -> Sound:
        """A raw sound as a clip: (C, T) float32 in [-1, 1]. Raises Unreadable, Refusal."""
        return self.given(np.load(io.BytesIO(content))) if array else self.fitted(self._heard(content)[2])

    def read(self, content: bytes) -> Sound:
        """A stored sample as a clip: (C, T) float32 in [-1, 1]."""
        return self.fitted(self._whole(content))

    def original(self, content: bytes) -> Values:
        """A stored sample at its own length, but at least a clip's: (C, T'), float32 or, unread, 16-bit integers."""
        narrow = whole_numbers(content)
        if narrow is not None and len(narrow) == self.channels and narrow.shape[1] >= self.size.samples:
            return narrow
        values = self._whole(content)
        return self.fitted(values) if values.shape[1] < self.size.samples else values.copy()

    def given(self, values: npt.NDArray[Any]) -> Sound:
        """A sound that somebody hands over, (T',) or (C', T') floating point at the contract's rate. Raises Refusal."""
        if values.dtype.kind != "f" or values.ndim not in (1, 2) or not values.size:
            wanted = "must be floats in [-1, 1], (samples,) or (channels, samples)"
            raise Refusal(f"sound of {values.dtype} {values.shape}: {wanted}")
        return self.fitted(self._channels(np.atleast_2d(values).astype(np.float32)))

    def fitted(self, values: Sound) -> Sound:
        """Values (C, T') cut or filled up to a clip: (C, T)."""
        length, wanted = values.shape[1], self.size.samples
        if length >= wanted:
            start = (length - wanted) // 2 if self.longer == "centre" else 0
            return np.array(values[:, start : start + wanted], order="C")
        if self.shorter == "repeat":
            return np.tile(values, -(-wanted // length))[:, :wanted].copy()
        start = (wanted - length) // 2 if self.shorter == "centre" else 0
        clip = np.zeros((len(values), wanted), np.float32)
        clip[:, start : start + length] = values
        return clip

    def as_float(self, batch: Tensor) -> Tensor:
        """Clips (N, C, T) as an encoder reads them: as they are."""
        return batch.float()

    def pictures(self, batch: Tensor) -> Tensor:
        """What clips (N, C, T) look like: waveform over spectrogram, (N, 3, H, W) in [0, 1]."""
        from pipeline.audio.picture import pictures

        return pictures(batch, self.rate)

    def picture(self, sample: Values) -> npt.NDArray[np.uint8]:
        """What one clip (C, T) looks like: (3, H, W) uint8."""
        return drawn(self.pictures, sample)

    def own_size(self, shapes: npt.NDArray[np.int32]) -> bool:
        """Whether a file is longer than a clip, of (samples, file rate) (N, 2): then windows may be cut from it."""
        return bool((shapes[:, 0] > self.size.samples).any())

    def _heard(self, raw: bytes) -> tuple[Decoded, bytes | None, Sound]:
        """A raw sound as it is, what is stored of it (None: itself), and as that is read: (C, T')."""
        found = decode(raw)
        values = self._channels(found.values)
        # windows are read from WAV at their place
        direct = found.extension == "wav" or values.shape[1] <= self.size.samples
        if found.plain and direct and found.rate == self.rate and len(found.values) == self.channels:
            return found, None, values
        stored = encode_wave(judged(resampled(values, found.rate, self.rate)), self.rate, found.wide)
        return found, stored, decode(stored).values

    def _odd(self, channels: int, length: int) -> Iterator[str]:
        """What was made up of a file of so many channels and samples at the clip's rate."""
        if channels < self.channels:
            yield f"of {channels} channel{'s' if channels > 1 else ''}, repeated into {self.channels} (input.channels)"
        elif channels > self.channels > 1 and self.mix == "mean":
            yield f"of {channels} channels, their mean in each of {self.channels} (input.mix)"
        if length * TENTH < self.size.samples:
            filled = "repeated to fill it" if self.shorter == "repeat" else "the rest is silence"
            yield f"shorter than a tenth of input.seconds, {filled}"

    def _whole(self, content: bytes) -> Sound:
        return self._channels(decode(content).values)

    def _channels(self, values: Sound) -> Sound:
        """(C', T') → (C, T')."""
        found = len(values)
        if found > self.channels:
            values = values[: self.channels] if self.mix == "first" else values.mean(axis=0, keepdims=True)
        if len(values) < self.channels:
            values = np.tile(values, (-(-self.channels // len(values)), 1))[: self.channels]
        return values
