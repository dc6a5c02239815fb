"""An encoder that knows its own preprocessing, metric and normalization, as ``pipeline.bundle.load`` opens it.

Its vectors carry its identity and are compared as the space declares, and in no other way: the loss shaped similarities
of z, and says nothing of distances between h. So h is taken through the projection before it is compared.

Legend: N inputs, A and B vectors that are compared, D the width of h or z.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor

from pipeline import metrics
from pipeline.bundle.reading import Raw, as_input, is_one, on_canvas
from pipeline.bundle.vectors import Layer, Rows, Vectors, as_tensor, distances, nearest, similarities
from pipeline.modalities import Modality
from pipeline.network import Network
from pipeline.spec import Refusal

BATCH = 256


class Bundle:
    """A trained encoder with its card. ``embed`` maps raw images to h or z; two vectors are compared by the space."""

    def __init__(self, network: Network, card: dict[str, Any], contract: Modality, device: str = "cpu"):
        self.network, self.card, self.input, self.device = network.eval().to(device), card, contract, device
        self.identity: str = card["identity"]
        self.width = int(network.encoder.dim)  # type: ignore[arg-type]
        self.metric: metrics.Metric = card["space"]["metric"]
        self.normalization: str = card["space"]["normalization"]

    @torch.inference_mode()
    def embed(self, images: Iterable[Raw] | np.ndarray, batch: int = BATCH, layer: Layer = "h") -> Vectors:
        """Raw images to vectors; no more than a batch of pictures is in memory.

        Args:
            images: uint8 arrays (H, W, C) or (H, W), encoded bytes, paths of image files, or Pillow's images, of any
                sizes; brought to the input size as in training.
            batch: images in one pass.
            layer: h, before the projection; z, where the loss acted, normalised as the space declares.

        Returns:
            (N, width), float32, with the identity of the space and the names of paths.

        Raises:
            Refusal: one image instead of a list, none, an image that cannot be read or has another type or channels,
                or z of a bundle that left its projection behind.
        """
        if is_one(images):
            raise Refusal(
                f"embed: one {self.input.word} was given; give a list, or an array whose first axis counts them"
            )
        if layer == "z" and not self.has_z:
            raise Refusal(f"embed: layer z: {self._without_z()}")
        if layer not in get_args(Layer):
            raise Refusal(f"embed: layer {layer!r}: the space defines h and z")
        names: list[str] = []
        parts: list[Rows] = []
        for some in _batches(images, batch):
            names += [str(raw) for raw in some if isinstance(raw, (str, Path))]
            parts.append(self.encode([on_canvas(raw, self.input) for raw in some], layer))
        if not parts:
            raise Refusal(f"embed: no {self.input.word} was given; give one or more")
        values: Rows = np.concatenate(parts)
        return Vectors(values, self.identity, layer, tuple(names) if len(names) == len(values) else None)

    @torch.inference_mode()
    def encode(self, canvases: list[np.ndarray], layer: Layer = "h") -> Rows:
        """Canvases (C, H, W) uint8, of this bundle's input, in one pass: (n, width)."""
        h = self.network.encode(as_input(canvases).to(self.device))
        rows: Rows = (h if layer == "h" else self._project(h)).float().cpu().numpy()
        return rows

    def similarity(self, a: Vectors, b: Vectors, metric: str | None = None, layer: str | None = None) -> Rows:
        """Similarity of each of a to each of b, (A, B): by the metric of the space, on z normalised as it declares;
        h is taken through the projection first.

        Raises:
            Refusal: vectors of another space, or a metric or layer that the space does not define.
        """
        self._defined(metric, layer)
        return similarities(self._compared(a), self._compared(b), self.metric)

    def distance(self, a: Vectors, b: Vectors, metric: str | None = None, layer: str | None = None) -> Rows:
        """Distance of each of a to each of b, (A, B): 1 - cosine, or Euclidean (or squared), as the space declares.

        Raises:
            Refusal: as for ``similarity``; or the metric is the inner product, which has no distance.
        """
        return distances(self.similarity(a, b, metric, layer), self.metric)

    def neighbors(self, queries: Vectors, gallery: Vectors, k: int = 10) -> tuple[np.ndarray, Rows]:
        """The k most similar of the gallery for each query: rows of the gallery (A, k), and their similarities (A, k),
        the most similar first. Exact; a query that is in the gallery finds itself.

        Raises:
            Refusal: as for ``similarity``; or there are fewer than k.
        """
        if not 1 <= k <= len(gallery):
            raise Refusal(f"neighbors: k = {k} of {len(gallery)} vectors; must lie between 1 and {len(gallery)}")
        return nearest(self._compared(queries), self._compared(gallery), self.metric, k)

    def dim(self, layer: Layer) -> int:
        """D of a layer's vectors."""
        return self.width if layer == "h" else self.card["space"]["projection"].get("dim", self.width)

    @property
    def has_z(self) -> bool:
        """Whether the projection is here, so that vectors can be compared."""
        return self.card["space"]["projection"]["kind"] == "none" or self.card["projection"]["given"] is True

    @torch.inference_mode()
    def compared(self, vectors: Vectors) -> Vectors:
        """The vectors as they are compared: z, normalised as the space declares. Raises Refusal."""
        return Vectors(self._compared(vectors), self.identity, "z", vectors.names)

    @torch.inference_mode()
    def _compared(self, vectors: Vectors) -> Rows:
        if not isinstance(vectors, Vectors):
            raise Refusal(f"{type(vectors).__name__}: not known of which space; give what embed or read_vectors gave")
        if vectors.identity != self.identity:
            raise Refusal(
                f"vectors of another space ({vectors.identity[:8]}; this one is {self.identity[:8]}): another seed is "
                "another coordinate system, so no number between them means anything; embed both with one bundle"
            )
        if vectors.layer == "z":
            return vectors.values
        if vectors.shape[1] != self.width:
            raise Refusal(f"vectors of {vectors.shape[1]} numbers; h of this bundle has {self.width}; embed them again")
        if not self.has_z:
            raise Refusal(f"vectors of layer h: {self._without_z()}")
        h = as_tensor(vectors.values).to(self.device)
        parts = [self._project(h[start : start + 4096]) for start in range(0, len(h), 4096)]
        found: Rows = torch.cat(parts).cpu().numpy() if parts else np.empty((0, 1), np.float32)
        return found

    def _project(self, h: Tensor) -> Tensor:
        z: Tensor = self.network.projection(h)
        return metrics.unit(z) if self.normalization == "l2" else z

    def _without_z(self) -> str:
        return (
            f"the space declares {self.metric} on z (normalization {self.normalization}), and this bundle has no "
            "projection; export it with export.projection: true"
        )

    def _defined(self, metric: str | None, layer: str | None) -> None:
        if metric not in (None, self.metric):
            raise Refusal(
                f"metric {metric!r}: the space was trained with {self.metric} on z (normalization "
                f"{self.normalization}), and its loss says nothing of others; leave metric out"
            )
        if layer == "h" and self.card["space"]["projection"]["kind"] != "none":
            raise Refusal(
                f"layer 'h': the space defines {self.metric} on z, and a distance between h is not it; leave layer "
                "out: h is taken through the projection"
            )
        if layer not in (None, *get_args(Layer)):
            raise Refusal(f"layer {layer!r}: the space defines h and z")


def _batches(images: Iterable[Raw], size: int) -> Iterator[list[Raw]]:
    """The images in lists of ``size``."""
    remaining = iter(images)
    for first in remaining:
        yield list(chain([first], islice(remaining, size - 1)))
