"""Vectors of whole splits, in evaluation mode and without a gradient, beside the controls that they are judged by.

images (N, C, H, W) uint8; h (N, width), z (N, dim), raw (N, C·H'·W').
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import TypeAdapter
from torch import Tensor
from torch.nn import functional

from pipeline.loading import ViewLoader
from pipeline.network import described_network, trained_network
from pipeline.shards import Shards
from pipeline.views import Invariance
from pipeline.views.roles import Role

VIEW_EPOCH = -1
"""Of the views that the evaluation draws: an epoch that no training has."""
SPLITS = ("train", "test", "view0", "view1")
"""What is embedded: both splits as they are, and the test images under the declared invariances, drawn twice."""
BATCH = 256
RAW_SIDE = 32
"""The raw control is pooled to at most this many pixels a side."""


def embed_splits(
    shards: Shards, described: dict[str, Any], weights: Path, device: str = "cpu", told: Callable[[int], object] = int
) -> Iterator[tuple[tuple[str, str], np.ndarray]]:
    """Yield ((split, layer), vectors float32 (N, D)) of every split and layer; ``told`` hears each batch's size."""
    adapter: TypeAdapter[Invariance] = TypeAdapter(Invariance)
    seen = [tuple(adapter.validate_json(json.dumps(each)) for each in view) for view in described["views"]]
    roles = [Role(f"view{number}", (number,), invariances) for number, invariances in enumerate(seen)]
    untrained = described_network(described).eval().to(device)
    network = trained_network(described, weights).to(device)
    for split in SPLITS:
        source = source_of(split)
        loader = ViewLoader(shards, source, [roles[int(split[-1])]], 0, device) if source != split else None
        parts: dict[str, list[Tensor]] = {"h": [], "z": [], "raw": [], "untrained": []}
        for start in range(0, shards.card.splits[source], BATCH):
            samples = np.arange(start, min(start + BATCH, shards.card.splits[source]))
            if loader is None:
                pixels = torch.from_numpy(shards.canvases(split, samples)).to(device).float() / 255.0
            else:
                (pixels,) = loader.views(VIEW_EPOCH, samples)
            with torch.inference_mode():
                h, z = network(pixels)
                rows = {"h": h, "z": z, "raw": raw_control(pixels), "untrained": untrained.encode(pixels)}
            for layer, vectors in rows.items():
                parts[layer].append(vectors.float().cpu())
            told(len(pixels))
        for layer, batches in parts.items():
            yield (split, layer), torch.cat(batches).numpy()


def source_of(split: str) -> str:
    """The split of the data that an embedded split is made of: view0 and view1 are views of the test images."""
    return "test" if split.startswith("view") else split


def raw_control(pixels: Tensor) -> Tensor:
    """The input itself as a vector: (N, C, H, W) → (N, C·H'·W'), pooled to at most RAW_SIDE a side."""
    side = (min(RAW_SIDE, pixels.shape[-2]), min(RAW_SIDE, pixels.shape[-1]))
    return functional.adaptive_avg_pool2d(pixels, side).flatten(1)
