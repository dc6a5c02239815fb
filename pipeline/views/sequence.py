"""A list of invariances, applied in order, neighbours together where they are one operation, in blocks that stay in the
cache: a view is a function of its own row, so blocks change nothing.

What the parameters alone decide is computed for the whole batch first; then a block is taken through all operations.

N images (N,C,H,W), or a list of N (C,H_i,W_i).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, get_args

import torch
from torch import Tensor

from pipeline.keys import Keys
from pipeline.views.grouping import Motion, Resampled, Step, by_matrix, grouped, mirrored, mixture, sizing
from pipeline.views.image_blur import blur_own
from pipeline.views.image_colour import Grayscale, gray_own
from pipeline.views.image_detail import Blur
from pipeline.views.image_jitter import ColorJitter, jitter_own
from pipeline.views.image_matrix import mix
from pipeline.views.image_plane import Parameters, as_float, permute, resample
from pipeline.views.image_resize import crop

if TYPE_CHECKING:
    from pipeline.views import Invariance

BLOCK = 5 * 2**18  # values that are worked on at a time on a CPU: 5 MiB
Images = Tensor | Sequence[Tensor]
Operation = Callable[[Images, slice], Tensor]
"""A block of images and its rows -> what they become."""


def draw_all(invariances: Sequence[Invariance], keys: Keys) -> list[Parameters]:
    """The parameters of every invariance; each has a stream of its own, its position in the list."""
    return [invariance.draw(keys.fold(position)) for position, invariance in enumerate(invariances)]


def apply_all(
    images: Images,
    invariances: Sequence[Invariance],
    parameters: Sequence[Parameters],
    size: tuple[int, int] | None = None,
) -> Tensor:
    """Apply the invariances in their order: N images, floating point or uint8 -> (N,C,*size) floating point.

    ``size`` is theirs, if it is None; images of other sizes need a sizing first.
    """
    size = size or (images[0].shape[-2], images[0].shape[-1])
    groups = grouped(list(zip(invariances, parameters, strict=True)))
    device = images.device if isinstance(images, Tensor) else images[0].device
    values = images[0].shape[0] * size[0] * size[1]
    blocks = -(-len(images) * values // BLOCK) if device.type == "cpu" else 1
    count = -(-len(images) // max(1, blocks))
    operations, sizes, own = [], _sizes(images), False
    for group in groups:
        operations.append(_operation(group, sizes, size, own))
        own = _made(group[0][0], own)
        sizes = torch.tensor(size).expand(len(images), 2)
    images = _in_blocks(images, operations, count) if len(images) else images
    if not isinstance(images, Tensor):
        raise TypeError("nothing brings the images to one size")
    return as_float(images)


def _in_blocks(images: Images, operations: Sequence[Operation], count: int) -> Tensor:
    """Take blocks of ``count`` images through all operations."""
    views: Tensor | None = None
    for start in range(0, len(images), count):
        rows = slice(start, min(start + count, len(images)))
        block = images[rows]
        for operation in operations:
            block = operation(block, rows)
        view = as_float(torch.as_tensor(block))
        if count >= len(images):
            return view
        views = view.new_empty(len(images), *view.shape[1:]) if views is None else views
        views[rows] = view
    if views is None:
        raise ValueError("no images")
    return views


def _sizes(images: Images) -> Tensor:
    """Height and width of each: (N,2)."""
    if isinstance(images, Tensor):
        return torch.tensor(images.shape[-2:]).expand(len(images), 2)
    return torch.tensor([image.shape[-2:] for image in images])


def _made(invariance: Any, own: bool) -> bool:
    """Whether what an operation returns is nobody else's, and may be written to by the next."""
    return (
        sizing(invariance) or isinstance(invariance, ColorJitter) or (own and isinstance(invariance, Grayscale | Blur))
    )


def _operation(group: Sequence[Step], sizes: Tensor, size: tuple[int, int], own: bool) -> Operation:
    """Neighbours that are one operation, on a block of images of ``sizes`` (N,2); those of the views are ``size``.

    ``own``: whether the block may be written to.
    """
    (first, drawn), count = group[0], len(sizes)
    if sizing(first):
        heights, widths = sizes.unbind(1)
        boxes, mirrors = first.boxes(drawn, heights, widths, size), mirrored(group[1:], count)
        return lambda block, rows: crop(block, boxes[rows], size, mirrors[rows])
    if by_matrix(first):
        mixed = mixture(group)
        return lambda block, rows: mix(_batch(block), mixed[rows])
    if isinstance(first, ColorJitter):
        return lambda block, rows: jitter_own(_own(block, own), _rows(drawn, rows))
    if own and isinstance(first, Grayscale):
        return lambda block, rows: gray_own(_batch(block), drawn["gray"][rows])
    if own and isinstance(first, Blur):
        return lambda block, rows: blur_own(_batch(block), drawn["sigma"][rows], first.radius)
    if isinstance(first, get_args(Motion)):
        return lambda block, rows: _move(block, [(motion, _rows(drawn, rows)) for motion, drawn in group])
    return lambda block, rows: first.apply(_batch(block), _rows(drawn, rows))


def _batch(block: Images) -> Tensor:
    if not isinstance(block, Tensor):
        raise TypeError("pictures of several sizes need a sizing first")
    return as_float(block)


def _own(block: Images, own: bool) -> Tensor:
    """A block that may be written to."""
    images = _batch(block)
    return images.clone() if images is block and not own else images


def _rows(parameters: Parameters, rows: slice) -> Parameters:
    return {name: values[rows] for name, values in parameters.items()}


def _move(images: Images, motions: Sequence[Step]) -> Tensor:
    """Apply motions, in their order, as one map."""
    if not isinstance(images, Tensor):
        raise TypeError("pictures of several sizes need a sizing first")
    matrix = torch.eye(3).expand(len(images), 3, 3)
    for motion, parameters in motions:
        matrix = matrix @ motion.matrix(parameters, *images.shape[-2:])
    fills = [motion.fill for motion, _ in motions if isinstance(motion, get_args(Resampled))]
    return resample(as_float(images), matrix, fills[0]) if fills else permute(images, matrix)
