"""The one value that an objective receives, and what it is made of."""

from pipeline.contrast.relation import Codes, Over, Relation
from pipeline.contrast.value import Contrast, LogSumExp, Total

__all__ = ["Codes", "Contrast", "LogSumExp", "Over", "Relation", "Total"]
