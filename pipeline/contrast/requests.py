"""What an objective may ask for: a log-sum-exp, or a total of a function of the logits.

Shapes: A anchors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from pipeline.contrast.relation import Over

Phi = Literal["identity", "softplus", "relu", "squared_relu"]


@dataclass(frozen=True)
class LogSumExp:
    """Ask for log of the sum over ``over`` of exp(scale * similarity / temperature + offset): (A,); -inf over none."""

    over: Over
    scale: float = 1.0


@dataclass(frozen=True, eq=False)
class Total:
    """Ask for the sum over ``over`` of phi(sign * logit + side + bias): (A,).

    ``side`` (A,) and ``bias`` (a number or a scalar tensor) receive gradients.
    """

    phi: Phi
    over: Over
    sign: float = 1.0
    side: Tensor | None = None
    bias: Tensor | float = 0.0


Request = LogSumExp | Total


def softplus(values: Tensor) -> Tensor:
    """log(1 + exp(x)), linear only from 60 on: the usual 20 costs float64 its last seven digits."""
    return functional.softplus(values, threshold=60)


def phi(values: Tensor, kind: Phi) -> Tensor:
    """The function that a total sums."""
    if kind == "softplus":
        return softplus(values)
    if kind == "identity":
        return values.clone()
    positive = values.clamp(min=0)
    return positive.square_() if kind == "squared_relu" else positive


def slope(values: Tensor, kind: Phi) -> Tensor:
    """The derivative of ``phi``; 0 at the kink."""
    if kind == "softplus":
        return values.sigmoid()
    if kind == "identity":
        return torch.ones_like(values)
    return values.clamp(min=0).mul_(2) if kind == "squared_relu" else (values > 0).to(values.dtype)
