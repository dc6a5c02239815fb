"""What is looked at: a bounded sample of both splits, the same in every run, and the networks that look.

Everything is encoded in evaluation mode and without a gradient, so no weight and no running statistic of the encoder
changes. Pictures are looked at on the canvas: a crop is brought back to the canvas's size, also where training made
smaller views of it. Windows are cut from the files, as training cuts them.

n samples, pictures (n, C, H, W) in [0, 1], on the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pipeline.keys import Keys, permutation
from pipeline.modalities import Modality
from pipeline.modalities.proofs import proof_of
from pipeline.network import Network, described_network, trained_network
from pipeline.shards import Shards
from pipeline.views import Invariance, Parameters, Window, apply_view, draw_parameters
from pipeline.views.window import windows

EPOCH = -6
"""Of the transformations that are drawn here: an epoch that no training, check or evaluation has."""
ORDER = -7
"""Of the order in which pictures are taken."""
BATCH = 256
RAW_SIDE = 16
"""The raw control is pooled to at most this many pixels a side."""
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Sample:
    """Pictures of one split."""

    split: str
    rows: Rows
    """(n,) their places in the split, rising"""
    images: Tensor
    """(n, C, H, W) float32 in [0, 1], or what else the modality's samples are"""
    contract: Modality
    shards: Shards

    def draw(self, invariance: Invariance, stream: int) -> tuple[Tensor, Parameters]:
        """Each picture transformed: (n, C, H, W), and what was drawn. Weaker ones of a stream go the same way.

        Raises:
            Refusal: the transformation cannot be used on this canvas, or the user's code fails.
        """
        split = 0 if self.split == "test" else 1
        keys = Keys.of(0, EPOCH, self.rows, 2 * stream + split)
        drawn, size, images = draw_parameters([invariance], keys), self.contract.size, self.images
        if isinstance(invariance, Window) and self.contract.own_size(self.shards.shapes(self.split)[self.rows]):
            (images,) = windows(self._whole, self.rows.tolist(), invariance, drawn, size[0])
        return apply_view(images, [invariance], drawn, size), drawn[0]

    def _whole(self, row: int) -> Tensor:
        return torch.from_numpy(self.shards.original(self.split, row))


def take(shards: Shards, split: str, count: int) -> Sample:
    """At most ``count`` pictures of a split."""
    rows = chosen(shards.card.splits[split], count, split)
    return Sample(split, rows, shards.batch(split, rows), shards.card.input, shards)


def chosen(total: int, count: int, split: str) -> Rows:
    """At most ``count`` of ``total`` rows, rising; the first few of one order, so that fewer are a part of more."""
    if total <= count:
        return np.arange(total)
    return np.sort(permutation(0, ORDER - (split == "test"), total)[:count])


class Networks:
    """The trained network and the untrained one that it began as."""

    def __init__(self, described: dict[str, Any], weights: Path, contract: Modality, device: str = "cpu"):
        self.device, self.proof = torch.device(device), proof_of(contract)
        self.trained: Network = trained_network(described, weights).eval().to(self.device)
        self.untrained: Network = described_network(described).eval().to(self.device)

    def encode(self, images: Tensor, layers: Sequence[str] = ("h", "z")) -> dict[str, Tensor]:
        """Layers of images (n, C, H, W): name to (n, D) float32 on the CPU; h, z, raw or untrained."""
        parts: dict[str, list[Tensor]] = {layer: [] for layer in layers}
        with torch.inference_mode():
            for start in range(0, len(images), BATCH):
                pixels = images[start : start + BATCH].to(self.device)
                h, z = self.trained(pixels)
                found = {"h": h, "z": z, "raw": self.proof.raw(pixels, RAW_SIDE)}
                if "untrained" in layers:
                    found["untrained"] = self.untrained.encode(pixels)
                for layer in layers:
                    parts[layer].append(found[layer].float().cpu())
        return {layer: torch.cat(batches).clone() for layer, batches in parts.items()}
