"""Modalities: what kinds of samples there are, and the seam by which the rest of the library meets them.

A data set's ``input`` is its *contract*: what every raw sample becomes before anything else sees it, and so which
modality it is. All that differs between modalities hangs on it:

| part | what it is | where |
|---|---|---|
| decode | raw bytes to the canvas, or a reason for the ledger | the contract: ``take``, ``read``, … |
| size, scale, picture | what views fill, what an encoder reads, what a person sees | the contract |
| invariances | what may be declared of it | its union in ``views`` |
| encoders | what reads it | its members of ``encoders.Encoder``, by ``sides`` |
| probes, shortcuts, drafts, controls | what check and audit ask it | ``modalities.proofs`` |

The training loop, the stages, the laws and the report know none of them. A further modality is a folder of its own and
one name in each of the unions: ``Contract`` here, ``Invariance``, ``Encoder``, and ``proofs.proof_of``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Discriminator, Tag

from pipeline.audio import Audio
from pipeline.images import Input
from pipeline.modalities.protocol import Modality
from pipeline.series import Series
from pipeline.spec import Spec, parse


def _kind(value: Any) -> str:
    """The tag of a contract: its ``kind``; pictures, which came first, have none."""
    kind = value.get("kind") if isinstance(value, Mapping) else getattr(value, "kind", None)
    return "image" if kind is None else "" if kind == "image" else str(kind)


Contract = Annotated[
    Annotated[Input, Tag("image")] | Annotated[Audio, Tag("audio")] | Annotated[Series, Tag("series")],
    Discriminator(
        _kind,
        custom_error_type="unknown_kind",
        custom_error_message="audio, series; pictures have no kind: leave it out",
    ),
]
"""What the samples of a data set are."""


class Held(Spec):
    """A contract where a model is asked for."""

    input: Contract


def contract_of(content: Any, file: str) -> Modality:
    """A contract from plain content, as a card holds it. Raises SpecError."""
    held: Held = parse({"input": content}, Held, file)
    return held.input


__all__ = ["Contract", "Held", "Modality", "contract_of"]
