"""What a contract must have: everything that sharding, reading, views, training and export ask of a modality.

Legend: N samples, C channels; S a sample on the canvas, ``shape`` (C, H, W) or (C, T).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from pipeline.samples import Extent, Size, Taken, Values

if TYPE_CHECKING:
    from torch import Tensor  # decoding processes need no torch


class Modality(Protocol):
    """A data set's ``input``, a frozen spec."""

    word: ClassVar[str]
    """what a sample is called"""
    sides: ClassVar[tuple[str, str]]
    """what the two numbers of ``Taken.shape`` are"""
    levels: ClassVar[int]
    """the value on the canvas that an encoder reads as 1"""
    exact: ClassVar[bool]
    """whether the canvas holds whole numbers, so that sums are exact"""
    kept: ClassVar[str]
    """the type of the canvas's numbers, as NumPy names it"""
    extent: ClassVar[Extent]
    """the values of S as an encoder reads it, and whether views keep within them"""

    @property
    def channels(self) -> int:
        """C."""

    @property
    def size(self) -> Size:
        """What a view fills; its type tells the modality."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a sample as an encoder reads it, channels first."""

    def take(self, raw: bytes, array: bool) -> Taken:
        """Judge one raw sample, the bytes of a file or (``array``) of an .npy. Raises Unreadable, Refusal."""

    def raw(self, content: bytes, array: bool) -> Values:
        """A raw sample as S, as ``take`` and ``read`` would make it. Raises Unreadable, Refusal."""

    def read(self, content: bytes) -> Values:
        """Stored bytes → S."""

    def original(self, content: bytes) -> Values:
        """Stored bytes → the sample at its own size, channels first; it may be written to."""

    def given(self, values: Values) -> Values:
        """An array that somebody hands over → S. Raises Refusal."""

    def as_float(self, batch: Tensor) -> Tensor:
        """Samples (N, *S) as an encoder reads them."""

    def pictures(self, batch: Tensor) -> Tensor:
        """What samples (N, *S), as an encoder reads them, look like: (N, C', H', W') in [0, 1]."""

    def picture(self, sample: Values) -> npt.NDArray[np.uint8]:
        """What one sample S looks like: (C', H', W')."""

    def own_size(self, shapes: npt.NDArray[np.int32]) -> bool:
        """Whether views may be cut from samples of their own sides (N, 2)."""
