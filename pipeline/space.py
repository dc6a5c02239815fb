"""The LatentSpace: what must not matter, what must stay readable, and how distances are read. It travels with the
exported encoder, and its identity is the hash of all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pipeline.metrics import Metric
from pipeline.objectives import Objective, Supervised
from pipeline.projections import Projection
from pipeline.samplers import Sampler
from pipeline.spec import Broken, Rule, Spec, digest
from pipeline.temperature import Temperature
from pipeline.views import Invariance, code_digests
from pipeline.views.presets import expanded, preset_faults
from pipeline.views.roles import Asymmetric, MultiCrop, Partners, Role, ViewPlan


class LatentSpace(Spec):
    """A representation space, declared."""

    preset: None
    """A published recipe by name, which is replaced by invariances and views when it is read; null: none."""
    invariances: tuple[Invariance, ...]
    """What must not matter, in order of application; every view goes through it."""
    views: ViewPlan
    """Which views of a sample there are, and what each goes through besides."""
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

    @classmethod
    def expand(cls, content: dict[str, Any]) -> dict[str, Any]:
        """The section with its preset written out."""
        broken = tuple(preset_faults(content))
        if broken:
            raise Broken(broken)
        return expanded(content)

    def rules(self) -> Iterator[Rule]:
        if not isinstance(self.views, Partners) and not all(role.invariances for role in self.roles()):
            yield "invariances", "must have at least 1 item(s), or a view is the picture itself"
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

    def roles(self) -> tuple[Role, ...]:
        """The views of a sample, by what they go through; the first role's views fill the canvas."""
        return self.views.roles(self.invariances)

    def through(self, view: int) -> tuple[Invariance, ...]:
        """What view number ``view`` of a sample goes through, in order."""
        return next(role.invariances for role in self.roles() if view in role.views)

    def placed(self) -> Iterator[tuple[str, Invariance]]:
        """Yield every declared invariance with its path inside the section: the shared ones, then those of roles."""
        yield from ((f"invariances[{number}]", each) for number, each in enumerate(self.invariances))
        if isinstance(self.views, Asymmetric):
            for name in ("first", "second"):
                for number, each in enumerate(getattr(self.views, name)):
                    yield f"views.{name}[{number}]", each
        if isinstance(self.views, MultiCrop):
            yield "views.global_crop", self.views.global_crop
            yield "views.local_crop", self.views.local_crop

    def declared(self) -> tuple[Invariance, ...]:
        """Everything that must not matter, each once: the shared invariances, then those of roles."""
        return tuple(dict.fromkeys(each for _, each in self.placed()))

    def reads(self) -> tuple[str, ...]:
        """The label columns that training reads."""
        return tuple(dict.fromkeys((*self.sampler.reads, *self.views.reads)))

    def identity(self) -> str:
        """SHA-256 of everything declared, the bytes of user code included: equal identities are one declaration.

        Raises:
            Refusal: a file with user code is not there.
        """
        files = code_digests(self)
        return digest({"space": self.model_dump(mode="json"), "code": files}) if files else digest(self)
