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


def jitter_mixture(parameters: Parameters) -> Tensor:
    """The mixtures (N,3,6) of a jitter's four operations, each row in its own order.

    Brightness b and contrast c scale all colours, so only saturation S and hue H have an order in the linear part. To
    it, contrast adds (1 - c) times the gray of the mean so far, in all channels; of a gray, H changes nothing, and S
    scales it (or the gray of any colour, which is the same) by a factor near 1. So S matters otherwise only where it
    comes before an H that comes before the contrast.
    """
    luma, unit = torch.tensor(LUMA), torch.eye(3)
    light = (parameters["brightness"] * parameters["contrast"])[:, None, None]
    extra = ((1.0 - parameters["contrast"]) * parameters["brightness"])[:, None]
    saturation, hue = parameters["saturation"][:, None, None], hue_matrix(parameters["hue"])
    saturate = saturation * unit + (1.0 - saturation) * luma
    scale = (saturation + (1.0 - saturation) * luma.sum())[:, 0]
    place = parameters["order"].argsort(1)  # (N,4): of brightness, contrast, saturation, hue
    first = (place[:, 2] < place[:, 3])[:, None]  # saturation, then hue
    linear = light * torch.where(first[:, :, None], hue @ saturate, saturate @ hue)
    gray_of = torch.where((place[:, 3] < place[:, 1])[:, None], luma @ hue, luma)  # (N,3), at the contrast
    between = first & (place[:, 3] < place[:, 1])[:, None]
    gray_of = torch.where(between, (gray_of[:, None] @ saturate)[:, 0], scale * gray_of)
    return torch.cat([linear, (extra * gray_of)[:, None].expand(-1, 3, -1)], dim=2)


def followed(mixture: Tensor, other: Tensor) -> Tensor:
    """One mixture (N,3,6) and then another: (N,3,6)."""
    mixed = other[:, :, :3] @ mixture
    mixed[:, :, 3:] += other[:, :, 3:] @ (mixture[:, :, :3] + mixture[:, :, 3:])  # of what the mean is by now
    return mixed


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
