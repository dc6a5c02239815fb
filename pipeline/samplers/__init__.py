"""Samplers: where an anchor's candidates come from, and which are positives. The family, written out by hand."""

from typing import Annotated

from pydantic import Field

from pipeline.samplers.in_batch import InBatch
from pipeline.samplers.same_label import SameLabel

Sampler = Annotated[InBatch | SameLabel, Field(discriminator="kind")]

__all__ = ["InBatch", "SameLabel", "Sampler"]
