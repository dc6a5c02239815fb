"""Encoders that somebody has already: a timm or torchvision model by name, an ONNX file, or a bundle.

Each becomes the same thing: the contract that its samples are brought to, and a function from a batch of them to
vectors, with all preprocessing inside it. Models by name and ONNX files read pictures, a bundle what its card says.
Models of timm and torchvision come with their published weights (fetched by those libraries where they are not at
hand), with weights of one's own, or untrained.

Legend: n pictures of a batch, C, H, W the canvas, D the width of h.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.images import Input
from pipeline.modalities import Modality
from pipeline.spec import Refusal, nearest

Pictures = npt.NDArray[np.uint8]
Rows = npt.NDArray[np.float32]
KINDS = ("timm", "torchvision")
NONE = "none"
"""as weights: the untrained network"""


@dataclass(frozen=True)
class GivenEncoder:
    """From samples of one contract to vectors."""

    name: str
    canvas: Modality
    encode: Callable[[Any], Rows]
    """float tensor, of pictures (n, C, H, W) in [0, 1] → (n, D) float32"""
    told: str
    """what it is, for the reader of the figures: weights, preprocessing"""


@dataclass(frozen=True)
class Preprocessing:
    """What stands between pixels in [0, 1] and the network; null: the model's own, else none."""

    size: int | None = None
    """height and width of the canvas, pixels"""
    mean: Sequence[float] | None = None
    """of each channel, in [0, 1]"""
    std: Sequence[float] | None = None


def open_encoder(text: str, weights: str | None, given: Preprocessing, device: str = "cpu") -> GivenEncoder:
    """The encoder that a command line names: ``timm:NAME``, ``torchvision:NAME`` or the path of an .onnx file.

    Args:
        weights: a .safetensors file, ``none`` for the untrained network, or None for the published ones.

    Raises:
        Refusal: no such model or file, a library that is not installed, weights that are not at hand or do not fit.
    """
    kind, separator, name = text.partition(":")
    if separator and kind in KINDS:
        return (_timm if kind == "timm" else _torchvision)(name, weights, given, device)
    if text.endswith(".onnx"):
        if weights is not None:
            raise Refusal(f"--weights {weights}: an ONNX file holds its own; leave it out")
        from pipeline.given.onnx import open_onnx

        return open_onnx(Path(text), given)
    raise Refusal(f"--encoder {text}: name timm:MODEL, torchvision:MODEL or FILE.onnx; {nearest(kind, KINDS)}")


def _timm(name: str, weights: str | None, given: Preprocessing, device: str) -> GivenEncoder:
    try:
        import timm
        from timm.data import resolve_model_data_config
    except ImportError:
        raise Refusal(f"--encoder timm:{name}: timm is not installed; pip install timm") from None
    if not timm.is_model(name.partition(".")[0]):
        raise Refusal(f"--encoder timm:{name}: no such timm model; {nearest(name, timm.list_models())}")
    try:
        with _seeded():
            module = timm.create_model(name, pretrained=weights is None, num_classes=0)
    except Exception as error:  # whatever a hub and a network raise
        raise Refusal(_not_at_hand(f"timm:{name}", error)) from None
    own = resolve_model_data_config(module)
    side = int(own["input_size"][-1])
    crop = float(own.get("crop_pct") or 1.0)
    return _module(f"timm:{name}", module, weights, given, (side, crop, own["mean"], own["std"]), device)


def _torchvision(name: str, weights: str | None, given: Preprocessing, device: str) -> GivenEncoder:
    from torchvision import models

    from pipeline.encoders import Torchvision

    known = models.list_models(module=models)
    if name not in known:
        raise Refusal(f"--encoder torchvision:{name}: no such torchvision model; {nearest(name, known)}")
    published = models.get_model_weights(name).DEFAULT
    try:
        with _seeded():
            module = Torchvision.model_construct(kind="torchvision", name=name, small_stem=False).build(3)
    except ValueError as error:
        raise Refusal(f"--encoder torchvision:{name}: {error}") from None
    if weights is None:
        try:
            fetched = published.get_state_dict(progress=True, check_hash=True, weights_only=True)
        except Exception as error:  # whatever a network raises
            raise Refusal(_not_at_hand(f"torchvision:{name}", error)) from None
        module.load_state_dict({key: fetched[key] for key in module.state_dict()})
    own = published.transforms()
    side, resized = int(own.crop_size[0]), int(own.resize_size[0])
    return _module(f"torchvision:{name}", module, weights, given, (side, side / resized, own.mean, own.std), device)


@contextmanager
def _seeded() -> Iterator[None]:
    """An untrained network is the same in every run."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def _not_at_hand(name: str, error: Exception) -> str:
    first = (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
    return f"--encoder {name}: its published weights are not at hand ({first}); give --weights FILE.safetensors or none"


def _module(
    name: str,
    module: Any,
    weights: str | None,
    given: Preprocessing,
    own: tuple[int, float, Sequence[float], Sequence[float]],
    device: str,
) -> GivenEncoder:
    """A torch module behind its preprocessing: the canvas is covered, the centre cut, channels normalised."""
    import torch

    from pipeline.network import take_weights

    if weights not in (None, NONE):
        take_weights(module, Path(str(weights)))
    side, crop, mean, std = own
    side, crop = (given.size, 1.0) if given.size is not None else (side, crop)
    mean, std = given.mean or mean, given.std or std
    middle, spread = (torch.tensor([*each], device=device).reshape(1, -1, 1, 1) for each in (mean, std))
    module = module.eval().to(device)
    whole = max(side, round(side / crop))
    start = (whole - side) // 2

    @torch.inference_mode()
    def encode(pictures: torch.Tensor) -> Rows:
        x = pictures[:, :, start : start + side, start : start + side]
        try:
            h = module((x.to(device) - middle) / spread)
        except RuntimeError as error:
            raise Refusal(f"{name}: cannot read pictures of {side} x {side}: {str(error).splitlines()[0]}") from None
        rows: Rows = h.flatten(1).float().cpu().numpy()
        return rows

    of = {None: "published weights", NONE: "untrained (seed 0)"}.get(weights, f"weights of {weights}")
    channels = ", ".join(f"{value:.3g}" for value in mean), ", ".join(f"{value:.3g}" for value in std)
    told = f"{of}; canvas {whole} x {whole} covered, centre {side} x {side}; mean {channels[0]}; std {channels[1]}"
    return GivenEncoder(name, Input(height=whole, width=whole, channels=len(mean), fit="cover"), encode, told)
