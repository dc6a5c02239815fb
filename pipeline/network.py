"""The network x → h → z: the card's normalisation, the encoder, the projection.

images (N, C, H, W) float in [0, 1], or what else the data's samples are, as (N, C, T); h (N, width) at the boundary;
z (N, dim) where the loss acts, or the predictor q (N, dim) behind it, which is of the training alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter
from torch import Tensor, nn

from pipeline.encoders import Encoder
from pipeline.projections import Predictor, Projection
from pipeline.spec import Refusal, nearest

OF_TRAINING = ("scalars.", "predictor.")
"""What is trained with the network and is no part of the map from x to h and z."""


class Network(nn.Module):
    """Encoder and projection behind a normalisation of channels; predictor and ``scalars`` are trained with them."""

    mean: Tensor
    std: Tensor

    predictor: nn.Module | None

    def __init__(
        self, encoder: nn.Module, projection: nn.Module, mean: Tensor, std: Tensor, predictor: nn.Module | None = None
    ):
        super().__init__()
        self.encoder, self.projection, self.predictor = encoder, projection, predictor
        self.scalars = nn.ParameterDict()
        self.register_buffer("mean", mean.reshape(1, -1, 1, 1))
        self.register_buffer("std", std.reshape(1, -1, 1, 1))

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """images (N, C, H, W) → h (N, width), z (N, dim)."""
        h = self.encode(images)
        return h, self.projection(h)

    def encode(self, images: Tensor) -> Tensor:
        """images (N, C, H, W), or (N, C, T) → h (N, width)."""
        if images.ndim == 4:
            x = ((images - self.mean) / self.std).contiguous(memory_format=torch.channels_last)
        else:
            x = (images - self.mean[..., 0]) / self.std[..., 0]
        h: Tensor = self.encoder(x)
        return h


def build_network(
    encoder: Encoder,
    projection: Projection,
    mean: Sequence[float],
    std: Sequence[float],
    seed: int,
    predictor: Predictor | None = None,
) -> Network:
    """An untrained network: a function of its specs, the channels (as many as means) and the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        trunk = encoder.build(len(mean))
        width = int(trunk.dim)  # type: ignore[arg-type]
        head = projection.build(width)
        behind = None if predictor is None else predictor.build(getattr(projection, "dim", width))
    network = Network(trunk, head, torch.tensor(mean), torch.tensor(std), behind)
    return network.to(memory_format=torch.channels_last)


def described_network(described: dict[str, Any]) -> Network:
    """The untrained network that ``network.json`` of the training stage describes."""
    encoder = TypeAdapter(Encoder).validate_json(json.dumps(described["encoder"]))
    projection = TypeAdapter(Projection).validate_json(json.dumps(described["projection"]))
    return build_network(encoder, projection, described["mean"], described["std"], described["seed"])


def trained_network(described: dict[str, Any], weights: Path) -> Network:
    """The network that the training stage left: its description and its weights, ready to embed.

    The scalars and the predictor that were trained beside it are the loss's, and are left out.

    Raises:
        Refusal: the weights are missing or damaged.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    network = described_network(described)
    try:
        tensors = load_file(weights)
    except FileNotFoundError:
        raise Refusal(f"{weights}: not there; `dvc checkout` brings it back, `dvc repro` makes it anew") from None
    except SafetensorError as error:
        raise Refusal(
            f"{weights}: damaged ({error}); delete its folder and run `dvc checkout` or `dvc repro`"
        ) from None
    network.load_state_dict({k: value for k, value in tensors.items() if not k.startswith(OF_TRAINING)})
    return network.eval()


CLASSIFIERS = ("fc", "classifier", "head", "heads")
"""Names of the last part of a published model, which tells its classes."""
PICKLED = (".pth", ".pt", ".bin", ".ckpt")


def take_weights(module: nn.Module, file: Path) -> None:
    """Copy an encoder's weights from a safetensors file; names with an ``encoder.`` prefix are taken as well.

    The classifier that a published checkpoint also holds is no part of the encoder and is left.

    Raises:
        Refusal: no such file, not safetensors, or names and shapes that do not match.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not file.is_file():
        raise Refusal(f"{file}: no such weights file; name a .safetensors file")
    try:
        tensors = load_file(file)
    except SafetensorError as error:
        if file.suffix in PICKLED:
            remedy = "safetensors.torch.save_file(torch.load(FILE, weights_only=True), 'weights.safetensors')"
            raise Refusal(f"{file}: a pickle, which is never opened; save its tensors, as {remedy}") from None
        raise Refusal(f"{file}: not a safetensors file ({error})") from None
    inner = {name.removeprefix("encoder."): value for name, value in tensors.items() if name.startswith("encoder.")}
    given, wanted = inner or tensors, module.state_dict()
    missing = sorted(wanted.keys() - given.keys())
    extra = sorted(name for name in given.keys() - wanted.keys() if name.partition(".")[0] not in CLASSIFIERS)
    if missing or extra:
        told = [f"lacks {missing[0]}" for _ in missing[:1]] + [f"has an unknown {extra[0]}" for _ in extra[:1]]
        raise Refusal(f"{file}: does not fit this encoder: it {' and '.join(told)}")
    for name, value in wanted.items():
        if value.shape != given[name].shape:
            raise Refusal(f"{file}: {name} is {tuple(given[name].shape)}, the encoder's is {tuple(value.shape)}")
    module.load_state_dict({name: given[name] for name in wanted})


def layers(module: nn.Module) -> list[str]:
    """The encoder's parts in order, as ``frozen_below`` names them."""
    return [name for name, _ in module.named_children()]


def freeze_below(module: nn.Module, layer: str) -> None:
    """Keep every part before ``layer`` as it is: no gradient, and batch statistics as given.

    Raises:
        Refusal: the encoder has no part of that name.
    """
    if layer not in layers(module):
        raise Refusal(f"training.start.frozen_below = {layer!r}: no such layer; {nearest(layer, layers(module))}")
    for part in _below(module, layer):
        part.requires_grad_(False)


def frozen_to_eval(module: nn.Module) -> None:
    """Put every part that holds parameters and trains none of them into evaluation mode (batch norm included)."""
    for part in module.modules():
        own = list(part.parameters())
        if own and not any(parameter.requires_grad for parameter in own):
            part.eval()


def _below(module: nn.Module, layer: str) -> Iterator[nn.Module]:
    for name, part in module.named_children():
        if name == layer:
            return
        yield part
