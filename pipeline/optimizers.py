"""Optimizers and the learning rate as a function of the step (so that it survives any restart)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import nn

from pipeline.spec import Spec

LearningRate = Annotated[float, Field(gt=0)]
WeightDecay = Annotated[float, Field(ge=0)]


class AdamW(Spec):
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019)."""

    kind: Literal["adamw"]
    learning_rate: LearningRate
    """At the peak of the schedule."""
    weight_decay: WeightDecay
    """Not applied to biases and normalisation."""

    def build(self, module: nn.Module) -> torch.optim.Optimizer:
        """The optimizer of a module's trainable parameters."""
        return torch.optim.AdamW(_groups(module, self.weight_decay), lr=self.learning_rate)


class SGD(Spec):
    """Stochastic gradient descent with momentum."""

    kind: Literal["sgd"]
    learning_rate: LearningRate
    """At the peak of the schedule."""
    momentum: float = Field(ge=0, lt=1)
    """Share of the last update that is kept."""
    weight_decay: WeightDecay
    """Not applied to biases and normalisation."""

    def build(self, module: nn.Module) -> torch.optim.Optimizer:
        """The optimizer of a module's trainable parameters."""
        return torch.optim.SGD(_groups(module, self.weight_decay), lr=self.learning_rate, momentum=self.momentum)


class LARS(Spec):
    """Layer-wise adaptive rates for large batches (You, Gitman & Ginsburg 2017), timm's implementation."""

    kind: Literal["lars"]
    learning_rate: LearningRate
    """At the peak of the schedule; 0.3 x global_batch / 256 in SimCLR."""
    momentum: float = Field(ge=0, lt=1)
    """Share of the last update that is kept."""
    weight_decay: WeightDecay
    """Not applied to biases and normalisation, which are not adapted either."""
    trust: float = Field(gt=0)
    """Trust coefficient; 0.001 in the paper."""

    def build(self, module: nn.Module) -> torch.optim.Optimizer:
        """The optimizer of a module's trainable parameters."""
        from timm.optim import Lars

        optimizer: torch.optim.Optimizer = Lars(
            _groups(module, self.weight_decay), lr=self.learning_rate, momentum=self.momentum, trust_coeff=self.trust
        )
        return optimizer


Optimizer = Annotated[AdamW | SGD | LARS, Field(discriminator="kind")]


class Cosine(Spec):
    """Linear warm-up, then half a cosine to zero (Loshchilov & Hutter 2017)."""

    kind: Literal["cosine"]
    warmup_epochs: float = Field(ge=0)
    """Epochs of linear growth from zero to the peak."""

    def factor(self, step: int, steps: int, steps_per_epoch: int) -> float:
        """Share of the peak learning rate at ``step`` of ``steps``."""
        return cosine(step, steps, round(self.warmup_epochs * steps_per_epoch))


class Constant(Spec):
    """The same learning rate at every step."""

    kind: Literal["constant"]

    def factor(self, step: int, steps: int, steps_per_epoch: int) -> float:
        """Share of the peak learning rate at ``step`` of ``steps``: 1."""
        return 1.0


Schedule = Annotated[Cosine | Constant, Field(discriminator="kind")]


def cosine(step: int, steps: int, warmup: int) -> float:
    """Share of the peak at ``step`` (from 0) of ``steps``: (step + 1) / warmup while warming up, then half a cosine."""
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1.0 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


def _groups(module: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Two groups: matrices and kernels decay; vectors (biases, normalisation) do not."""

    def trainable(vectors: bool) -> Iterator[nn.Parameter]:
        named: Iterable[nn.Parameter] = module.parameters()
        return (each for each in named if each.requires_grad and (each.ndim < 2) == vectors)

    groups = [
        {"params": list(trainable(vectors=False)), "weight_decay": weight_decay},
        {"params": list(trainable(vectors=True)), "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]
