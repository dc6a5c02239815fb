"""Write a bundle: weights, card, projection, graph, model card. Equal networks and cards give equal bytes.

encoder.safetensors holds the weights under the names of the architecture itself, so that timm and torchvision take them
without renaming; what the channels are normalised by stands in the card. The projection is apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pipeline.bundle.card import CARD, FORMAT, GRAPH, PROJECTION, README, WEIGHTS, card_text, identity
from pipeline.bundle.readme import model_card
from pipeline.bundle.weights import packed, weight_digest
from pipeline.images import Pixels
from pipeline.network import Network
from pipeline.spec import canonical


def write_bundle(
    folder: Path,
    network: Network,
    card: dict[str, Any],
    projection: bool = True,
    graph_on: Sequence[Pixels] | None = None,
) -> None:
    """Write a bundle into a folder that is there.

    Args:
        card: at least space, network and input, as plain data; format, width of h, digests and identity are added.
        projection: whether the projection leaves as well, in a file of its own.
        graph_on: write the network as an ONNX graph too, and compare the two on these canvases (C, H, W) uint8; None:
            no graph.

    Raises:
        Refusal: the graph is asked for, and its packages are missing or it does not agree with the network.
    """
    weights, head = _of(network, "encoder."), _of(network, "projection.")
    for name, value in (("mean", network.mean), ("std", network.std)):
        if not torch.equal(value.flatten().cpu(), torch.tensor(card["network"][name])):
            raise ValueError(f"the card's network.{name} is not the network's")
    whole = {
        **card,
        "format": FORMAT,
        "layer": "h",
        "width": int(network.encoder.dim),  # type: ignore[arg-type]
        "weights": weight_digest(weights),
        "projection": {"given": projection, "weights": weight_digest(head)},
        "files": {},
    }
    whole["identity"] = identity(whole)
    if graph_on is not None:
        from pipeline.bundle.graph import write_graph

        content = write_graph(network.eval(), whole, graph_on)
        (folder / GRAPH).write_bytes(content)
        whole["files"] = {GRAPH: hashlib.sha256(content).hexdigest()}
    (folder / CARD).write_text(card_text(whole), encoding="utf-8")
    (folder / WEIGHTS).write_bytes(packed(weights, canonical(whole)))
    if projection and head:
        (folder / PROJECTION).write_bytes(packed(head, canonical(whole)))
    (folder / README).write_text(model_card(whole), encoding="utf-8")


def _of(network: Network, part: str) -> dict[str, Tensor]:
    """The weights of one part, under its own names."""
    return {
        name.removeprefix(part): value.detach().cpu()
        for name, value in network.state_dict().items()
        if name.startswith(part)
    }
