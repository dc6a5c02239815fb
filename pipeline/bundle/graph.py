"""The encoder as an ONNX graph with its preprocessing inside: uint8 pixels in, h (and z) out, any number at once.

Pictures come as they lie in memory, (N, H, W, C) uint8 on the canvas, waves (N, C, T) float32; scaling, normalisation,
the network, and where the projection leaves too, z normalised as the space declares, are nodes of the graph. What the
exporter notes about this machine (files, lines) is taken out, so that equal networks give equal bytes. The graph is run
by onnxruntime on real pictures before it leaves.
"""

from __future__ import annotations

import importlib.util
import io
import logging
import warnings
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pipeline import metrics
from pipeline.images import Pixels
from pipeline.network import Network
from pipeline.spec import Refusal

OPSET = 18
AGREEMENT = 1e-5
"""between the graph and the network, of numbers of the size of 1; of larger ones, of the largest"""
BATCHES = (1, 2, 7, 33)
PACKAGES = ("onnx", "onnxscript", "onnxruntime")


class Graph(nn.Module):
    """pixels (N, H, W, C) uint8 → h (N, width), and z (N, dim) where the projection is given."""

    def __init__(self, network: Network, normalization: str, with_z: bool):
        super().__init__()
        self.network, self.normalization, self.with_z = network, normalization, with_z

    def forward(self, pixels: Tensor) -> tuple[Tensor, ...]:
        pictures = pixels.ndim == 4
        images = pixels.permute(0, 3, 1, 2).to(torch.float32) / 255.0 if pictures else pixels
        h = self.network.encode(images)
        if not self.with_z:
            return (h,)
        z = self.network.projection(h)
        return h, metrics.unit(z) if self.normalization == "l2" else z


def refuse_without_packages() -> None:
    """Raise Refusal where what the graph needs is not installed."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        remedy = f"pip install {' '.join(missing)}, or set export.onnx: false"
        raise Refusal(f"export.onnx is true: {', '.join(missing)} not installed; {remedy}")


def write_graph(network: Network, card: dict[str, Any], canvases: Sequence[Pixels]) -> bytes:
    """The graph's bytes.

    Args:
        network: in evaluation mode, on the CPU.
        card: of the bundle; its identity and metric go into the graph's metadata.
        canvases: real pictures, (C, H, W) uint8, that graph and network are compared on.

    Raises:
        Refusal: a package is missing, the exporter cannot express the network, or the two do not agree.
    """
    refuse_without_packages()
    space = card["space"]
    module = Graph(network, space["normalization"], bool(card["projection"]["given"])).eval()
    pictures = [np.moveaxis(canvas, 0, 2) if canvas.ndim == 3 else canvas for canvas in canvases]
    pixels = np.stack(pictures)  # (n, H, W, C)
    model = _exported(module, torch.from_numpy(np.resize(pixels, (2, *pixels.shape[1:]))), card)
    content: bytes = model.SerializeToString(deterministic=True)
    _agree(content, module, pixels)
    return content


def _exported(module: Graph, example: Tensor, card: dict[str, Any]) -> Any:
    import onnx

    names = ["h", "z"] if module.with_z else ["h"]
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()), torch.no_grad():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                module,
                (example,),
                input_names=["pixels"],
                output_names=names,
                opset_version=OPSET,
                dynamic_shapes={"pixels": {0: torch.export.Dim("batch")}},
                dynamo=True,
                verbose=False,
            )
            model = program.model_proto  # type: ignore[union-attr]
    except Exception as error:  # whatever an exporter raises
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
        raise Refusal(f"export.onnx is true: the network has no ONNX form ({reason}); set export.onnx: false") from None
    _plain(model.graph)
    for function in model.functions:
        function.doc_string = ""
        _plain_nodes(function.node)
    del model.metadata_props[:]
    told = {"identity": card["identity"], "metric": card["space"]["metric"], "name": str(card.get("name", ""))}
    onnx.helper.set_model_props(model, told)
    model.producer_version, model.doc_string = "", ""
    onnx.checker.check_model(model)
    return model


def _plain(graph: Any) -> None:
    """Take out what names files and lines of this machine."""
    graph.doc_string = ""
    del graph.metadata_props[:]
    _plain_nodes(graph.node)
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        value.doc_string = ""
        del value.metadata_props[:]


def _plain_nodes(nodes: Any) -> None:
    for node in nodes:
        node.doc_string = ""
        del node.metadata_props[:]
        for attribute in node.attribute:
            attribute.doc_string = ""


def _agree(content: bytes, module: Graph, pixels: np.ndarray) -> None:
    """Run the graph beside the network on batches of several sizes. Raises Refusal."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        for size in BATCHES:
            some = np.resize(pixels, (size, *pixels.shape[1:]))
            found = session.run(None, {"pixels": some})
            with torch.inference_mode():
                wanted = [rows.numpy() for rows in module(torch.from_numpy(some))]
            for name, ours, theirs in zip(("h", "z"), wanted, found, strict=False):
                apart = float(np.abs(ours - theirs).max()) / max(1.0, float(np.abs(ours).max()))
                if not apart <= AGREEMENT:
                    raise Refusal(
                        f"export.onnx is true: {name} of the graph is {apart:.1e} away from the network's on a batch "
                        f"of {size}, {AGREEMENT:.0e} is allowed; set export.onnx: false"
                    )
    except Refusal:
        raise
    except Exception as error:  # its errors share no class
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
        raise Refusal(f"export.onnx is true: onnxruntime cannot run it ({reason}); set export.onnx: false") from None
