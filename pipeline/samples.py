"""What samples of every modality share: their size, whose type tells the modality, and what sharding takes of each.

A picture's size is (height, width). That of anything with a time axis is a pair as well, of a type of its own: steps,
and how many of them are a second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from torch import Tensor  # decoding processes need no torch

Size = tuple[int, int]
"""(height, width), or a ``Waveform``, or ``Steps``."""
Values = npt.NDArray[Any]


class Waveform(NamedTuple):
    """The size of a clip of sound."""

    samples: int
    rate: int
    """samples a second"""

    @property
    def modality(self) -> str:
        """What has this size."""
        return "audio"


class Steps(NamedTuple):
    """The size of a series of measurements."""

    steps: int
    rate: int
    """steps a second"""

    @property
    def modality(self) -> str:
        """What has this size."""
        return "series"


def modality(size: Size) -> str:
    """What has a size like this: image, or what its type says."""
    return str(getattr(size, "modality", "image"))


def several(word: str) -> str:
    """The plural of what a modality calls its samples."""
    return word if word.endswith("s") else f"{word}s"


ANYTHING = "pictures, sounds or series"
"""What is looked for where it is not known yet what the samples are."""


def drawn(pictures: Callable[[Tensor], Tensor], sample: Values) -> npt.NDArray[np.uint8]:
    """What one sample S looks like, by what says it of a batch (N, *S) in [0, 1]: (C', H', W')."""
    import torch

    shown = pictures(torch.from_numpy(sample)[None])[0]
    picture: npt.NDArray[np.uint8] = (shown * 255).round().to(torch.uint8).numpy()
    return picture


class Extent(NamedTuple):
    """The values of samples as an encoder reads them."""

    low: float
    high: float
    """between which they lie, or mostly lie"""
    kept: bool
    """whether views must keep within these; else any finite number will do"""
    along: str
    """what lies along the axes of a sample, in words"""


TENTH = 10
"""a sample of less than this part of the canvas is odd"""


class Unreadable(Exception):
    """A raw sample that cannot be used: ``reason`` to be counted by, ``detail`` to be read."""

    def __init__(self, reason: str, detail: str = ""):
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason} ({detail})" if detail else reason)


class Taken(NamedTuple):
    """What sharding keeps of one raw sample."""

    extension: str
    """of the format that the stored bytes are in"""
    stored: bytes | None
    """what is stored; None: the raw bytes as they came"""
    shape: tuple[int, int]
    """the two sides of the sample itself, as ``sides`` of its contract names them"""
    moments: Values
    """sums and sums of squares over the canvas, (2, C)"""
    odd: tuple[str, ...] = ()
    """what a user should know though it is no fault, in words that follow a number of samples and are counted by"""
