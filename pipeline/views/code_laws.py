"""The laws of every invariance, tried on a user's class before anything else is touched.

Everything is tried on a few small pictures of the data's canvas (flat black, white and gray among them, on which
divisions by a spread fail), and the first law that is broken is told, with where it stands and what to do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from pipeline.keys import Keys
from pipeline.views.code import Code, CodeFault
from pipeline.views.code_loading import Unusable, place
from pipeline.views.image_plane import Parameters

ROUNDING = 1e-4  # of pixels in [0, 1]: sums over batches of other sizes run in another order
EDGE = 1e-5  # by so much values may leave [0, 1]
DRAWS = 64  # of one picture, to see whether parameters have any effect
VALUES = 2**22  # pixels of a try, at most
FROM_KEYS = "draw from the keys alone (keys.uniform, keys.normal, keys.integers)"


def broken_law(code: Code, channels: int, height: int, width: int) -> tuple[str, str] | None:
    """The first law that a user's class breaks on pictures of this canvas, as (field of the spec, remedy), or None."""
    try:
        _hold(code, code.built, probe_pictures(channels, height, width))
        if hasattr(code.built, "at"):
            _hold_strength(code, probe_pictures(channels, height, width))
    except CodeFault as fault:
        return fault.field, fault.reason
    return None


def probe_pictures(channels: int, height: int, width: int) -> Tensor:
    """Black, white, gray, two smooth and three noisy pictures: (8,C,H,W) in [0, 1]."""
    noise = Keys.of(11, 0, np.arange(8)).uniform("pixels", shape=(channels, height, width))
    noise[0], noise[1], noise[2] = 0.0, 1.0, 0.5
    coarse = functional.adaptive_avg_pool2d(noise[3:5], (min(4, height), min(4, width)))
    noise[3:5] = functional.interpolate(coarse, (height, width), mode="bilinear").clamp(0, 1)
    return noise


def _hold(code: Code, user: Any, images: Tensor) -> None:
    """Raise CodeFault for the first broken law of ``draw`` and ``apply``."""
    count = len(images)
    keys = Keys.of(0, 0, np.arange(count))
    drawn = code.called(user, "draw", keys)
    if not _equal(drawn, code.called(user, "draw", keys)):
        raise _fault(code, user, "draw", f"gives other parameters for the same keys; {FROM_KEYS}")
    some = [5, 2, 3]
    if not _equal(_rows(drawn, some), code.called(user, "draw", keys.take(np.array(some)))):
        raise _fault(code, user, "draw", f"lets a row depend on other rows or on their number; {FROM_KEYS}")

    before, given = images.clone(), {name: values.clone() for name, values in drawn.items()}
    result = code.called(user, "apply", images, drawn)
    if not torch.equal(before, images):
        raise _fault(code, user, "apply", "writes to the images that it is given; return new ones (images.clone())")
    if not _equal(given, drawn):
        raise _fault(code, user, "apply", "writes to the parameters that it is given; leave them as they are")
    low, high = float(result.min()), float(result.max())
    if low < -EDGE or high > 1 + EDGE:
        remedy = "end it with .clamp(0, 1)"
        raise _fault(code, user, "apply", f"leaves [0, 1]: values from {low:.3g} to {high:.3g}; {remedy}")
    if not torch.equal(result, code.called(user, "apply", images.clone(), drawn)):
        remedy = "all that is random must be drawn in draw"
        raise _fault(code, user, "apply", f"gives other images for the same images and parameters; {remedy}")
    for rows in ([1], [4], [6, 3, 7]):
        alone = code.called(user, "apply", images[rows], _rows(drawn, rows))
        if not torch.allclose(alone, result[rows], rtol=0, atol=ROUNDING):
            remedy = "reduce over channels and pixels only, never over the first axis"
            raise _fault(code, user, "apply", f"mixes rows: a picture alone gives another than in a batch; {remedy}")
    if torch.cuda.is_available():  # where training runs; a tensor made without device= shows here
        there = {name: values.cuda() for name, values in drawn.items()}
        moved = code.called(user, "apply", images.cuda(), there).cpu()
        if not torch.allclose(moved, result, rtol=0, atol=1e-2):
            raise _fault(code, user, "apply", "gives other images on the GPU than on the CPU")
    _hold_effect(code, user, images)


def _hold_effect(code: Code, user: Any, images: Tensor) -> None:
    """Raise CodeFault if the parameters have no effect on any of several pictures."""
    count = max(8, min(DRAWS, VALUES // images[0].numel()))
    keys = Keys.of(1, 0, np.arange(count))
    drawn = code.called(user, "draw", keys)
    moved = False
    for image in images[3:]:
        result = code.called(user, "apply", image.expand(count, -1, -1, -1).clone(), drawn)
        if float((result - result[:1]).abs().max()) > 1e-6:
            return
        moved = moved or float((result - image).abs().max()) > 1e-6
    if not moved:
        raise _fault(code, user, "apply", f"changes none of the tried pictures under {count} draws; take it out")
    if not drawn:
        if code.probability < 1:
            return
        remedy = "draw something, or give a probability below 1"
        raise _fault(code, user, "draw", f"draws nothing, so that all views are alike; {remedy}")
    if all(bool((values == values[:1]).all()) for values in drawn.values()):
        raise _fault(code, user, "draw", f"draws the same for every key, so that all views are alike; {FROM_KEYS}")
    names = ", ".join(drawn)
    raise _fault(code, user, "apply", f"ignores its parameters ({names}): {count} draws of a picture are all alike")


def _hold_strength(code: Code, images: Tensor) -> None:
    """Raise CodeFault if ``at`` is no strength: 0 the identity, 1 itself, something usable between."""
    keys = Keys.of(0, 0, np.arange(len(images)))
    whole = code.called(code.built, "apply", images.clone(), code.called(code.built, "draw", keys))
    for strength, expected, meaning in ((0.0, images, "the identity"), (1.0, whole, "the class itself")):
        user = code.called(code.built, "at", strength)
        result = code.called(user, "apply", images.clone(), code.called(user, "draw", keys))
        if not torch.allclose(result, expected, rtol=0, atol=ROUNDING):
            raise _fault(code, code.built, "at", f"at strength {strength:g} is not {meaning}")
    _hold(code, code.called(code.built, "at", 0.5), images)


def _fault(code: Code, user: Any, method: str, reason: str) -> CodeFault:
    return CodeFault(code, Unusable("name", f"{place(code.file, user, method)}: {method} {reason}"))


def _equal(first: Parameters, second: Parameters) -> bool:
    return first.keys() == second.keys() and all(
        values.dtype == second[name].dtype
        and values.shape == second[name].shape
        and torch.allclose(values.double(), second[name].double(), rtol=1e-6, atol=1e-6, equal_nan=True)
        for name, values in first.items()
    )


def _rows(parameters: Parameters, rows: list[int]) -> Parameters:
    return {name: values[rows] for name, values in parameters.items()}
