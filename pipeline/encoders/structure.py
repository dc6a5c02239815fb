"""Questions about a network's structure, and the small-image stem of residual networks."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


def has_batch_norm(module: nn.Module) -> bool:
    """Whether a module holds batch normalisation that tracks statistics over samples."""
    return any(isinstance(child, nn.modules.batchnorm._BatchNorm) for child in module.modules())


def draws(module: nn.Module) -> bool:
    """Whether a module drops at random while it trains (dropout, stochastic depth)."""
    kinds = ("Dropout", "DropPath", "StochasticDepth")
    dropping = (child for child in module.modules() if any(kind in type(child).__name__ for kind in kinds))
    return any(float(getattr(child, name, 0.0) or 0.0) > 0 for child in dropping for name in ("p", "drop_prob"))


def small_stem(module: nn.Module, name: str) -> nn.Module:
    """Replace a residual network's stem by one for images of 32 to 96 pixels: 3x3, stride 1, no max-pooling.

    Source: Chen et al. 2020, appendix B.9 (CIFAR-10).

    Raises:
        ValueError: the architecture has no such stem.
    """
    first = getattr(module, "conv1", None)
    if not isinstance(first, nn.Conv2d) or not isinstance(getattr(module, "maxpool", None), nn.Module):
        raise ValueError(f"{name} has no 7x7 stem with max-pooling to replace; set small_stem to false")
    module.conv1 = nn.Conv2d(first.in_channels, first.out_channels, 3, stride=1, padding=1, bias=first.bias is not None)
    nn.init.kaiming_normal_(module.conv1.weight, mode="fan_out", nonlinearity="relu")
    module.maxpool = nn.Identity()
    return module


def on_meta(build: Callable[[int], nn.Module], channels: int = 3) -> nn.Module:
    """Build a module without allocating or drawing its weights, to ask about its structure."""
    with torch.device("meta"):
        return build(channels)
