"""The maths of pictures in the plane: one resampling for any map of it, and exact moves for mirrors and right angles.

N images (N,C,H,W); matrices (N,3,3) map pixels of the output to pixels of the input, from the centre, x right, y down.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from pipeline.keys import Keys

Parameters = dict[str, Tensor]
"""What was drawn for an operation: tensors (N,...) by name."""


def applied(keys: Keys, probability: float) -> Tensor:
    """Whether an operation acts on each row: (N,) bool, true with the given probability."""
    return keys.uniform("applied") < probability


def as_float(images: Tensor) -> Tensor:
    """uint8 as float32 in [0, 1]; floating point as it is."""
    return images if images.is_floating_point() else images / 255.0


def resample(images: Tensor, matrix: Tensor, fill: float = 0.0) -> Tensor:
    """Bilinear values of ``images`` (N,C,H,W) at the mapped pixels; ``fill`` outside. Rows with no motion are exact.

    The canvas lies on an unbounded plane of ``fill``, so a pixel at the edge is a mixture of picture and fill.
    """
    height, width = images.shape[-2:]
    still = (matrix == torch.eye(3)).flatten(1).all(1).nonzero().flatten().to(images.device)
    units = torch.diag(torch.tensor([width / 2, height / 2, 1.0]))  # pixels in the grid's units, halves of the canvas
    matrix = units.inverse() @ matrix @ units
    grid = functional.affine_grid(matrix[:, :2].to(images), list(images.shape), align_corners=False)
    if bool((matrix[:, 2] != matrix.new_tensor([0.0, 0.0, 1.0])).any()):  # a perspective: divide by the depth
        depth = torch.cat([matrix[:, 2:], matrix[:, 2:]], dim=1).to(images)
        grid = grid / functional.affine_grid(depth, list(images.shape), align_corners=False)
    moved = (
        functional.grid_sample(images - fill, grid, mode="bilinear", padding_mode="zeros", align_corners=False) + fill
    )
    still = (matrix == torch.eye(3)).flatten(1).all(1).nonzero().flatten().to(images.device)
    return moved.index_copy_(0, still, images.index_select(0, still)) if len(still) else moved


def permute(images: Tensor, matrix: Tensor) -> Tensor:
    """Mirrors and right angles of ``images`` (N,C,H,W), as moves of whole pixels; quarter turns need H = W."""
    moved = images.clone()
    signs = matrix[:, :2, :2].round().long()
    # the eight symmetries of a square: swap x and y or not, then mirror x, y or both
    code = (signs[:, 0, 0] == 0).long() * 4 + (signs[:, 0].sum(-1) < 0).long() * 2 + (signs[:, 1].sum(-1) < 0).long()
    for value in range(1, 8):
        rows = (code == value).nonzero().flatten().to(images.device)
        if len(rows):
            part = images.index_select(0, rows)
            # out(x, y) = in(sx * (x or y), sy * (y or x)): mirror the input first, then swap
            mirrored = [axis for axis, flag in ((-1, value & 2), (-2, value & 1)) if flag]
            part = part.flip(mirrored) if mirrored else part
            moved.index_copy_(0, rows, part.transpose(-1, -2) if value & 4 else part)
    return moved


def filtered(images: Tensor, down: Tensor, across: Tensor) -> Tensor:
    """Linear, separable filters: ``down`` (N,R,H) @ ``images`` (N,C,H,W) @ ``across`` (N,S,W) transposed, (N,C,R,S)."""
    channels, height, width = images.shape[1:]
    # both products keep one matrix a sample (none a channel): the axes that are not summed are merged
    part = across @ images.reshape(-1, channels * height, width).transpose(1, 2)  # (N,S,C*H)
    part = part.reshape(len(images), -1, height) @ down.transpose(1, 2)  # (N,S*C,R)
    return part.reshape(len(images), -1, channels, down.shape[1]).permute(0, 2, 3, 1).contiguous()
