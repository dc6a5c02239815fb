"""Invariance to the order of the parts of a series.

N series (N,C,T) of any scale.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from pipeline.keys import Keys
from pipeline.spec import Spec
from pipeline.views.audio_rows import on_rows, taken
from pipeline.views.image_plane import Parameters, applied


class SegmentShuffle(Spec):
    """Cut the series into parts of equal length, to a step, and put them into a random order (Um et al. 2017)."""

    kind: Literal["segment_shuffle"] = "segment_shuffle"
    parts: int = Field(default=4, ge=2, le=1000)
    """how many parts"""
    probability: float = Field(default=0.5, ge=0, le=1)
    """of the order being drawn anew"""

    removes: ClassVar[frozenset[str]] = frozenset({"time_order", "onset"})
    invertible: ClassVar[bool] = False  # parts that differ by a step do not fit into each other's places
    group: ClassVar[bool] = False

    def draw(self, keys: Keys) -> Parameters:
        """``order`` (N,parts) int64: which part comes first, second, ...; 0, 1, 2, ... for no change."""
        order, still = keys.orders("order", self.parts), torch.arange(self.parts)
        return {"order": order.where(applied(keys, self.probability)[:, None], still)}

    def apply(self, series: Tensor, parameters: Parameters, rate: int) -> Tensor:
        order = parameters["order"]
        moved = (order != torch.arange(self.parts)).any(1)
        return on_rows(series, moved, lambda part, rows: reordered(part, order[rows]))

    def at(self, strength: float) -> SegmentShuffle:
        """The same with its probability scaled by ``strength`` in [0, 1]; 0 is the identity."""
        return self.model_copy(update={"probability": self.probability * strength})

    def channels_fault(self, channels: int) -> str | None:
        return None

    def size_fault(self, steps: int, rate: int) -> str | None:
        return None if self.parts <= steps else f"parts = {self.parts} of a series of {steps} steps; use fewer"


def reordered(series: Tensor, order: Tensor) -> Tensor:
    """The parts of ``series`` (M,C,T), cut as numpy's ``array_split`` cuts, in the ``order`` (M,parts) given."""
    count, parts = series.shape[-1], order.shape[1]
    lengths = torch.full((parts,), count // parts) + (torch.arange(parts) < count % parts)
    starts = lengths.cumsum(0) - lengths
    ends = lengths[order].cumsum(1)  # (M,parts): of the places that the parts take
    time = torch.arange(count).expand(len(order), -1).contiguous()
    slot = torch.searchsorted(ends, time, right=True)  # (M,T): which place a step is in
    source = time - (ends - lengths[order]).gather(1, slot) + starts[order].gather(1, slot)
    return taken(series, source.to(series.device))
