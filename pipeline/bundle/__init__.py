"""What leaves the pipeline, opened: ``load`` gives an encoder with its card (``pipeline.bundle.encoder``).

A bundle is a folder that holds no code and no pickle (``pipeline.bundle.writing`` writes it). The card says what the
network is; it is built without weights, and takes those of the file only if names, types, shapes and digest are the
card's. So nothing is executed, and memory is bounded by the architecture.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from pipeline.bundle.card import CARD, CARD_LIMIT, GRAPH, PROJECTION, WEIGHTS, Described, described, parse_card, part
from pipeline.bundle.encoder import Bundle
from pipeline.bundle.files import Read, digest_of_file, reader
from pipeline.bundle.vectors import Vectors
from pipeline.bundle.weights import largest, unpacked, weight_digest
from pipeline.encoders.structure import on_meta
from pipeline.modalities import Held
from pipeline.network import Network
from pipeline.spec import Refusal, canonical

__all__ = ["Bundle", "Vectors", "load"]


def load(place: str | Path, device: str = "cpu") -> Bundle:
    """Open a bundle in a folder or at an fsspec URL.

    Raises:
        Refusal: no such bundle, a missing or damaged file, a newer format, or weights that are not the card's.
    """
    read, shown = reader(place), str(place).rstrip("/") or "/"
    at = f"{shown}/{CARD}"
    card = parse_card(_there(read, shown, CARD, CARD_LIMIT), at)
    about = described(card, at)
    contract = part({"input": card["input"]}, Held, at, "").input
    if contract.channels != len(about.network.mean):
        raise Refusal(
            f"{at}: input of {contract.channels} channels, network of {len(about.network.mean)}; copy the bundle again"
        )
    network = _network(about, at)
    _fill(network.encoder, read, shown, WEIGHTS, card, card["weights"])
    if about.projected:
        _fill(network.projection, read, shown, PROJECTION, card, card["projection"].get("weights"))
    _whole(place, card, shown)
    if any(value.is_meta for value in network.encoder.buffers()):  # what a network computes for itself, in no file
        real = _built(about)
        real.load_state_dict(network.encoder.state_dict())
        network.encoder = real
    return Bundle(network.to(memory_format=torch.channels_last), card, contract, device)


def _network(about: Described, at: str) -> Network:
    """The network without weights: nothing is allocated or drawn. Raises Refusal where no such network can be."""
    channels = len(about.network.mean)
    try:
        try:
            trunk = on_meta(about.network.encoder.build, channels)
        except RuntimeError:  # an architecture that computes with its weights while it is built
            trunk = _built(about)
        width = int(trunk.dim)  # type: ignore[arg-type]
        head = on_meta(about.space.projection.build, width) if about.projected else nn.Identity()
        return Network(trunk, head, torch.tensor(about.network.mean), torch.tensor(about.network.std))
    except (TypeError, ValueError, OverflowError, RuntimeError, MemoryError) as error:
        raise Refusal(
            f"{at}: no network can be built of it ({str(error).splitlines()[0][:120]}); copy the bundle again"
        ) from None


def _built(about: Described) -> nn.Module:
    """The encoder with drawn weights."""
    with torch.random.fork_rng(devices=[]):
        return about.network.encoder.build(len(about.network.mean))


def _fill(module: nn.Module, read: Read, shown: str, name: str, card: dict[str, Any], digested: Any) -> None:
    """Put the weights of a file into a module of ``load``, if they are the card's."""
    expected = module.state_dict()
    tensors, beside = unpacked(_there(read, shown, name, largest(expected)), expected, f"{shown}/{name}")
    if weight_digest(tensors) != digested:
        raise Refusal(f"{shown}/{name}: not the weights that {CARD} describes; copy both again")
    if beside != canonical(card):
        raise Refusal(f"{shown}/{CARD}: not the card that travels in {name}; copy both again")
    module.load_state_dict(tensors, assign=True)


def _whole(place: str | Path, card: dict[str, Any], shown: str) -> None:
    """The graph beside the weights, where there is one, must be the one that was written; none is fetched for that."""
    if "://" in shown:
        return
    path, files = Path(place).expanduser() / GRAPH, card.get("files")
    told = files.get(GRAPH) if isinstance(files, dict) else None
    if path.is_file() and digest_of_file(path) != told:
        raise Refusal(f"{shown}/{GRAPH}: not the graph that {CARD} describes; copy it again, or take it away")


def _there(read: Read, shown: str, name: str, most: int) -> bytes:
    content = read(name, most)
    if content is None:
        remedy = "name a folder that the export stage wrote" if name == CARD else "copy the whole folder"
        raise Refusal(f"{shown}: no bundle: {name} is missing; {remedy}")
    return content
