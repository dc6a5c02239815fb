"""Vectors of whole splits, in evaluation mode and without a gradient, beside the controls that they are judged by.

images (N, C, H, W) uint8; h (N, width), z (N, dim), raw (N, C·H'·W').
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import TypeAdapter
from torch import Tensor
from torch.nn import functional

from pipeline.keys import Keys
from pipeline.network import described_network
from pipeline.shards import Shards
from pipeline.views import Invariance, draw_view

VIEW_EPOCH = -1
"""Of the views that the evaluation draws: an epoch that no training has."""
RAW_SIDE = 32
"""The raw control is pooled to at most this many pixels a side."""


def embed_splits(
    shards: Shards, described: dict[str, Any], weights: Path
) -> Iterator[tuple[tuple[str, str], np.ndarray]]:
    """Yield ((split, layer), vectors float32 (N, D)) for every split and layer."""
    from safetensors.torch import load_file

    invariances = [TypeAdapter(Invariance).validate_json(json.dumps(each)) for each in described["invariances"]]
    untrained = described_network(described).eval()
    network = described_network(described).eval()
    network.load_state_dict(load_file(weights))
    for split in ("train", "test", "view0", "view1"):
        images = torch.from_numpy(shards.images("test" if split.startswith("view") else split))
        parts: dict[str, list[Tensor]] = {"h": [], "z": [], "raw": [], "untrained": []}
        for start in range(0, len(images), 256):
            pixels = images[start : start + 256].float() / 255.0
            if split.startswith("view"):
                samples = np.arange(start, start + len(pixels))
                pixels = draw_view(pixels, invariances, Keys.of(0, VIEW_EPOCH, samples, int(split[-1])))
            with torch.inference_mode():
                h, z = network(pixels)
                parts["h"].append(h)
                parts["z"].append(z)
                parts["untrained"].append(untrained.encode(pixels))
                parts["raw"].append(raw_control(pixels))
        for layer, rows in parts.items():
            yield (split, layer), torch.cat(rows).float().numpy()


def raw_control(pixels: Tensor) -> Tensor:
    """The input itself as a vector: (N, C, H, W) → (N, C·H'·W'), pooled to at most RAW_SIDE a side."""
    side = (min(RAW_SIDE, pixels.shape[-2]), min(RAW_SIDE, pixels.shape[-1]))
    return functional.adaptive_avg_pool2d(pixels, side).flatten(1)
