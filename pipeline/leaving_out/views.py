"""h of the test images of a trained space, moved by a declaration that need not be its own.

N images of the test split, D the width of h.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from pipeline.encoding import BATCH, VIEW_EPOCH
from pipeline.loading import ViewLoader
from pipeline.network import trained_network
from pipeline.shards import Shards
from pipeline.views import Invariance
from pipeline.views.roles import Role


def moved_vectors(
    trained: Path, data: Path, invariances: Sequence[Invariance], device: str = "cpu"
) -> npt.NDArray[np.float32]:
    """Encode one view of each test image, (N, D); the same draws as ``embed``'s view0 for the same invariances.

    Args:
        trained: folder of a training's output.
        data: folder of its shards.
    """
    described = json.loads((trained / "network.json").read_text(encoding="utf-8"))
    network = trained_network(described, trained / "weights.safetensors").to(device)
    shards = Shards(data)
    loader = ViewLoader(shards, "test", [Role("view0", (0,), tuple(invariances))], 0, device)
    parts = []
    for start in range(0, shards.card.splits["test"], BATCH):
        samples = np.arange(start, min(start + BATCH, shards.card.splits["test"]))
        (images,) = loader.views(VIEW_EPOCH, samples)
        with torch.inference_mode():
            parts.append(network.encode(images).float().cpu().numpy())
    return np.concatenate(parts)
