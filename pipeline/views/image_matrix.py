"""Colours by one matrix a picture: brightness, contrast, saturation, hue and gray, in any order.

Without cuts to [0, 1] in between, each is linear in the colours but for the contrast's mean, which is linear in the
mean colour. So they compose to one matrix of the colours and one of their mean, and read nothing else of a picture.

N images (N,3,H,W); mixtures (N,3,6): a colour becomes the first three columns times itself plus the others times the
mean colour.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pipeline.views.image_colour import LUMA
from pipeline.views.image_plane import Parameters

CONTRAST = 1  # of the order of a jitter: brightness, contrast, saturation, hue


def unmixed(count: int) -> Tensor:
    """The mixtures (N,3,6) that change nothing."""
    return torch.eye(3, 6).repeat(count, 1, 1)


def jittered(mixture: Tensor, parameters: Parameters) -> Tensor:
    """``mixture`` (N,3,6) followed by a jitter's four operations, each row in its own order: (N,3,6)."""
    gray_of = torch.tensor(LUMA).expand(3, 3)  # every channel the gray
    factor = torch.stack([parameters[name] for name in ("brightness", "contrast", "saturation")], 1)[:, :, None, None]
    steps = factor * torch.eye(3)  # (N,3,3,3)
    steps[:, 2] += (1.0 - factor[:, 2]) * gray_of
    steps = torch.cat([steps, hue_matrix(parameters["hue"])[:, None]], dim=1)  # (N,4,3,3)
    order = parameters["order"]  # (N,4)
    steps = steps.gather(1, order[:, :, None, None].expand(-1, -1, 3, 3))
    rest = (1.0 - parameters["contrast"])[:, None] * (order == CONTRAST)  # (N,4)
    for step in range(4):
        # of the mean, both parts are a function: what it is by now is their sum
        shade = gray_of @ (mixture[:, :, :3] + mixture[:, :, 3:])
        mixture = steps[:, step] @ mixture
        mixture[:, :, 3:] += rest[:, step, None, None] * shade
    return mixture


def grayed(mixture: Tensor, gray: Tensor) -> Tensor:
    """``mixture`` (N,3,6) followed by making the rows where ``gray`` (N,) is true gray: (N,3,6)."""
    return torch.where(gray[:, None, None], torch.tensor(LUMA).expand(3, 3) @ mixture, mixture)


def hue_matrix(turn: Tensor) -> Tensor:
    """Colour matrices (N,3,3) that turn colours by ``turn`` (N,) circles about the gray axis, red towards green.

    The linear neighbour of the hue of HSV: at a turn of 0.1 it is off by 4.3/255 in the mean over CIFAR-10, where the
    usual turn in the plane of YIQ is off by 7.5/255, and the hue itself changes pixels by 6.4/255.
    """
    angle = 2.0 * torch.pi * turn[:, None, None]
    plane = torch.eye(3) - 1.0 / 3.0
    quarter = torch.tensor([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]]) / 3.0**0.5
    turned: Tensor = torch.eye(3) + (angle.cos() - 1.0) * plane + angle.sin() * quarter
    return turned  # no turn is exactly no change


def mix(images: Tensor, mixture: Tensor) -> Tensor:
    """Apply ``mixture`` (N,3,6) to ``images`` (N,3,H,W), cut to [0, 1]; exact where nothing is changed."""
    mixture = mixture.to(images)
    pixels = images.flatten(2)  # (N,3,H*W)
    offset = mixture[:, :, 3:] @ pixels.mean(2, keepdim=True)  # (N,3,1)
    return torch.baddbmm(offset, mixture[:, :, :3], pixels).clamp_(0.0, 1.0).view(images.shape)
