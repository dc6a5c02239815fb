"""The one training loop, read from top to bottom, and the section of a spec that sets it.

B samples in the global batch, n of them on this rank. Views of one size are one pass of the encoder; those of the
first pass, two a sample in pair order, are the candidates, and the views of all passes are anchors. A step is: keys,
loss and gradient (``step``), the sum over ranks, the optimizer, then what follows the weights: running statistics, the
momentum copy, the queue.
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
from pipeline.alarm import PICTURES, VIEWS_EPOCH, effective_rank
from pipeline.batches import Batches, settled
from pipeline.checkpoint import Checkpoints
from pipeline.divergence import Diverged, check_gradient
from pipeline.encoders import Encoder
from pipeline.encoders.structure import draws, on_meta
from pipeline.groups import Division, Statistics, indivisible
from pipeline.machine import Machine, settle
from pipeline.momentum import follow, target_of
from pipeline.network import Network, build_network, freeze_below, frozen_to_eval, layers, take_weights
from pipeline.optimizers import Cosine, Optimizer, Schedule
from pipeline.queue import empty, enqueued
from pipeline.reduction import pair_similarities
from pipeline.samplers import Queue
from pipeline.shards import Shards
from pipeline.space import LatentSpace
from pipeline.spec import Refusal, Rule, Spec, nearest
from pipeline.state import Row, State
from pipeline.step import Measured, Stepper
from pipeline.targets import Momentum

if TYPE_CHECKING:
    from accelerate import Accelerator


COMPARED = 100
"""Steps between two comparisons of the ranks' queues."""


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
    network = build_network(training.encoder, space.projection, mean, std, training.seed, space.predictor)
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
    ranks = collectives.world()
    reason = unfit(training, batches.count, ranks, accelerator.device.type, machine.micro_batch, space)
    if reason is not None:
        raise Refusal(reason)

    space = settled(space, shards.card)
    network = start_network(space, training, shards.card.mean, shards.card.std)
    own = training.global_batch // ranks
    if training.norm_group is not None and training.norm_group > own:  # a group of all ranks
        network = torch.nn.SyncBatchNorm.convert_sync_batchnorm(network)  # type: ignore[no-untyped-call]
    network = network.to(accelerator.device)
    state = start_state(space, training, network)
    peaks = [group["lr"] for group in state.optimizer.param_groups]
    before = None if kept is None else collectives.from_first(kept.newest)
    if before is not None:
        state.restore(load(before))
    division = Division.of(own, collectives.rank(), training.norm_group, machine.micro_batch)
    stepper = Stepper(space, training.seed, division, *in_precision(accelerator, state))

    candidates = space.sampler.candidates(training.global_batch, space.crossed)
    start = space.objective.starts_at(candidates)
    to_training_mode(state)
    statistics = Statistics(network)
    for batch in batches.after(len(state.curve)):
        rate = training.schedule.factor(batch.step, batches.steps, batches.per_epoch)
        for group, peak in zip(state.optimizer.param_groups, peaks, strict=True):
            group["lr"] = peak * rate
        rank = state.curve[-1].effective_rank if batch.step % batches.per_epoch else looked_at(stepper, state, batches)
        try:
            state.optimizer.zero_grad(set_to_none=True)
            found = stepper.differentiate(state, batch, statistics)
            collectives.add_gradients(network.parameters())
            check_gradient(network, batch)
        except Diverged as diverged:
            diverged.state = state
            raise
        state.optimizer.step()
        statistics.apply()
        if isinstance(space.target, Momentum) and state.target is not None:
            follow(state.target, network, space.target.at(batch.step, batches.steps))
        if isinstance(space.sampler, Queue):
            enqueue(state, space.sampler.length, found, batch.step)

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
            effective_rank=rank,
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


def start_state(space: LatentSpace, training: Training, network: Network) -> State:
    """All that will change, before the first step."""
    target = target_of(network, without=("predictor", "scalars")) if isinstance(space.target, Momentum) else None
    return State(network, training.optimizer.build(network), target)


def in_precision(accelerator: Accelerator, state: State) -> tuple[Any, Any]:
    """Network and target as they are called, in the run's precision; gradients are summed over ranks by the loop."""
    model = accelerator.prepare_model(state.network, evaluation_mode=True)
    return model, None if state.target is None else accelerator.prepare_model(state.target, evaluation_mode=True)


def to_training_mode(state: State) -> None:
    """Batch statistics and dropout as in training; parts that are not trained stay as they were given."""
    state.network.train()
    frozen_to_eval(state.network)
    if state.target is not None:
        modes = {name: part.training for name, part in state.network.named_modules()}
        for name, part in state.target.named_modules():
            part.training = modes[name]


@torch.no_grad()
def looked_at(stepper: Stepper, state: State, batches: Batches) -> float:
    """The effective rank of the fixed pictures, without a trace in the state."""
    state.network.eval()
    rank = effective_rank(stepper.model(batches.fixed(PICTURES, VIEWS_EPOCH))[1])
    to_training_mode(state)
    return rank


def enqueue(state: State, length: int, found: Measured, step: int) -> None:
    """Put the key of each sample's second view into the queue, in global order, after the loss that it was made for.

    Raises:
        Refusal: the queue differs between ranks.
    """
    z = found.keys[1::2]
    columns = {name: column[1::2] for name, column in found.columns.items() if name in ("sample", "group")}
    queue = state.queue or empty(length, z.shape[1], z.dtype, z.device)
    state.queue = enqueued(queue, z, columns, step)
    total = state.queue.z.double().sum() + state.queue.columns["sample"].sum()
    if step % COMPARED == 0 and not collectives.alike(total):
        raise Refusal(f"step {step}: the queue differs between ranks; their processors do not compute alike")


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
