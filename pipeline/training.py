"""The one training loop, read from top to bottom, and the section of a spec that sets it.

B samples in the global batch, n of them on this rank. Views of one size are one pass of the encoder; those of the
first pass, two a sample in pair order, are the candidates, and the views of all passes are anchors.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from pipeline import collectives
from pipeline.contrast import Term
from pipeline.encoders import Encoder
from pipeline.keys import permutation
from pipeline.loading import ViewLoader
from pipeline.machine import Machine, settle
from pipeline.network import Network, build_network, freeze_below, frozen_to_eval, layers, take_weights
from pipeline.optimizers import Cosine, Optimizer, Schedule
from pipeline.shards import DataCard, Shards
from pipeline.space import LatentSpace
from pipeline.spec import Refusal, Rule, Spec, nearest
from pipeline.views.roles import Partners, with_partners

PICTURED = 8
"""Samples of the first batch whose views are kept for the report."""
LOWER = "lower training.optimizer.learning_rate or raise space.temperature"


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
class Row:
    """What one step measured; the loss is the global batch's."""

    step: int
    epoch: int
    loss: float
    log_k: float
    learning_rate: float
    temperature: float
    positive_similarity: float
    negative_similarity: float


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


def usable(space: LatentSpace, card: DataCard) -> int:
    """Pictures of the training split that an epoch goes through: all, or those that have a partner."""
    if isinstance(space.views, Partners):
        return sum(count for count in card.columns[space.views.column].counts["train"] if count > 1)
    return card.splits["train"]


def view_loader(space: LatentSpace, seed: int, shards: Shards, machine: Machine, split: str = "train") -> ViewLoader:
    """What makes the views of a split, as the space declares them."""
    codes = shards.labels(split)[space.views.column] if isinstance(space.views, Partners) else None
    return ViewLoader(
        shards,
        split,
        space.roles(),
        seed,
        machine.chosen_device(),
        codes,
        machine.chosen_workers(),
        machine.resident_gib << 30,
    )


def batches_of(rows: np.ndarray, training: Training) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (epoch, samples (n,)) of every step: this rank's part of the batch, a function of the seed alone."""
    batch = training.global_batch
    for epoch in range(training.epochs):
        order = rows[permutation(training.seed, epoch, len(rows))]
        for start in range(0, len(rows) // batch * batch, batch):
            yield epoch, collectives.own(torch.from_numpy(order[start : start + batch])).numpy()


def train(
    space: LatentSpace, training: Training, shards: Shards, machine: Machine, told: Callable[[Row], None]
) -> Trained:
    """Train a network on the training split; ``told`` hears of every step.

    Raises:
        Refusal: a batch larger than the split, ranks that do not divide it, weights that do not fit, or a loss that is
            no longer a number.
    """
    from accelerate import Accelerator

    accelerator = Accelerator(
        cpu=machine.chosen_device() == "cpu", mixed_precision="bf16" if training.precision == "bf16" else "no"
    )
    settle(machine)
    count = usable(space, shards.card)
    reason = unfit(training, count, collectives.world(), accelerator.device.type)
    if reason is not None:
        raise Refusal(reason)

    batch = training.global_batch
    per_epoch = count // batch
    steps = per_epoch * training.epochs
    labels = {name: shards.labels("train")[name] for name in space.reads()}
    loader = view_loader(space, training.seed, shards, machine)
    numbers = loader.view_numbers()
    rows = np.arange(count) if loader.codes is None else with_partners(loader.codes)
    network = start_network(space, training, shards.card.mean, shards.card.std)
    if collectives.world() > 1:  # batch statistics are those of the global batch
        network = torch.nn.SyncBatchNorm.convert_sync_batchnorm(network)  # type: ignore[no-untyped-call]
    optimizer = training.optimizer.build(network)
    peaks = [group["lr"] for group in optimizer.param_groups]
    model, optimizer = accelerator.prepare(network.to(accelerator.device), optimizer)

    curve: list[Row] = []
    pictured = torch.empty(0)
    candidates = 0
    model.train()
    frozen_to_eval(network)
    order = batches_of(rows, training)
    for step, ((epoch, samples), passes) in enumerate(paired(order, loader.batches)):
        if step == 0:
            pictured = passes[0][: 2 * PICTURED].cpu().clone()

        rate = training.schedule.factor(step, steps, per_epoch)
        for group, peak in zip(optimizer.param_groups, peaks, strict=True):
            group["lr"] = peak * rate
        z = [model(views)[1].float() for views in passes]
        columns = [row_columns(samples, views, labels, accelerator.device) for views in numbers]
        if isinstance(space.views, Partners):
            columns[0]["group"] = columns[0][space.views.column]
        gathered = collectives.gather(z[0])
        if not all(bool(each.isfinite().all()) for each in (gathered, *z[1:])):
            raise Refusal(f"step {step}: z is no longer finite; {LOWER}")
        scalars = dict(network.scalars)
        temperature = None if space.temperature is None else space.temperature.at(step / steps, scalars)
        own, theirs = collectives.own(gathered), None
        if collectives.world() > 1 or len(passes) > 1:
            everything = {name: collectives.gather(column) for name, column in columns[0].items()}
            theirs = (gathered, everything)
        contrast = space.sampler.contrast(
            torch.cat([own, *z[1:]]) if len(passes) > 1 else own,
            {name: torch.cat([each[name] for each in columns]) for name in columns[0]},
            space.metric,
            temperature,
            space.normalization,
            *(theirs or (None, None)),
        )
        loss, value = reduced(space.objective.terms(contrast, scalars))
        if not math.isfinite(value):
            raise Refusal(f"step {step}: the loss is {value}; {LOWER}")
        optimizer.zero_grad(set_to_none=True)
        accelerator.backward(loss * collectives.world())  # DDP divides by the ranks; the loss is already a global mean
        optimizer.step()

        candidates = len(gathered) - 1
        positive, negative = pair_similarities(gathered.detach())
        row = Row(
            step=step,
            epoch=epoch,
            loss=value,
            log_k=math.log(candidates),
            learning_rate=rate * peaks[0],
            temperature=_plain(temperature),
            positive_similarity=positive,
            negative_similarity=negative,
        )
        curve.append(row)
        told(row)
    return Trained(network, tuple(curve), pictured, candidates)


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


def paired(
    order: Iterable[tuple[int, np.ndarray]],
    made: Callable[[Iterable[tuple[int, np.ndarray]]], Iterator[tuple[Tensor, ...]]],
) -> Iterator[tuple[tuple[int, np.ndarray], tuple[Tensor, ...]]]:
    """Yield each (epoch, samples) with its views, which may be made ahead."""
    asked, kept = itertools.tee(order)
    return zip(kept, made(asked), strict=True)


def row_columns(
    samples: np.ndarray, views: Sequence[int], labels: Mapping[str, np.ndarray], device: torch.device | str
) -> dict[str, Tensor]:
    """The integer columns of a pass, each (n·V,): sample, view, and the labels (N,) of a whole split."""
    return {
        **{name: torch.from_numpy(np.repeat(codes[samples], len(views))).to(device) for name, codes in labels.items()},
        "sample": torch.from_numpy(np.repeat(samples, len(views))).to(device),
        "view": torch.tensor(views, device=device).repeat(len(samples)),
    }


def _plain(temperature: Tensor | float | None) -> float:
    if temperature is None:
        return math.nan
    return float(temperature.detach() if isinstance(temperature, Tensor) else temperature)


def reduced(terms: tuple[Term, ...]) -> tuple[Tensor, float]:
    """The global loss of this rank's terms: (differentiable part of this rank, value over all ranks).

    The mean is over the anchors that count on any rank; if none does, loss and gradient are 0.
    """
    loss: Tensor | float = 0.0
    value = 0.0
    for term in terms:
        counted = collectives.total(term.counted.sum())
        kept = torch.where(term.counted, term.values, torch.zeros_like(term.values))
        divisor = counted.clamp(min=1)
        if term.outer == "identity":
            part = kept.sum() / divisor
            whole = collectives.total(part)
        else:  # log of the mean of exp(values); its gradient over ranks is that of the sum over this rank's anchors
            top = collectives.top(torch.where(term.counted, term.values, -torch.inf).max())
            top = torch.where(counted > 0, top, torch.zeros_like(top))
            # masked before and after exp, so that what does not count has no gradient, not even 0 times infinity
            over = torch.where(term.counted, term.values - top, -torch.inf)
            part = torch.where(term.counted, over.exp(), torch.zeros_like(over)).sum() / divisor
            mean = collectives.total(part)
            whole = torch.where(counted > 0, mean.log() + top, torch.zeros_like(mean))
            part = part / mean.clamp(min=torch.finfo(mean.dtype).tiny)
        loss = loss + term.weight * part
        value += term.weight * float(whole)
    return torch.as_tensor(loss), value


def pair_similarities(z: Tensor) -> tuple[float, float]:
    """Mean cosine of the positives and of the negatives of a batch in pair order, z (2B, D), without a matrix."""
    unit = torch.nn.functional.normalize(z.double(), dim=1)
    positive = float((unit[0::2] * unit[1::2]).sum(1).mean())
    rows = len(unit)
    everything = float(unit.sum(0).square().sum()) - float(unit.square().sum())  # ordered pairs without the diagonal
    negatives = rows * (rows - 2)
    return positive, (everything - rows * positive) / negatives if negatives else 0.0
