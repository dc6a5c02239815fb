"""The one training loop, read from top to bottom, and the section of a spec that sets it.

B samples in the global batch, n of them on this rank. Views of one size are one pass of the encoder; those of the
first pass, two a sample in pair order, are the candidates, and the views of all passes are anchors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import torch
from pydantic import Field
from safetensors.torch import load
from torch import Tensor

from pipeline import collectives
from pipeline.batches import Batch, Batches
from pipeline.checkpoint import Checkpoints
from pipeline.divergence import Diverged, check_gradient, check_loss, check_vectors
from pipeline.encoders import Encoder
from pipeline.machine import Machine, settle
from pipeline.network import Network, build_network, freeze_below, frozen_to_eval, layers, take_weights
from pipeline.optimizers import Cosine, Optimizer, Schedule
from pipeline.reduction import pair_similarities, reduced
from pipeline.shards import Shards
from pipeline.space import LatentSpace
from pipeline.spec import Refusal, Rule, Spec, nearest
from pipeline.state import Row, State

if TYPE_CHECKING:
    from accelerate import Accelerator


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
    """Samples that share batch statistics; null exactly where the encoder has none."""
    epochs: int = Field(ge=1)
    """Times through the training split; what does not fill a batch is left out of an epoch."""
    optimizer: Optimizer
    schedule: Schedule
    precision: Literal["float32", "bf16"]
    """Of the network's products; the loss is float32 in either."""
    seed: int = Field(ge=0, lt=2**63)
    """Of weights, order and views."""

    def rules(self) -> Iterator[Rule]:
        has_statistics = self.encoder.batch_statistics()
        if has_statistics and self.norm_group != self.global_batch:
            yield "norm_group", f"must be global_batch ({self.global_batch}): this encoder has batch normalisation"
        if not has_statistics and self.norm_group is not None:
            yield "norm_group", "must be null: this encoder has no batch statistics"
        if isinstance(self.schedule, Cosine) and self.schedule.warmup_epochs >= self.epochs:
            yield "schedule.warmup_epochs", f"must be below epochs ({self.epochs}), or the peak is never reached"
        if isinstance(self.start, Weights) and self.start.frozen_below is not None:
            from pipeline.encoders.structure import on_meta

            known = layers(on_meta(self.encoder.build))
            if self.start.frozen_below not in known:
                yield "start.frozen_below", f"no such layer; {nearest(self.start.frozen_below, known)}"


@dataclass(frozen=True)
class Trained:
    """The trained network, the curve, and the first batch's first pass (2 x pictured, C, H, W) as it was seen."""

    network: Network
    curve: tuple[Row, ...]
    views: Tensor
    candidates: int


def start_network(space: LatentSpace, training: Training, mean: Sequence[float], std: Sequence[float]) -> Network:
    """The network before its first step: a function of the specs and the seed (and the given weights).

    Raises:
        Refusal: given weights that do not fit.
    """
    network = build_network(training.encoder, space.projection, mean, std, training.seed)
    learned = space.temperature.learned() if space.temperature is not None else {}
    learned |= {name: torch.tensor(float(getattr(space.objective, name))) for name in space.objective.learns}
    network.scalars.update({name: torch.nn.Parameter(value) for name, value in learned.items()})
    if isinstance(training.start, Weights):
        take_weights(network.encoder, Path(training.start.file))
        if training.start.frozen_below is not None:
            freeze_below(network.encoder, training.start.frozen_below)
    return network


def train(
    space: LatentSpace,
    training: Training,
    shards: Shards,
    machine: Machine,
    told: Callable[[Row], None],
    kept: Checkpoints | None = None,
) -> Trained:
    """Train a network on the training split; ``told`` hears of every step, ``kept`` holds what a kill would lose.

    Raises:
        Diverged: a loss or a gradient is no longer a number; the step is not made.
        Refusal: a batch larger than the split, ranks that do not divide it, or weights that do not fit.
    """
    accelerator = start_ranks(machine, training.precision)
    settle(machine)
    batches = Batches(space, training.global_batch, training.epochs, training.seed, shards, machine)
    reason = unfit(training, batches.count, collectives.world(), accelerator.device.type)
    if reason is not None:
        raise Refusal(reason)

    network = start_network(space, training, shards.card.mean, shards.card.std)
    if collectives.world() > 1:  # batch statistics are those of the global batch
        network = torch.nn.SyncBatchNorm.convert_sync_batchnorm(network)  # type: ignore[no-untyped-call]
    network = network.to(accelerator.device)
    state = State(network, training.optimizer.build(network))
    peaks = [group["lr"] for group in state.optimizer.param_groups]
    before = None if kept is None else collectives.from_first(kept.newest)
    if before is not None:
        state.restore(load(before))
    model = accelerator.prepare(network)

    candidates = 2 * training.global_batch - 1
    start = space.objective.starts_at(candidates)
    model.train()
    frozen_to_eval(network)
    for batch in batches.after(len(state.curve)):
        rate = training.schedule.factor(batch.step, batches.steps, batches.per_epoch)
        for group, peak in zip(state.optimizer.param_groups, peaks, strict=True):
            group["lr"] = peak * rate
        try:
            found = measure(space, model, dict(network.scalars), batch)
            state.optimizer.zero_grad(set_to_none=True)
            accelerator.backward(found.loss * collectives.world())  # DDP divides by the ranks
            check_gradient(network, batch)
        except Diverged as diverged:
            diverged.state = state
            raise
        state.optimizer.step()

        positive, negative = pair_similarities(found.gathered)
        row = Row(
            step=batch.step,
            epoch=batch.epoch,
            loss=found.value,
            starts_at=math.nan if start is None else start,
            learning_rate=rate * peaks[0],
            temperature=found.temperature,
            positive_similarity=positive,
            negative_similarity=negative,
        )
        state.curve.append(row)
        told(row)
        if kept is not None and collectives.rank() == 0 and kept.due() and state.finite():
            kept.save(len(state.curve), state.tensors())
    return Trained(network, tuple(state.curve), batches.pictured(), candidates)


def start_ranks(machine: Machine, precision: str) -> Accelerator:
    """Meet the other ranks, if there are any: they wait for one another no longer than the machine says."""
    from accelerate import Accelerator, InitProcessGroupKwargs

    wait = InitProcessGroupKwargs(timeout=timedelta(seconds=machine.collective_timeout))
    accelerator = Accelerator(
        cpu=machine.chosen_device() == "cpu",
        mixed_precision="bf16" if precision == "bf16" else "no",
        kwargs_handlers=[wait],
    )
    launched = collectives.launched_world()
    if collectives.world() != launched:  # they would train apart, and each write the result
        raise Refusal(f"{collectives.world()} of {launched} ranks have met; start them with torchrun or dvc repro")
    return accelerator


@dataclass(frozen=True)
class Measured:
    """What the loss is of one batch."""

    loss: Tensor
    """The differentiable part of this rank."""
    value: float
    """Over all ranks."""
    gathered: Tensor
    """(2B, D) the first pass of all ranks, without a gradient."""
    temperature: float


def measure(space: LatentSpace, model: Callable[[Tensor], Any], scalars: dict[str, Tensor], batch: Batch) -> Measured:
    """The loss of one batch, every anchor against the candidates of all ranks.

    Raises:
        Diverged: z or the loss is not finite; the samples are named.
    """
    z = [wide(model(views)[1]) for views in batch.passes]
    gathered = collectives.gather(z[0])
    check_vectors(gathered, z, batch)
    temperature = None if space.temperature is None else space.temperature.at(batch.share, scalars)
    own, theirs = collectives.own(gathered), None
    if collectives.world() > 1 or len(z) > 1:
        theirs = (gathered, {name: collectives.gather(column) for name, column in batch.columns[0].items()})
    contrast = space.sampler.contrast(
        torch.cat([own, *z[1:]]) if len(z) > 1 else own,
        {name: torch.cat([each[name] for each in batch.columns]) for name in batch.columns[0]},
        space.metric,
        temperature,
        space.normalization,
        *(theirs or (None, None)),
    )
    terms = space.objective.terms(contrast, scalars)
    loss, value = reduced(terms)
    check_loss(value, terms, batch)
    return Measured(loss, value, gathered.detach(), _plain(temperature))


def wide(z: Tensor) -> Tensor:
    """Float32 or better: the loss is never computed in half a type."""
    return z.to(torch.promote_types(z.dtype, torch.float32))


def unfit(training: Training, count: int, ranks: int = 1, device: str = "cpu") -> str | None:
    """Why a split cannot fill the batch, or the ranks cannot divide it or share its statistics; None if they can."""
    batch = training.global_batch
    if batch > count:
        return f"training.global_batch = {batch}: larger than the training split; at most {count}"
    if batch % ranks:
        fitting = max(ranks, batch // ranks * ranks)
        remedy = f"take {fitting}, or another number of processes in machine.yaml"
        return f"training.global_batch = {batch}: {ranks} ranks do not divide it; {remedy}"
    if training.norm_group is not None and ranks > 1 and device != "cuda":
        remedy = "set processes = 1 in machine.yaml"
        return f"training.norm_group = {training.norm_group}: {ranks} ranks on a CPU cannot share statistics; {remedy}"
    return None


def _plain(temperature: Tensor | float | None) -> float:
    if temperature is None:
        return math.nan
    return float(temperature.detach() if isinstance(temperature, Tensor) else temperature)
