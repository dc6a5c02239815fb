"""Samplers: where an anchor's candidates come from. The family, written out by hand."""

from pipeline.samplers.in_batch import InBatch

Sampler = InBatch

__all__ = ["InBatch", "Sampler"]
