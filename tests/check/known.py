"""Small drawn data whose answers are known: what a label is, and so what an invariance does to it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar, cast

import numpy as np
import torch
from small import CHECK
from torch import Tensor

from pipeline.check import Check, Finding
from pipeline.check.ground import Ground, prepare
from pipeline.check.judged import Judged, judge
from pipeline.check.losses import loss_findings
from pipeline.check.section import TOGETHER
from pipeline.images import Input
from pipeline.shards import Column, Shards
from pipeline.spec import parse

COUNT, SIDE = 320, 12


class Pictures:
    """What the check reads of a sharded data set, from arrays: images uint8 (N, C, H, W), a third for testing."""

    def __init__(self, images: np.ndarray, labels: dict[str, np.ndarray] | None = None):
        self.arrays, self.columns = images, labels or {}
        self.cut = len(images) * 2 // 3
        described = {
            name: Column(kind="number", classes=(), counts={})
            if values.dtype.kind == "f"
            else Column(kind="class", classes=tuple(f"class {code}" for code in range(values.max() + 1)), counts={})
            for name, values in self.columns.items()
        }
        shape = Input(channels=images.shape[1], height=images.shape[2], width=images.shape[3], fit="resize")
        splits = {"train": self.cut, "test": len(images) - self.cut}
        self.card = SimpleNamespace(name="known", columns=described, input=shape, splits=splits)

    def _rows(self, split: str) -> slice:
        return slice(0, self.cut) if split == "train" else slice(self.cut, None)

    def labels(self, split: str) -> dict[str, np.ndarray]:
        return {name: values[self._rows(split)] for name, values in self.columns.items()}

    def batch(self, split: str, indices: np.ndarray) -> Tensor:
        return torch.from_numpy(self.arrays[self._rows(split)][indices]).float() / 255.0


def blobs(seed: int = 0, count: int = COUNT, channels: int = 3) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """A bright square on noise; labels: side (left, right), height (upper, lower), colour (two, equally grey)."""
    random = np.random.default_rng(seed)
    images = random.integers(60, 100, (count, channels, SIDE, SIDE)).astype(np.uint8)
    side, height, colour = random.integers(0, 2, (3, count))
    paint = np.array([[220, 120, 120], [70, 197, 120]])  # the same grey, 149
    for row in range(count):
        left = random.integers(0, 2) + 7 * side[row]
        top = random.integers(0, 2) + 7 * height[row]
        images[row, :, top : top + 4, left : left + 4] = paint[colour[row]][:channels, None, None]
    return images, {"side": side, "height": height, "paint": colour}


def check(**changes: Any) -> Check:
    return parse({**CHECK, "samples": 2000, **changes}, Check, "x.yaml", "check")


def ground(pictures: Pictures, **changes: Any) -> Ground:
    return prepare(cast(Shards, pictures), check(**changes))


def found(base: Ground, *invariances: Any, preserves: tuple[str, ...] = ()) -> dict[tuple[str, str], Finding]:
    """The findings on every label of one invariance, or of several in order: (finding, label) to it."""
    together = len(invariances) > 1
    kind = TOGETHER if together else invariances[0].kind
    judged: Judged = judge(base, list(invariances), together=together)
    return {(each.finding, each.preserved): each for each in loss_findings(base, judged, kind, None, preserves)}


class Projection:
    """x → (x1, x2, 0, x4): what stands in the third channel is lost."""

    kind, group, probability = "projection", False, 1.0
    removes: ClassVar[frozenset[str]] = frozenset({"spectrum"})

    def draw(self, keys: Any) -> dict[str, Tensor]:
        return {"all": torch.ones(len(keys))}

    def apply(self, images: Tensor, parameters: dict[str, Tensor]) -> Tensor:
        return images * torch.tensor([1.0, 1.0, 0.0, 1.0])[:, None, None]

    def channels_fault(self, channels: int) -> str | None:
        return None
