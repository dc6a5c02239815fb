"""The LatentSpace: what must not matter, what must stay readable, and how distances are read. It travels with the
exported encoder, and its identity is the hash of all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from pipeline.metrics import Metric
from pipeline.objectives import Objective, Supervised
from pipeline.projections import Projection
from pipeline.samplers import Sampler
from pipeline.spec import Rule, Spec, digest
from pipeline.temperature import Temperature
from pipeline.views import Invariance, code_digests


class LatentSpace(Spec):
    """A representation space, declared."""

    invariances: Annotated[tuple[Invariance, ...], Field(min_length=1)]
    """What must not matter, in order of application."""
    preserves: tuple[str, ...]
    """What must stay readable from h: factor names or label columns."""
    projection: Projection
    """From h to z, where the loss acts."""
    predictor: None
    """A predictor after the projection (BYOL, SimSiam); null: none."""
    target: Literal["same"]
    """What encodes the keys: the same network."""
    normalization: Literal["l2", "none"]
    """What is done to z before distances are read."""
    metric: Metric
    """How similar two z are."""
    temperature: Temperature | None
    """Divides similarities into logits; null exactly where the objective has none."""
    sampler: Sampler
    """Where an anchor's candidates come from."""
    objective: Objective
    """What is minimised."""

    def rules(self) -> Iterator[Rule]:
        kind = self.objective.kind
        if self.objective.uses_temperature and self.temperature is None:
            yield "temperature", f"must be a number above 0: {kind} divides by it"
        if not self.objective.uses_temperature and self.temperature is not None:
            yield "temperature", f"must be null: {kind} has no temperature, so it would be silently unused"
        if self.metric not in self.objective.metrics:
            yield "metric", f"{kind} works with {', '.join(sorted(self.objective.metrics))}"
        if self.metric == "cosine" and self.normalization != "l2":
            yield "normalization", "must be l2: the cosine reads directions only"
        if isinstance(self.objective, Supervised) and not self.sampler.reads:
            yield "sampler", "supervised needs labels: {kind: same_label, column: LABEL}; without them it is nt_xent"
        for number, name in enumerate(self.preserves):
            if name in self.preserves[:number]:
                yield f"preserves[{number}]", "named twice"

    def identity(self) -> str:
        """SHA-256 of everything declared, the bytes of user code included: equal identities are one declaration.

        Raises:
            Refusal: a file with user code is not there.
        """
        files = code_digests(self)
        return digest({"space": self.model_dump(mode="json"), "code": files}) if files else digest(self)
