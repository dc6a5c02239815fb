"""Bundles for tests: any encoder with drawn weights, written as the export stage writes it; nothing is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from small import TRAINING, pictures, space

from pipeline.bundle.writing import write_bundle
from pipeline.images import Input, Pixels, fit_image
from pipeline.network import Network, described_network

INPUT: dict[str, Any] = {"height": 16, "width": 12, "channels": 3, "fit": "resize", "background": 0, "range": None}
SIZES = [(16, 12), (40, 30), (5, 9), (1, 1), (16, 16), (33, 12), (12, 33)]


def card(
    encoder: dict[str, Any] | None = None, input_: dict[str, Any] | None = None, seed: int = 0, **changes: Any
) -> dict[str, Any]:
    """A card as ``write_bundle`` takes it; ``changes`` are of the space."""
    contract = {**INPUT, **(input_ or {})}
    declared = space(**changes)
    values = np.linspace(0.3, 0.5, contract["channels"]).tolist()
    return {
        "name": "small",
        "description": "A small space.",
        "space": declared.model_dump(mode="json"),
        "space_identity": declared.identity(),
        "network": {"encoder": encoder or TRAINING["encoder"], "mean": values, "std": values[::-1], "seed": seed},
        "input": contract,
    }


def network_of(card: dict[str, Any]) -> Network:
    """The network of a card with drawn weights, none of them at its start (batch statistics too)."""
    network = described_network({**card["network"], "projection": card["space"]["projection"]}).eval()
    random = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, value in network.state_dict().items():
            if name.endswith(("running_mean", "bias")):
                value.copy_(0.1 * torch.randn(value.shape, generator=random))
            elif name.endswith("running_var"):
                value.copy_(0.5 + torch.rand(value.shape, generator=random))
    return network


def bundled(folder: Path, given: dict[str, Any] | None = None, **options: Any) -> tuple[Path, Network]:
    """Write a bundle into ``folder``: (folder, the network that it was made of)."""
    given = given or card()
    network = network_of(given)
    folder.mkdir(parents=True, exist_ok=True)
    if options.pop("graph", False):
        options["graph_on"] = canvases(given, pictures(SIZES, given["input"]["channels"]))
    write_bundle(folder, network, given, **options)
    return folder, network


def canvases(given: dict[str, Any], images: list[np.ndarray]) -> list[Pixels]:
    """Images on the canvas of a card."""
    return [fit_image(image, Input(**given["input"])) for image in images]


def h_and_z(network: Network, given: dict[str, Any], images: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """h and plain z, the way the embed stage makes them."""
    pixels = torch.from_numpy(np.stack(canvases(given, images))).float() / 255.0
    with torch.inference_mode():
        h, z = network(pixels)
    return h.numpy(), z.numpy()


def saved(folder: Path, images: list[np.ndarray], suffix: str = ".png") -> list[Path]:
    """Images as files, 000.png …"""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{number:03d}{suffix}" for number in range(len(images))]
    for path, image in zip(paths, images, strict=True):
        Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image).save(path)
    return paths
