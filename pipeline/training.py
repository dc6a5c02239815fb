"""The one training loop, read from top to bottom.

B samples in the global batch, n of them on this rank. Views of one size are one pass of the encoder; those of the
first pass, two a sample in pair order, are the candidates, and the views of all passes are anchors. A step is: keys,
loss and gradient (``step``), the sum over ranks, the optimizer, then what follows the weights: running statistics, the
momentum copy, the queue.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load
from torch import Tensor

from pipeline import collectives
from pipeline.alarm import APART, PICTURES, VIEWS_EPOCH, look
from pipeline.batches import Batches, settled
from pipeline.checkpoint import Checkpoints
from pipeline.divergence import Diverged, check_gradient
from pipeline.groups import Division, Statistics, drawn
from pipeline.machine import Machine, settle
from pipeline.momentum import follow, target_of
from pipeline.network import Network, build_network, freeze_below, frozen_to_eval, take_weights
from pipeline.queue import checksum, empty, enqueued, wear
from pipeline.reduction import pair_similarities
from pipeline.samplers import Queue
from pipeline.shards import Shards
from pipeline.space import LatentSpace
from pipeline.spec import Refusal
from pipeline.state import HEALTH, Row, State
from pipeline.step import Measured, Stepper
from pipeline.targets import Momentum
from pipeline.training_section import Training, Weights, unfit

if TYPE_CHECKING:
    from accelerate import Accelerator


COMPARED = 100
"""Steps between two comparisons of the ranks' queues."""
AT_ONCE = 128
"""Views of the fixed pictures that go through the network together."""
LOOKING = -2
"""The pass whose draws a look at old keys makes; a step's own are -1 (keys) and 0 on."""


@dataclass(frozen=True)
class Trained:
    """The trained network, the curve, and the first batch's first pass (2 x pictured, C, H, W) as it was seen."""

    network: Network
    curve: tuple[Row, ...]
    views: Tensor
    candidates: int
    seen: dict[str, Tensor]
    """The same samples as they are stored, and each view of them by its role: name to (pictured, C, h, w)."""


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
    start = space.starts_at(training.global_batch)
    to_training_mode(state)
    statistics = Statistics(network)
    for batch in batches.after(len(state.curve)):
        rate = training.schedule.factor(batch.step, batches.steps, batches.per_epoch)
        for group, peak in zip(state.optimizer.param_groups, peaks, strict=True):
            group["lr"] = peak * rate
        health = looked_at(stepper, state, batches, batch.step)
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
            **health,
        )
        state.curve.append(row)
        told(row)
        last = batch.step + 1 == batches.steps
        if kept is not None and collectives.rank() == 0 and (last or kept.due()) and state.finite():
            kept.save(len(state.curve), state.tensors())
    return Trained(network, tuple(state.curve), batches.pictured(), candidates, batches.seen())


def start_ranks(machine: Machine, precision: str) -> Accelerator:
    """Meet the other ranks, if there are any: they wait for one another no longer than the machine says."""
    from accelerate import Accelerator, InitProcessGroupKwargs
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state()  # it holds the precision of an earlier training in this process
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
def looked_at(stepper: Stepper, state: State, batches: Batches, step: int) -> dict[str, float]:
    """What the fixed pictures tell of a collapse, and the wear of the queue, at every hundredth step, and as they were
    last at the others; it leaves no trace in the state."""
    if step % APART:
        return {name: getattr(state.curve[-1], name) for name in HEALTH}
    state.network.eval()
    parts = torch.split(batches.fixed(PICTURES, VIEWS_EPOCH), AT_ONCE)
    health = look(torch.cat([stepper.model(part)[1] for part in parts]).float())
    to_training_mode(state)
    age, drift = 0.0, 0.0
    if state.queue is not None and stepper.target is not None and state.target is not None:
        target, statistics = stepper.target, Statistics(state.target)

        def again(epoch: int, samples: NDArray[np.int64]) -> Tensor:
            device = batches.loader.device
            with drawn(stepper.seed, step, epoch, LOOKING, device), statistics.aside((0, 0)):
                return target(batches.loader.views(epoch, samples)[0][1::2])[1]

        age, drift = wear(state.queue, step, batches.per_epoch, again)
    return {**health, "key_age": age, "key_drift": drift}


def enqueue(state: State, length: int, found: Measured, step: int) -> None:
    """Put the key of each sample's second view into the queue, in global order, after the loss that it was made for.

    Raises:
        Refusal: the queue differs between ranks.
    """
    z = found.keys[1::2]
    columns = {name: column[1::2] for name, column in found.columns.items() if name in ("sample", "group")}
    queue = state.queue or empty(length, z.shape[1], z.dtype, z.device)
    state.queue = enqueued(queue, z, columns, step)
    if step % COMPARED == 0 and not collectives.alike(checksum(state.queue)):
        raise Refusal(f"step {step}: the queue differs between ranks; their processors do not compute alike")
