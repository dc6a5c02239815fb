"""The laws of every invariance, tried on a user's class before anything else is touched.

Everything is tried on a few samples of the size that the data's contract says (flat ones among them: black, white and
gray, or silence and full scale, on which divisions by a spread fail), and the first law that is broken is told, with
where it stands and what to do. Which values views keep within the contract says too (``extent``): no modality is known
here.

Legend: N samples (N, *S), of pictures S = (C, H, W), of what has a time axis (C, T).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from pipeline.keys import Keys
from pipeline.samples import Extent, Size, modality, several
from pipeline.views.code import Code, CodeFault
from pipeline.views.code_loading import Unusable, place, takes
from pipeline.views.image_plane import Parameters

ROUNDING = 1e-4  # of values of about 1: sums over batches of other sizes run in another order
EDGE = 1e-5  # by so much values may leave their extent
DRAWS = 64  # of one sample, to see whether parameters have any effect
VALUES = 2**22  # numbers of a try, at most
FROM_KEYS = "draw from the keys alone (keys.uniform, keys.normal, keys.integers)"


class Contract(Protocol):
    """What the laws read of a data set's ``input``."""

    word: ClassVar[str]
    extent: ClassVar[Extent]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a sample on the canvas."""


@dataclass(frozen=True)
class Trial:
    """Samples on which code is tried, and what is said of them."""

    samples: Tensor
    """(8, *S)"""
    extent: Extent
    word: str
    rate: tuple[int, ...]
    """what ``apply`` is told beside samples and parameters: the rate, of what has one"""

    @property
    def words(self) -> str:
        """The word for several."""
        return several(self.word)


def broken_law(code: Code, contract: Contract, size: Size) -> tuple[str, str] | None:
    """The first law that a user's class breaks on samples of a size, as (field of the spec, remedy), or None."""
    trial = _trial(contract, size)
    try:
        _hold(code, code.built, trial)
        if hasattr(code.built, "at"):
            _hold_strength(code, trial)
    except CodeFault as fault:
        return fault.field, fault.reason
    return None


def _trial(contract: Contract, size: Size) -> Trial:
    sides = len(contract.shape) - 1
    shape = (contract.shape[0], *size[:sides])
    rate = () if modality(size) == "image" else (size[1],)
    return Trial(tried_samples(shape, contract.extent), contract.extent, contract.word, rate)


def tried_samples(shape: tuple[int, ...], extent: Extent) -> Tensor:
    """The least value, the largest and the middle one everywhere, two smooth samples and three noisy ones: (8, *S)."""
    noise = Keys.of(11, 0, np.arange(8)).uniform("pixels", shape=shape)  # in [0, 1)
    noise[0], noise[1], noise[2] = 0.0, 1.0, 0.5
    mode = "linear" if len(shape) == 2 else "bilinear"
    coarse = functional.interpolate(noise[3:5], tuple(min(4, side) for side in shape[1:]), mode="area")
    noise[3:5] = functional.interpolate(coarse, shape[1:], mode=mode).clamp(0, 1)
    return extent.low + (extent.high - extent.low) * noise


def _hold(code: Code, user: Any, trial: Trial) -> None:
    """Raise CodeFault for the first broken law of ``draw`` and ``apply``."""
    samples, word, words = trial.samples.clone(), trial.word, trial.words
    keys = Keys.of(0, 0, np.arange(len(samples)))
    _hold_arguments(code, user, trial)
    drawn = code.called(user, "draw", keys)
    if not _equal(drawn, code.called(user, "draw", keys)):
        raise _fault(code, user, "draw", f"gives other parameters for the same keys; {FROM_KEYS}")
    some = [5, 2, 3]
    if not _equal(_rows(drawn, some), code.called(user, "draw", keys.take(np.array(some)))):
        raise _fault(code, user, "draw", f"lets a row depend on other rows or on their number; {FROM_KEYS}")

    given = {name: values.clone() for name, values in drawn.items()}
    result = code.called(user, "apply", samples, drawn, *trial.rate)
    if not torch.equal(trial.samples, samples):
        raise _fault(code, user, "apply", f"writes to the {words} that it is given; return new ones (clone them)")
    if not _equal(given, drawn):
        raise _fault(code, user, "apply", "writes to the parameters that it is given; leave them as they are")
    _hold_extent(code, user, result, trial.extent)
    if not torch.equal(result, code.called(user, "apply", samples.clone(), drawn, *trial.rate)):
        remedy = "all that is random must be drawn in draw"
        raise _fault(code, user, "apply", f"gives other {words} for the same {words} and parameters; {remedy}")
    for rows in ([1], [4], [6, 3, 7]):
        alone = code.called(user, "apply", samples[rows], _rows(drawn, rows), *trial.rate)
        if not torch.allclose(alone, result[rows], rtol=0, atol=ROUNDING):
            remedy = f"reduce over {trial.extent.along} only, never over the first axis"
            raise _fault(code, user, "apply", f"mixes rows: a {word} alone gives another than in a batch; {remedy}")
    if torch.cuda.is_available():  # where training runs; a tensor made without device= shows here
        there = {name: values.cuda() for name, values in drawn.items()}
        moved = code.called(user, "apply", samples.cuda(), there, *trial.rate).cpu()
        if not torch.allclose(moved, result, rtol=0, atol=1e-2):
            raise _fault(code, user, "apply", f"gives other {words} on the GPU than on the CPU")
    _hold_effect(code, user, trial)


def _hold_arguments(code: Code, user: Any, trial: Trial) -> None:
    """Raise CodeFault if a method cannot be called as it will be."""
    wanted = {"draw": ("keys",), "apply": (trial.words, "parameters", *("rate" for _ in trial.rate))}
    for method, arguments in wanted.items():
        found = takes(user, method, len(arguments))
        if found is not None:
            remedy = f"is called with {method}({', '.join(arguments)}), and takes: {found}"
            raise _fault(code, user, method, remedy)


def _hold_extent(code: Code, user: Any, result: Tensor, extent: Extent) -> None:
    """Raise CodeFault if views leave the values that they must keep within."""
    low, high = float(result.min()), float(result.max())
    if extent.kept and (low < extent.low - EDGE or high > extent.high + EDGE):
        ends = f"{extent.low:g}, {extent.high:g}"
        remedy = f"end it with .clamp({ends})"
        raise _fault(code, user, "apply", f"leaves [{ends}]: values from {low:.3g} to {high:.3g}; {remedy}")


def _hold_effect(code: Code, user: Any, trial: Trial) -> None:
    """Raise CodeFault if the parameters have no effect on any of several samples."""
    word, words = trial.word, trial.words
    count = max(8, min(DRAWS, VALUES // trial.samples[0].numel()))
    keys = Keys.of(1, 0, np.arange(count))
    drawn = code.called(user, "draw", keys)
    moved = False
    for sample in trial.samples[3:]:
        alike = sample.expand(count, *sample.shape).clone()
        result = code.called(user, "apply", alike, drawn, *trial.rate)
        if float((result - result[:1]).abs().max()) > 1e-6:
            return
        moved = moved or float((result - sample).abs().max()) > 1e-6
    if not moved:
        raise _fault(code, user, "apply", f"changes none of the tried {words} under {count} draws; take it out")
    if not drawn:
        if code.probability < 1:
            return
        remedy = "draw something, or give a probability below 1"
        raise _fault(code, user, "draw", f"draws nothing, so that all views are alike; {remedy}")
    if all(bool((values == values[:1]).all()) for values in drawn.values()):
        raise _fault(code, user, "draw", f"draws the same for every key, so that all views are alike; {FROM_KEYS}")
    names = ", ".join(drawn)
    raise _fault(code, user, "apply", f"ignores its parameters ({names}): {count} draws of a {word} are all alike")


def _hold_strength(code: Code, trial: Trial) -> None:
    """Raise CodeFault if ``at`` is no strength: 0 the identity, 1 itself, something usable between."""
    keys = Keys.of(0, 0, np.arange(len(trial.samples)))

    def changed(user: Any) -> Tensor:
        drawn = code.called(user, "draw", keys)
        result: Tensor = code.called(user, "apply", trial.samples.clone(), drawn, *trial.rate)
        return result

    whole = changed(code.built)
    for strength, expected, meaning in ((0.0, trial.samples, "the identity"), (1.0, whole, "the class itself")):
        result = changed(code.called(code.built, "at", strength))
        if not torch.allclose(result, expected, rtol=0, atol=ROUNDING):
            raise _fault(code, code.built, "at", f"at strength {strength:g} is not {meaning}")
    _hold(code, code.called(code.built, "at", 0.5), trial)


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
