"""Encoders: a frozen spec each, with one method ``build(channels)`` that gives an untrained module x → h.

x (N, C, H, W) normalised float where ``sides`` is 2, (N, C, T) where it is 1; h (N, ``module.dim``).
"""

from typing import Annotated, get_args

from pydantic import Field

from pipeline.encoders.log_mel import LogMel
from pipeline.encoders.small import Small
from pipeline.encoders.small_1d import Small1d
from pipeline.encoders.small_residual import SmallResidual
from pipeline.encoders.timm_model import Timm
from pipeline.encoders.torchvision_model import Torchvision

Encoder = Annotated[Small | SmallResidual | Timm | Torchvision | Small1d | LogMel, Field(discriminator="kind")]


def encoder_sides() -> dict[str, int]:
    """How many sides beside the channels a sample must have, by kind of encoder."""
    members = get_args(get_args(Encoder)[0])
    return {get_args(member.model_fields["kind"].annotation)[0]: member.sides for member in members}


__all__ = ["Encoder", "LogMel", "Small", "Small1d", "SmallResidual", "Timm", "Torchvision", "encoder_sides"]
