"""A random window of a longer recording or series: it fixes the length of views, as a crop fixes the size of pictures.

Two windows of one recording as a positive pair: Saeed, Grangier and Zeghidour, "Contrastive learning of general-purpose
audio representations" (COLA), 2021, arXiv:2010.10915, section 3.1.

N samples (C, T_i), T_i at least T; a view (N, C, T).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from pipeline.keys import Keys
from pipeline.spec import Spec

Parameters = dict[str, Tensor]


class Window(Spec):
    """A window of the length of the data spec's ``input``, cut from the sample at its own length; it comes first."""

    kind: Literal["window"] = "window"
    within: float = Field(default=1.0, gt=0, le=1)
    """the part of the sample that windows are cut from, about its middle"""

    removes: ClassVar[frozenset[str]] = frozenset({"onset", "occlusion"})
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def draw(self, keys: Keys) -> Parameters:
        """``place`` (N,) in [-1, 1]: from the first window to the last; 0 is the middle one."""
        return {"place": keys.uniform("place", -self.within, self.within)}

    def apply(self, waves: Tensor, parameters: Parameters, rate: int) -> Tensor:
        """Of a batch (N, C, T) that has its length already: itself."""
        return waves

    def cut(self, samples: Sequence[Tensor], parameters: Parameters, length: int) -> Tensor:
        """N samples (C, T_i) → their windows (N, C, length). Raises ValueError where one is shorter."""
        places = parameters["place"].double().tolist()
        return torch.stack([_window(each, place, length) for each, place in zip(samples, places, strict=True)])

    def at(self, strength: float) -> Window:
        """The same within ``strength`` of its part; 0 is the middle window always."""
        return self.model_copy(update={"within": self.within * strength})

    def channels_fault(self, channels: int) -> str | None:
        return None

    def size_fault(self, samples: int, rate: int) -> str | None:
        return None


def windows(
    read: Callable[[int], Tensor], rows: Sequence[int], window: Window, drawn: Sequence[Parameters], length: int
) -> list[Tensor]:
    """Windows of the samples ``rows``, under each of V drawings: V times (N, C, length).

    Samples are read one at a time, each once for all drawings, so that memory does not follow their length.

    Args:
        read: a row → the sample (C, T_i).
        drawn: of the window, parameters with a row for each of ``rows``.
    """
    found: list[list[Tensor]] = [[] for _ in drawn]
    for place, row in enumerate(rows):
        whole = read(row)
        for views, parameters in zip(found, drawn, strict=True):
            own = {name: values[place : place + 1] for name, values in parameters.items()}
            views.append(window.cut([whole], own, length))
    return [torch.cat(views) for views in found]


def _window(sample: Tensor, place: float, length: int) -> Tensor:
    free = sample.shape[-1] - length
    if free < 0:
        raise ValueError(f"a sample of {sample.shape[-1]} steps is shorter than its view of {length}")
    start = min(free, max(0, round((place + 1) / 2 * free)))
    window = sample[:, start : start + length]
    return window if window.is_floating_point() else window.float() / 32768  # 16-bit sound, read where it is needed
