"""Objectives: the family, written out by hand, and the plain functions of tensors for any training loop."""

from pipeline.contrast import Term, mean_terms
from pipeline.objectives.nt_xent import NTXent, info_nce, information_bound, nt_xent

Objective = NTXent

__all__ = ["NTXent", "Objective", "Term", "info_nce", "information_bound", "mean_terms", "nt_xent"]
