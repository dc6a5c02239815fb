"""Floor 1: what can be read from a space without changing it: a kNN and a linear probe, each with its interval.

A probe trains on the ``train`` rows and is tested on rows that it never saw. The encoder is not touched: a probe reads
arrays that were embedded once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from pipeline.spec import Rule, Spec

PROBES = ("knn", "linear")
LAYERS = ("h", "z", "raw", "untrained")
"""The representation, the vector behind the projection, and two controls: the pixels, and h before any training."""
SPLITS = ("test", "view0")
"""The test images as they are, and the same images moved by the declared invariances (fixed seed)."""


class Probe(Spec):
    """The section ``probe`` of a spec: which label columns are read back, and how."""

    labels: tuple[str, ...]
    """Label columns of kind class; each is probed on every layer. None: nothing is probed (unlabelled data)."""
    k: Annotated[int, Field(ge=1)]
    """Neighbours that vote in the kNN probe."""
    temperature: Annotated[float, Field(gt=0)]
    """A neighbour's vote weighs exp(cosine / temperature)."""
    regularization: Annotated[float, Field(gt=0)]
    """Linear probe: weight of half the squared norm of the coefficients against the mean cross-entropy."""

    def rules(self) -> Iterator[Rule]:
        for position, label in enumerate(self.labels):
            if label in self.labels[:position]:
                yield f"labels[{position}]", "named twice; delete one"
