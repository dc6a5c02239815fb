"""The section of a spec that says how the space is trained, and what of it fits a split, a machine and the space."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from pipeline.encoders import Encoder
from pipeline.encoders.structure import draws, on_meta
from pipeline.groups import indivisible
from pipeline.network import layers
from pipeline.optimizers import Cosine, Optimizer, Schedule
from pipeline.samplers import Queue
from pipeline.space import LatentSpace
from pipeline.spec import Rule, Spec, nearest


class Untrained(Spec):
    """Weights drawn from the seed."""

    kind: Literal["untrained"]


class Weights(Spec):
    """An encoder that was trained before."""

    kind: Literal["weights"]
    file: str
    """A safetensors file in the spec's folder of user files."""
    frozen_below: str | None
    """The layer below which nothing is trained; null: the whole encoder is trained on."""


class Training(Spec):
    """How the space is trained. Nothing about the hardware: that is machine.yaml."""

    encoder: Encoder
    """x to h."""
    start: Annotated[Untrained | Weights, Field(discriminator="kind")]
    """Where the encoder's weights come from."""
    global_batch: int = Field(ge=2)
    """Samples in a step, over all ranks."""
    norm_group: int | None
    """Samples that share batch statistics, and what drops at random; null exactly where the network has neither."""
    epochs: int = Field(ge=1)
    """Times through the training split; what does not fill a batch is left out of an epoch."""
    optimizer: Optimizer
    schedule: Schedule
    precision: Literal["float32", "bf16"]
    """Of the network's products; the loss is float32 in either."""
    seed: int = Field(ge=0, lt=2**63)
    """Of weights, order and views."""

    def rules(self) -> Iterator[Rule]:
        divides = self.norm_group is not None and self.norm_group >= 2 and self.global_batch % self.norm_group == 0
        if self.norm_group is not None and not divides:
            yield "norm_group", f"must divide global_batch ({self.global_batch}), or be it, and be at least 2"
        if self.norm_group is None and self.encoder.batch_statistics():
            whole = f"must be global_batch ({self.global_batch}), or a divisor of it"
            yield "norm_group", f"{whole}: this encoder has batch normalisation"
        if isinstance(self.schedule, Cosine) and self.schedule.warmup_epochs >= self.epochs:
            yield "schedule.warmup_epochs", f"must be below epochs ({self.epochs}), or the peak is never reached"
        if isinstance(self.start, Weights) and self.start.frozen_below is not None:
            known = layers(on_meta(self.encoder.build))
            if self.start.frozen_below not in known:
                yield "start.frozen_below", f"no such layer; {nearest(self.start.frozen_below, known)}"


def unfit(
    training: Training,
    count: int,
    ranks: int = 1,
    device: str = "cpu",
    micro_batch: int | None = None,
    space: LatentSpace | None = None,
) -> str | None:
    """Why a split cannot fill the batch or is no larger than the queue, or why ranks and micro-batches cannot divide
    the batch or share its statistics; None if they can."""
    batch = training.global_batch
    if batch > count:
        return f"training.global_batch = {batch}: larger than the training split; at most {count}"
    if batch % ranks:
        fitting = max(ranks, batch // ranks * ranks)
        remedy = f"take {fitting}, or another number of processes in machine.yaml"
        return f"training.global_batch = {batch}: {ranks} ranks do not divide it; {remedy}"
    if space is not None:
        reason = ungrouped(space, training)
        if reason is not None:
            return f"training.norm_group = {training.norm_group}: {reason}"
        if isinstance(space.sampler, Queue) and space.sampler.length >= count:
            length = space.sampler.length
            return f"space.sampler.length = {length}: must be below the training split; at most {count - 1}"
    if training.norm_group is None and (ranks > 1 or micro_batch) and draws(on_meta(training.encoder.build)):
        return "training.norm_group = null: this encoder drops at random, so its groups must be named to be divided"
    spans = training.norm_group is not None and training.norm_group > batch // ranks
    if spans and draws(on_meta(training.encoder.build)):  # what is dropped would be a function of the rank
        own = batch // ranks
        return f"training.norm_group = {training.norm_group}: this encoder drops at random, a group a rank; take {own}"
    dealt = space is not None and isinstance(space.sampler, Queue)
    return indivisible(batch, ranks, device, training.norm_group, micro_batch, dealt)


def ungrouped(space: LatentSpace, training: Training) -> str | None:
    """Why ``norm_group`` does not fit the whole network; None if it does."""
    statistics = training.encoder.batch_statistics() or space.batch_statistics()
    if training.norm_group is None:
        whole = f"must be global_batch ({training.global_batch}), or a divisor of it"
        return f"{whole}: projection or predictor has batch normalisation" if space.batch_statistics() else None
    if not statistics and not draws(on_meta(training.encoder.build)):
        return "must be null: this encoder has no batch statistics"
    if statistics and isinstance(space.sampler, Queue) and 2 * training.norm_group > training.global_batch:
        most = training.global_batch // 2
        return f"must be at most {most} with a queue, whose keys are dealt over groups: a batch's statistics tell whose"
    return None
