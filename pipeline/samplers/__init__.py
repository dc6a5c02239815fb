"""Samplers: where an anchor's candidates come from, and which are positives. The family, written out by hand."""

from typing import Annotated

from pydantic import Field

from pipeline.samplers.hardest import Hardest
from pipeline.samplers.in_batch import InBatch
from pipeline.samplers.no_duplicates import NoDuplicates
from pipeline.samplers.queue import Queue
from pipeline.samplers.rows import Beside
from pipeline.samplers.same_label import SameLabel
from pipeline.samplers.stratified import Stratified, stratified
from pipeline.samplers.threshold import Threshold

Sampler = Annotated[
    InBatch | SameLabel | Queue | NoDuplicates | Threshold | Stratified | Hardest, Field(discriminator="kind")
]

__all__ = [
    "Beside",
    "Hardest",
    "InBatch",
    "NoDuplicates",
    "Queue",
    "SameLabel",
    "Sampler",
    "Stratified",
    "Threshold",
    "stratified",
]
