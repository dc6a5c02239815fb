"""Encoders: a frozen spec each, with one method ``build(channels)`` that gives an untrained module x → h.

x (N, C, H, W) normalised float; h (N, ``module.dim``).
"""

from typing import Annotated

from pydantic import Field

from pipeline.encoders.small import Small
from pipeline.encoders.small_residual import SmallResidual
from pipeline.encoders.timm_model import Timm
from pipeline.encoders.torchvision_model import Torchvision

Encoder = Annotated[Small | SmallResidual | Timm | Torchvision, Field(discriminator="kind")]

__all__ = ["Encoder", "Small", "SmallResidual", "Timm", "Torchvision"]
