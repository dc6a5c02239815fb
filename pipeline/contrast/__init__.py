"""The one value that an objective receives, what it is made of, and the terms that an objective returns."""

from pipeline.contrast.relation import Codes, Over, Relation
from pipeline.contrast.term import Term, mean_terms
from pipeline.contrast.value import Contrast, LogSumExp, Total

__all__ = ["Codes", "Contrast", "LogSumExp", "Over", "Relation", "Term", "Total", "mean_terms"]
