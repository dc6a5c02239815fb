"""The latent card of a bundle: canonical JSON, its identity, and what must hold of one that anybody may have written.

A card is judged before anything is built from it: its size, its depth, its types, its format, and whether its identity
is that of its content.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from pipeline.encoders import Encoder
from pipeline.metrics import Metric
from pipeline.projections import NoProjection, Projection
from pipeline.spec import Model, Refusal, Rule, Spec, canonical, digest, parse

FORMAT = 2
"""Of the card; raised when a reader must know more."""

CARD, WEIGHTS, PROJECTION, GRAPH, README = (
    "card.json",
    "encoder.safetensors",
    "projection.safetensors",
    "model.onnx",
    "README.md",
)
CARD_LIMIT, NETWORK_LIMIT = 2**24, 2**14
"""bytes of a card, and of the network's description in it"""
TOLD = 400
"""letters of a fault, at most"""

OF_IDENTITY = ("space", "space_identity", "network", "input", "weights", "projection")
"""What makes h and z what they are: the declaration, the network, how inputs reach it, its weights."""

WRITTEN = {"space": dict, "network": dict, "input": dict, "projection": dict, "weights": str, "identity": str}
"""What a card must have to be opened, and of which type."""


class NetworkPart(Spec):
    """``network`` of a card: the encoder and what its channels are normalised by."""

    encoder: Encoder
    mean: tuple[float, ...] = Field(min_length=1, max_length=64)
    """of each channel, in [0, 1]"""
    std: tuple[float, ...] = Field(min_length=1, max_length=64)
    seed: int
    """of the weights before the first step"""

    def rules(self) -> Iterator[Rule]:
        if len(self.mean) != len(self.std):
            yield "std", f"must have one value a channel: {len(self.mean)}"


class SpacePart(Spec):
    """What opening a bundle reads of ``space``."""

    projection: Projection
    normalization: Literal["l2", "none"]
    metric: Metric


@dataclass(frozen=True)
class Described:
    """What the network of a card is."""

    network: NetworkPart
    space: SpacePart
    given: bool
    """whether the projection is in the bundle"""

    @property
    def projected(self) -> bool:
        """Whether there is a file of the projection's weights."""
        return self.given and not isinstance(self.space.projection, NoProjection)


def card_text(card: dict[str, Any]) -> str:
    """A card as it is written: indented, keys sorted, one line end at the end; NaN and infinity are refused."""
    return json.dumps(card, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def identity(card: dict[str, Any]) -> str:
    """SHA-256 of all that makes vectors what they are: another seed is another coordinate system."""
    return digest(of_identity(card))


def of_identity(card: dict[str, Any]) -> dict[str, Any]:
    """The parts that the identity is of; whether the projection has left with the bundle is none."""
    parts = {name: card.get(name) for name in OF_IDENTITY}
    parts["projection"] = (card.get("projection") or {}).get("weights")
    return parts


def parse_card(content: bytes, place: str) -> dict[str, Any]:
    """The card that bytes hold.

    Raises:
        Refusal: not JSON, too large or too deep, an unknown format, a part missing or of another type, or an identity
            that is not its content's.
    """
    if len(content) > CARD_LIMIT:
        raise Refusal(f"{place}: {len(content)} bytes are no card; the limit is {CARD_LIMIT}")
    try:
        card = json.loads(content.decode("utf-8"))
        canonical(card).encode()
    except RecursionError:
        raise Refusal(f"{place}: damaged: nested too deep; copy the bundle again") from None
    except ValueError as error:
        raise Refusal(f"{place}: damaged: {str(error).splitlines()[0][:120]}; copy the bundle again") from None
    found = card.get("format") if isinstance(card, dict) else None
    if type(found) is not int:
        raise Refusal(f"{place}: format is not {FORMAT}: no card of a bundle; copy the bundle again")
    if found != FORMAT:
        remedy = "install the version that wrote it" if found > FORMAT else "export it again with `dvc repro`"
        raise Refusal(f"{place}: format is not {FORMAT} but {str(found)[:20]}; {remedy}")
    for name, kind in WRITTEN.items():
        if not isinstance(card.get(name), kind):
            raise Refusal(f"{place}: '{name}' is missing or no {kind.__name__}; copy the bundle again")
    if card["identity"] != identity(card):
        raise Refusal(f"{place}: was changed after it was written; copy the bundle again")
    if (
        len(canonical(card["network"])) > NETWORK_LIMIT
        or len(canonical(card["space"].get("projection"))) > NETWORK_LIMIT
    ):
        raise Refusal(f"{place}: describes a network at a length of which none is; copy the bundle again")
    return dict(card)


def described(card: dict[str, Any], place: str) -> Described:
    """The network of a card. Raises Refusal."""
    read = {name: card["space"][name] for name in SpacePart.model_fields if name in card["space"]}
    space = part(read, SpacePart, place, "space")
    given = card["projection"].get("given") is True
    return Described(part(card["network"], NetworkPart, place, "network"), space, given)


def part(content: Any, model: type[Model], place: str, name: str) -> Model:
    """One part of a card as ``model``. Raises Refusal: the first fault, on one line that is not long."""
    try:
        return parse(content, model, place, name)
    except Refusal as refusal:
        raise Refusal(str(refusal).splitlines()[0][:TOLD]) from None
