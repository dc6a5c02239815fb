"""The one value that an objective receives, what it is made of, and the terms that an objective returns."""

from pipeline.contrast.candidates import Candidates
from pipeline.contrast.codes import Codes, Pairs
from pipeline.contrast.relation import Over, Relation
from pipeline.contrast.requests import LogSumExp, Total, softplus
from pipeline.contrast.term import Term, mean_terms
from pipeline.contrast.unit_length import unit
from pipeline.contrast.value import Contrast

__all__ = [
    "Candidates",
    "Codes",
    "Contrast",
    "LogSumExp",
    "Over",
    "Pairs",
    "Relation",
    "Term",
    "Total",
    "mean_terms",
    "softplus",
    "unit",
]
