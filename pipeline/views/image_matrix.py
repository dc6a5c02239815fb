"""Colours by one matrix a picture: brightness, contrast, saturation, hue and gray, in any order, as one 3x4 matrix.

Without cuts to [0, 1] in between, each is linear in the colours but for the contrast's mean, which is linear in the
mean colour. So they compose, and one mean of each picture is all that is read of it.

N images (N,3,H,W) in [0, 1] or uint8; matrices (N,3,4), the last column is added; means (N,3).
"""

from __future__ import annotations

import torch
from torch import Tensor

from pipeline.views.image_colour import LUMA
from pipeline.views.image_plane import Parameters, as_float
from pipeline.views.image_resize import large

CONTRAST = 1  # of the order of a jitter: brightness, contrast, saturation, hue


def mean_colour(images: Tensor) -> Tensor:
    """The mean colour of ``images`` in [0, 1]: (N,3) on the CPU."""
    if images.is_floating_point():
        return images.mean((2, 3)).cpu()
    if not large(images):
        return images.float().mean((2, 3)).div_(255.0).cpu()
    return torch.stack([image.float().mean((1, 2)) for image in images]).div_(255.0)


def unmixed(mean: Tensor) -> Tensor:
    """The matrices (N,3,4) that change nothing."""
    return torch.eye(3, 4, dtype=mean.dtype).repeat(len(mean), 1, 1)


def jittered(matrix: Tensor, mean: Tensor, parameters: Parameters) -> Tensor:
    """``matrix`` (N,3,4) followed by a jitter's four operations, each row in its own order: (N,3,4)."""
    gray_of, luma = torch.tensor(LUMA).expand(3, 3), torch.tensor(LUMA, dtype=mean.dtype)
    factor = torch.stack([parameters[name] for name in ("brightness", "contrast", "saturation")], 1)[:, :, None, None]
    steps = factor * torch.eye(3)  # (N,3,3,3)
    steps[:, 2] += (1.0 - factor[:, 2]) * gray_of
    steps = torch.cat([steps, hue_matrix(parameters["hue"])[:, None]], dim=1).to(mean.dtype)  # (N,4,3,3)
    order = parameters["order"]  # (N,4)
    steps = steps.gather(1, order[:, :, None, None].expand(-1, -1, 3, 3))
    rest = ((1.0 - parameters["contrast"])[:, None] * (order == CONTRAST)).to(mean.dtype)  # (N,4)
    start = torch.cat([mean, torch.ones_like(mean[:, :1])], dim=1)[:, :, None]  # (N,4,1)
    for step in range(4):
        now = matrix @ start  # (N,3,1): the mean colour so far
        matrix = steps[:, step] @ matrix
        matrix[:, :, 3] += rest[:, step, None] * (now[:, :, 0] @ luma)[:, None]
    return matrix


def grayed(matrix: Tensor, gray: Tensor) -> Tensor:
    """``matrix`` (N,3,4) followed by making the rows where ``gray`` (N,) is true gray: (N,3,4)."""
    made = torch.tensor(LUMA, dtype=matrix.dtype).expand(3, 3) @ matrix
    return torch.where(gray[:, None, None], made, matrix)


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


def mix(images: Tensor, matrix: Tensor) -> Tensor:
    """``matrix`` (N,3,4) times the colours of ``images`` (N,3,H,W), cut to [0, 1]; exact where nothing is changed."""
    if not images.is_floating_point() and not large(images):
        images = as_float(images)
    stored = not images.is_floating_point()
    matrix = matrix.to(images.device, torch.float32 if stored else images.dtype)
    offset, linear = matrix[:, :, 3:], matrix[:, :, :3]
    if not large(images):
        return torch.baddbmm(offset, linear, images.flatten(2)).clamp_(0.0, 1.0).view(images.shape)
    mixed = matrix.new_empty(images.shape)
    for row, image in enumerate(images):  # one stays in the cache
        image = image.float().div_(255.0) if stored else image
        torch.addmm(offset[row], linear[row], image.flatten(1), out=mixed[row].view(3, -1)).clamp_(0.0, 1.0)
    return mixed
