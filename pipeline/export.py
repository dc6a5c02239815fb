"""The export section of a spec: what goes with the bundle beside weights and declaration."""

from __future__ import annotations

from pydantic import Field

from pipeline.spec import Spec


class Export(Spec):
    """Words for the latent card, and which files leave beside the encoder."""

    description: str = Field(min_length=1)
    """One sentence on what the encoder is for."""
    licence: str = Field(min_length=1)
    """The licence of the data, or what is known of it."""
    projection: bool = True
    """Whether the projection leaves as well, in a file of its own: without it h can be read, and not compared."""
    onnx: bool = False
    """Whether an ONNX graph leaves as well, its preprocessing inside; needs ``pip install -e '.[onnx]'``."""
