"""The examples of a bundle's README, one for each way to run its encoder; each is run in the tests.

They read pictures as the input contract says, in NumPy and Pillow alone where no torch is at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipeline.bundle.card import GRAPH, WEIGHTS

MODES = {1: "L", 3: "RGB"}


def examples(card: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (title, code)."""
    yield "With this library", _library(card)
    kind = card["network"]["encoder"]["kind"]
    if kind in ("timm", "torchvision") and "kind" not in card["input"] and card["input"]["channels"] in MODES:
        code = _timm(card) if kind == "timm" else _torchvision(card)
        if code is not None:
            yield f"With {kind} and PyTorch alone", code
    yield "Fine-tuned, in plain PyTorch", _fine_tuned(card)
    if GRAPH in card["files"] and "kind" not in card["input"] and card["input"]["channels"] in MODES:
        yield "With onnxruntime, NumPy and Pillow alone", _onnx(card)


def _library(card: dict[str, Any]) -> str:
    compared = card["space"]["projection"]["kind"] == "none" or card["projection"]["given"]
    lines = ["from pipeline.bundle import load", "", 'space = load(".")', 'h = space.embed(["a.png", "b.png"])']
    lines.append(f"print(h.shape)  # (2, {card['width']})")
    if compared:
        lines.append("print(space.similarity(h[0], h[1]))  # as the space declares")
        lines.append("rows, similar = space.neighbors(h[:1], h, k=2)  # the most similar first")
    return "\n".join(lines)


def picture(contract: dict[str, Any]) -> str:
    """``picture(path)`` in NumPy and Pillow: (height, width, channels) uint8, as in training."""
    height, width, mode = contract["height"], contract["width"], MODES[contract["channels"]]
    lines = ["def picture(path):  # opaque pictures of 8 bits, as in training"]
    lines.append(f'    image = ImageOps.exif_transpose(Image.open(path)).convert("{mode}")')
    if contract["fit"] == "pad":
        level = (contract["background"],) * contract["channels"]
        lines += [
            f"    shrink = min(1.0, {height} / image.height, {width} / image.width)",
            "    size = max(1, round(image.width * shrink)), max(1, round(image.height * shrink))",
            f'    canvas = Image.new("{mode}", ({width}, {height}), {level if len(level) > 1 else level[0]})',
            f"    corner = ({width} - size[0]) // 2, ({height} - size[1]) // 2",
            "    canvas.paste(image.resize(size, Image.Resampling.BILINEAR), corner)",
            "    image = canvas",
        ]
    else:
        if contract["fit"] == "cover":
            lines += [
                f"    share = min(image.height / {height}, image.width / {width})",
                f"    tall, wide = max(1, round({height} * share)), max(1, round({width} * share))",
                "    top, left = (image.height - tall) // 2, (image.width - wide) // 2",
                "    image = image.crop((left, top, left + wide, top + tall))",
            ]
        lines.append(f"    image = image.resize(({width}, {height}), Image.Resampling.BILINEAR)")
    lines.append(f"    return np.asarray(image).reshape({height}, {width}, {contract['channels']})")
    return "\n".join(lines)


def _torch_end(card: dict[str, Any]) -> str:
    """The end of an example in plain PyTorch: pictures through ``encoder``."""
    mean, std = (f"torch.tensor({list(card['network'][name])}).reshape(1, -1, 1, 1)" for name in ("mean", "std"))
    return f"""
{picture(card["input"])}

pixels = torch.from_numpy(np.stack([picture("a.png"), picture("b.png")])).permute(0, 3, 1, 2)
mean, std = {mean}, {std}
with torch.inference_mode():
    h = encoder.eval()((pixels / 255 - mean) / std)
"""


def _timm(card: dict[str, Any]) -> str:
    encoder = card["network"]["encoder"]
    made = f'timm.create_model("{encoder["name"]}", num_classes=0, in_chans={card["input"]["channels"]})'
    return f"""
import numpy as np
import timm
import torch
from PIL import Image, ImageOps
from safetensors.torch import load_file

encoder = {made}
{_small_stem(card)}encoder.load_state_dict(load_file("{WEIGHTS}"))
{_torch_end(card)}"""


def _torchvision(card: dict[str, Any]) -> str | None:
    from torch import nn
    from torchvision import models

    from pipeline.encoders.structure import on_meta

    encoder = card["network"]["encoder"]
    if card["input"]["channels"] != 3:
        return None
    module = on_meta(lambda _: models.get_model(encoder["name"], weights=None))
    heads = {name: getattr(module, name, None) for name in ("fc", "classifier", "head", "heads")}
    name, head = next((name, head) for name, head in heads.items() if isinstance(head, (nn.Linear, nn.Sequential)))
    place = name if isinstance(head, nn.Linear) else f"{name}[-1]"
    return f"""
import numpy as np
import torch
from PIL import Image, ImageOps
from safetensors.torch import load_file
from torchvision import models

encoder = models.get_model("{encoder["name"]}", weights=None)
encoder.{place} = torch.nn.Identity()  # h is what the classifier read
{_small_stem(card)}encoder.load_state_dict(load_file("{WEIGHTS}"))
{_torch_end(card)}"""


def _small_stem(card: dict[str, Any]) -> str:
    """The lines that give a residual network the stem for small images, where it was trained with one."""
    if not card["network"]["encoder"]["small_stem"]:
        return ""
    return (
        f"encoder.conv1 = torch.nn.Conv2d({card['input']['channels']}, encoder.conv1.out_channels, 3, padding=1, "
        "bias=encoder.conv1.bias is not None)\nencoder.maxpool = torch.nn.Identity()\n"
    )


def _fine_tuned(card: dict[str, Any]) -> str:
    return f"""
import torch
from pipeline.bundle import load
from pipeline.bundle.reading import as_input, on_canvas

paths, labels = ["a.png", "b.png"], torch.tensor([0, 1])
space = load(".")
head = torch.nn.Linear({card["width"]}, 2)
model = torch.nn.ModuleList([space.network.encoder, head]).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
inputs = as_input([on_canvas(path, space.input) for path in paths])
for step in range(5):
    loss = torch.nn.functional.cross_entropy(head(space.network.encode(inputs)), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
"""


def _onnx(card: dict[str, Any]) -> str:
    with_z = card["projection"]["given"]
    metric = card["space"]["metric"]
    found = "h, z" if with_z else "(h,)"
    compared = {
        "cosine": "z @ z.T" if card["space"]["normalization"] == "l2" else "",
        "dot": "z @ z.T",
        "euclidean": "-np.linalg.norm(z[:, None] - z[None], axis=2)",
        "squared_euclidean": "-np.square(z[:, None] - z[None]).sum(axis=2)",
    }[metric]
    end = f"print({compared})  # similarity of each to each, as the space declares" if with_z else "print(h.shape)"
    return f"""
import numpy as np
import onnxruntime
from PIL import Image, ImageOps

{picture(card["input"])}

graph = onnxruntime.InferenceSession("{GRAPH}")
{found} = graph.run(None, {{"pixels": np.stack([picture("a.png"), picture("b.png")])}})
{end}
"""
