"""Large pictures on a CPU go one by one through all neighbouring operations that can, so that each stays in the cache.

What the parameters alone decide is computed for the whole batch before; then a picture is only read and written.

N images (N,C,H,W) or a list of N (C,H_i,W_i).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from pipeline.views.grouping import Step, by_matrix, mirrored, mixture, sizing
from pipeline.views.image_blur import blur_one, kernels
from pipeline.views.image_colour import Grayscale, gray
from pipeline.views.image_detail import Blur
from pipeline.views.image_jitter import ColorJitter, jitter_one, numbers_of
from pipeline.views.image_matrix import mix_one
from pipeline.views.image_plane import as_float
from pipeline.views.image_resize import crop_one, large, resized_apart

Images = Tensor | Sequence[Tensor]
Operation = Callable[[Tensor, int], Tensor]
"""A picture (C,H,W), which is not written to, and its row -> the picture it becomes."""


def chain(images: Images, groups: Sequence[Sequence[Step]], size: tuple[int, int]) -> list[Operation]:
    """The first of the groups that go one by one; none where the pictures are not large."""
    first = groups[0][0][0]
    if not (resized_apart(images, size) if sizing(first) else isinstance(images, Tensor) and large(images)):
        return []
    operations: list[Operation] = []
    for group in groups:
        again = bool(operations) and sizing(group[0][0])  # of pictures that are not there yet
        operation = None if again else _operation(group, images, size)
        if operation is None:
            break
        operations.append(operation)
    return operations


def run(images: Images, operations: Sequence[Operation]) -> Tensor:
    """Take each picture through all operations: (N,C,H,W) floating point."""
    views: Tensor | None = None
    for row, image in enumerate(images):
        for operation in operations:
            image = operation(image, row)
        image = as_float(image)
        views = image.new_empty(len(images), *image.shape) if views is None else views
        views[row] = image
    if views is None:
        raise ValueError("no image")
    return views


def _operation(group: Sequence[Step], images: Images, size: tuple[int, int]) -> Operation | None:
    """A group of steps as an operation; None if it has no form for one picture."""
    count = len(images)
    first, drawn = group[0]
    if sizing(first):
        heights, widths = torch.tensor([image.shape[-2:] for image in images]).T
        boxes = first.boxes(drawn, heights, widths, size).tolist()
        mirrors = mirrored(group[1:], count).tolist()
        return lambda image, row: crop_one(image, boxes[row], size, mirrors[row])
    if by_matrix(first):
        mixed = mixture(group, count)
        return lambda image, row: mix_one(as_float(image), mixed[row])
    if isinstance(first, ColorJitter):
        factors, orders = numbers_of(drawn)
        return lambda image, row: jitter_one(_own(image), factors[row], orders[row])
    if isinstance(first, Grayscale):
        grays = drawn["gray"].tolist()
        return lambda image, row: gray(as_float(image)[None])[0].expand(3, -1, -1) if grays[row] else image
    if isinstance(first, Blur):
        weights = kernels(drawn["sigma"], min(first.radius, size[0] - 1, size[1] - 1))
        return lambda image, row: blur_one(as_float(image), weights[row]) if row in weights else image
    return None


def _own(image: Tensor) -> Tensor:
    """The picture as floating point that may be written to."""
    return image.clone() if image.is_floating_point() else as_float(image)
