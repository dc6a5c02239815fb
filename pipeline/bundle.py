"""What leaves the pipeline: an encoder without its projection, the preprocessing, and the latent card.

A bundle is a folder: encoder.safetensors (one metadata key, so that its bytes are a function of its content),
card.json (canonical). ``load`` maps raw inputs to h exactly as the training-time encoder does; nothing in a bundle
can execute code.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pipeline.images import Input, Unreadable, fit_image, read_image
from pipeline.network import Network, described_network
from pipeline.spec import Refusal, canonical, digest, parse

FORMAT = 1
"""Of the card; raised when a reader must know more."""


def write_bundle(folder: Path, network: Network, card: dict[str, Any]) -> None:
    """Write encoder.safetensors and card.json: ``card`` plus format, width of h, weight digest and identity."""
    from safetensors.torch import save

    weights = {
        name: value.detach().cpu().contiguous()
        for name, value in network.state_dict().items()
        if not name.startswith(("projection.", "scalars."))
    }
    digested = weight_digest(weights)
    whole = {**card, "format": FORMAT, "weights": digested}
    whole["identity"] = identity(whole)
    (folder / "card.json").write_text(json.dumps(whole, indent=1, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")
    (folder / "encoder.safetensors").write_bytes(save(weights, metadata={"card": canonical(whole)}))


def identity(card: dict[str, Any]) -> str:
    """SHA-256 of all that makes h what it is: the declaration, the network, its weights, and how inputs reach it."""
    return digest({name: card.get(name) for name in ("space", "network", "weights", "input")})


def weight_digest(weights: dict[str, Tensor]) -> str:
    """SHA-256 over the names, types, shapes and bytes of tensors, in the order of their names."""
    import hashlib

    hashed = hashlib.sha256()
    for name in sorted(weights):
        value = weights[name].detach().cpu().contiguous()
        hashed.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        hashed.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    return hashed.hexdigest()


Raw = np.ndarray | bytes | str | Path
"""One raw input: pixels, an encoded image, or the path of one."""


class Bundle:
    """A trained encoder with its card. ``embed`` maps raw images to h."""

    def __init__(self, network: Network, card: dict[str, Any], contract: Input):
        self.network, self.card, self.input = network.eval(), card, contract

    @torch.inference_mode()
    def embed(self, images: Sequence[Raw] | np.ndarray, batch: int = 256) -> np.ndarray:
        """Raw images to representations.

        Args:
            images: uint8 arrays (H, W, C) or (H, W), encoded bytes, or paths of image files, of any sizes; brought to
                the input size as in training.
            batch: images in one pass.

        Returns:
            h, float32 (N, width).

        Raises:
            Refusal: one image instead of a list, or an image that cannot be read or has another type or channels.
        """
        if isinstance(images, (str, bytes, Path)) or (isinstance(images, np.ndarray) and images.ndim < 4):
            raise Refusal("embed: one image was given; give a list of images, or an array (N, H, W, C)")
        fitted = [torch.from_numpy(fit_image(_pixels(image, self.input), self.input)) for image in images]
        if not fitted:
            raise Refusal("embed: no images were given")
        parts = [
            self.network.encode(torch.stack(fitted[start : start + batch]).float() / 255.0)
            for start in range(0, len(fitted), batch)
        ]
        return torch.cat(parts).float().numpy()


def load(folder: str | Path) -> Bundle:
    """Open a bundle.

    Raises:
        Refusal: no such folder, a missing or damaged file, a newer format, or weights that are not the card's.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    folder = Path(folder)
    for name in ("card.json", "encoder.safetensors"):
        if not (folder / name).is_file():
            raise Refusal(f"{folder}: no bundle: {name} is missing; name a folder that the export stage wrote")
    try:
        card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
        weights = load_file(folder / "encoder.safetensors")
    except (ValueError, SafetensorError) as error:
        raise Refusal(f"{folder}: damaged: {error}") from None
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise Refusal(f"{folder / 'card.json'}: format is not {FORMAT}; install the version that wrote it")
    if weight_digest(weights) != card.get("weights"):
        raise Refusal(f"{folder / 'encoder.safetensors'}: not the weights that card.json describes; copy both again")
    if card.get("identity") != identity(card):
        raise Refusal(f"{folder / 'card.json'}: was changed after it was written; copy the bundle again")
    network = described_network({**card["network"], "projection": {"kind": "none"}})
    network.load_state_dict(weights)
    return Bundle(network, card, parse(card["input"], Input, str(folder / "card.json"), "input"))


def _pixels(image: Raw, contract: Input) -> np.ndarray:
    if isinstance(image, np.ndarray):
        return image
    try:
        return read_image(image if isinstance(image, bytes) else Path(image).read_bytes(), contract)
    except Unreadable as error:
        raise Refusal(f"{_named(image)}: {error}") from None
    except OSError as error:
        raise Refusal(f"{_named(image)}: {(error.strerror or str(error)).lower()}") from None


def _named(image: Raw) -> str:
    return str(image) if isinstance(image, (str, Path)) else "an encoded image"
