"""The target network that follows another: target <- m · target + (1 - m) · online, once a step, after the optimizer.

He et al. 2020, arXiv:1911.05722, equation 2; Grill et al. 2020, arXiv:2006.07733, equation 1. Its weights are float32
or better whatever the online network computes in: at m = 0.999 a half type would lose the update in its rounding.
Running statistics follow as weights do, counters are copied.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn


def target_of(network: nn.Module, without: tuple[str, ...] = ()) -> nn.Module:
    """A copy of the network as it is, without a gradient and without the parts named; half types become float32."""
    target = copy.deepcopy(network)
    for name in without:
        setattr(target, name, None)
    for part in target.modules():
        for held in (part._parameters, part._buffers):
            for name, value in held.items():
                if value is not None and value.is_floating_point():
                    wide = value.detach().to(torch.promote_types(value.dtype, torch.float32))
                    held[name] = nn.Parameter(wide, requires_grad=False) if name in part._parameters else wide  # type: ignore[assignment]
    return target


@torch.no_grad()
def follow(target: nn.Module, online: nn.Module, m: float) -> None:
    """One update, in place: every weight and running statistic of ``target`` moves a share 1 - m towards ``online``'s.

    Raises:
        ValueError: m outside [0, 1].
    """
    if not 0 <= m <= 1:
        raise ValueError(f"m = {m}: must lie in [0, 1]")
    theirs = online.state_dict()
    for name, value in target.state_dict().items():
        _follow(value, theirs[name].detach(), m)


def _follow(value: Tensor, online: Tensor, m: float) -> None:
    if value.is_floating_point():
        value.lerp_(online.to(value.dtype), 1 - m)
    else:
        value.copy_(online)
