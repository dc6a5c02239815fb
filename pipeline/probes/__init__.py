"""Floor 1: what can be read from a space without changing it, each figure with its interval.

Columns of classes are read by kNN, by a linear probe, and by linear probes that are given few labels; columns of
numbers by ridge regression. A probe trains on the ``train`` rows and is tested on rows that it never saw. The encoder
is not touched: a probe reads arrays that were embedded once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from pipeline.spec import Broken, Rule, Spec

LAYERS = ("h", "z", "raw", "untrained")
"""The representation, the vector behind the projection, and two controls: the input, and h before any training."""
SPLITS = ("test", "view0")
"""The test samples as they are, and the same samples moved by the declared invariances (fixed seed)."""
FEW = "few_labels"


class FewLabels(Spec):
    """How much is read with few labels: a linear probe on each of several draws of them, with fixed seeds."""

    percent: Annotated[tuple[Annotated[int, Field(ge=1, le=99)], ...], Field(min_length=1)]
    """Labels that a draw has, % of each class's training rows."""
    draws: Annotated[int, Field(ge=2, le=100)]
    """Draws of each percentage; the interval covers them and the test rows."""

    def rules(self) -> Iterator[Rule]:
        if list(self.percent) != sorted(set(self.percent)):
            yield "percent", f"must rise; write {sorted(set(self.percent))}"


class Probe(Spec):
    """The section ``probe`` of a spec: which label columns are read back, and how."""

    labels: tuple[str, ...]
    """Label columns, of classes or of numbers; each is probed on every layer. None: nothing is (unlabelled data)."""
    k: Annotated[int, Field(ge=1)]
    """Neighbours that vote in the kNN probe."""
    temperature: Annotated[float, Field(gt=0)]
    """A neighbour's vote weighs exp(cosine / temperature)."""
    few_labels: FewLabels | None
    """The probes with few labels; null: none."""

    @classmethod
    def expand(cls, content: dict[str, Any]) -> dict[str, Any]:
        """Tell what became of a key that earlier versions had. Raises Broken."""
        if "regularization" in content:
            remedies = [("regularization", "the probes choose it inside the training rows now; delete this line")]
            if FEW not in content:
                remedies.append((FEW, "missing; write {percent: [1, 10], draws: 5}, or null for no such probe"))
            raise Broken(remedies)
        return content

    def rules(self) -> Iterator[Rule]:
        for position, label in enumerate(self.labels):
            if label in self.labels[:position]:
                yield f"labels[{position}]", "named twice; delete one"
