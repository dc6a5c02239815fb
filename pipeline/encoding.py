"""Vectors of whole splits, in evaluation mode and without a gradient, beside the controls that they are judged by.

images (N, C, H, W), or what else the modality's samples are; h (N, width), z (N, dim), raw (N, C·H'·W').
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

from pipeline.loading import ViewLoader
from pipeline.modalities.proofs import proof_of
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
"""The raw control of pictures is pooled to at most this many pixels a side."""


def embed_splits(
    shards: Shards, described: dict[str, Any], weights: Path, device: str = "cpu", told: Callable[[int], object] = int
) -> Iterator[tuple[tuple[str, str], np.ndarray]]:
    """Yield ((split, layer), vectors float32 (N, D)) of every split and layer; ``told`` hears each batch's size."""
    adapter: TypeAdapter[Invariance] = TypeAdapter(Invariance)
    seen = [tuple(adapter.validate_json(json.dumps(each)) for each in view) for view in described["views"]]
    roles = [Role(f"view{number}", (number,), invariances) for number, invariances in enumerate(seen)]
    untrained = described_network(described).eval().to(device)
    network, proof = trained_network(described, weights).to(device), proof_of(shards.card.input)
    for split in SPLITS:
        source = source_of(split)
        loader = ViewLoader(shards, source, [roles[int(split[-1])]], 0, device) if source != split else None
        parts: dict[str, list[Tensor]] = {"h": [], "z": [], "raw": [], "untrained": []}
        for start in range(0, shards.card.splits[source], BATCH):
            samples = np.arange(start, min(start + BATCH, shards.card.splits[source]))
            if loader is None:
                pixels = shards.batch(split, samples).to(device)
            else:
                (pixels,) = loader.views(VIEW_EPOCH, samples)
            with torch.inference_mode():
                h, z = network(pixels)
                rows = {"h": h, "z": z, "raw": proof.raw(pixels, RAW_SIDE), "untrained": untrained.encode(pixels)}
            for layer, vectors in rows.items():
                parts[layer].append(vectors.float().cpu())
            told(len(pixels))
        for layer, batches in parts.items():
            yield (split, layer), torch.cat(batches).numpy()


def source_of(split: str) -> str:
    """The split of the data that an embedded split is made of: view0 and view1 are views of the test images."""
    return "test" if split.startswith("view") else split
