"""The LatentSpace: what must not matter, what must stay readable, and how distances are read. It travels with the
exported encoder, and its identity is the hash of all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pipeline.metrics import Metric
from pipeline.objectives import ClassPrior, Objective, Regression, Supervised
from pipeline.projections import Predictor, Projection
from pipeline.samplers import InBatch, NoDuplicates, Queue, SameLabel, Sampler, Threshold
from pipeline.spec import Broken, Rule, Spec, digest
from pipeline.targets import Momentum, Same, Target
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
    predictor: Predictor | None
    """A predictor after the projection (BYOL, SimSiam), in training alone; null: none."""
    target: Target
    """What encodes the keys that anchors are compared with."""
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
        if isinstance(self.objective, Supervised) and not isinstance(self.sampler, SameLabel):
            yield "sampler", "supervised needs labels: {kind: same_label, column: LABEL}; without them it is nt_xent"
        yield from self._rules_of_targets()
        for number, name in enumerate(self.preserves):
            if name in self.preserves[:number]:
                yield f"preserves[{number}]", "named twice"

    def _rules_of_targets(self) -> Iterator[Rule]:
        kind, crossed = self.objective.kind, self.crossed
        if self.predictor is not None and not crossed:
            yield "target", "must be stop_gradient or momentum: a predictor that is its own target predicts nothing"
        if isinstance(self.objective, Regression):
            if self.predictor is None:
                yield (
                    "predictor",
                    f"{kind} needs one, as {{kind: mlp, hidden: 512, norm: batch}}, or it collapses",
                )
            if not crossed:
                yield "target", f"must be stop_gradient or momentum: {kind} has no negatives, and the space collapses"
            if not isinstance(self.sampler, InBatch | SameLabel):
                yield "sampler", f"must be in_batch or same_label: {kind} reads no negatives"
        if isinstance(self.sampler, Queue) and not isinstance(self.target, Momentum):
            yield "target", "must be {kind: momentum, …}: the keys of a queue are made by a slow copy of the network"
        if isinstance(self.sampler, Queue) and isinstance(self.views, MultiCrop):
            yield "sampler", "a queue goes with views of kind pair, asymmetric or partners"
        if isinstance(self.views, Partners) and isinstance(self.sampler, SameLabel | NoDuplicates):
            reads = f"{self.sampler.kind} reads one row's label"
            yield "sampler", f"{reads}, and a partner's view is of another row; take in_batch"
        if isinstance(self.sampler, Threshold) and self.metric == "cosine" and not -1 <= self.sampler.above < 1:
            yield "sampler.above", "must be in [-1, 1): a cosine is never beyond"

    @property
    def crossed(self) -> bool:
        """Whether an anchor's candidates are vectors of a target, and not the anchors themselves."""
        return not isinstance(self.target, Same)

    def starts_at(self, batch: int) -> float | None:
        """The loss of a batch of which nothing is told apart, or None: a mean over anchors that meet more and fewer."""
        own = self.objective.starts_at(self.sampler.candidates(batch, self.crossed))
        if own is None or not (self.crossed and isinstance(self.views, MultiCrop)):
            return own
        locals_ = self.views.local_views  # they meet both global views of every sample, the global ones one
        more = self.objective.starts_at(self.sampler.candidates(batch, False))
        return None if more is None else (2 * own + locals_ * more) / (2 + locals_)

    def batch_statistics(self) -> bool:
        """Whether projection or predictor make a sample's vector depend on the rest of its batch while training."""
        return self.projection.batch_statistics() or (self.predictor is not None and self.predictor.batch_statistics())

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

    def prior_column(self) -> str | None:
        """The label column whose classes' shares the objective takes for its prior; None: it needs none."""
        prior = getattr(self.objective, "prior", None)
        return prior.column if isinstance(prior, ClassPrior) else None

    def identity(self) -> str:
        """SHA-256 of everything declared, the bytes of user code included: equal identities are one declaration.

        Raises:
            Refusal: a file with user code is not there.
        """
        files = code_digests(self)
        return digest({"space": self.model_dump(mode="json"), "code": files}) if files else digest(self)
