"""Numbers that are none: the run stops before the step that would spread them, and the samples are named.

Every rank comes to the same verdict (it is made from values that all of them have), so none is left waiting.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pipeline import collectives
from pipeline.batches import Batch
from pipeline.contrast import Term
from pipeline.spec import Refusal
from pipeline.state import State

NAMED = 8
"""Samples that a message names."""


class Diverged(Refusal):
    """A vector, a loss or a gradient is not finite. The state is that before the step."""

    def __init__(self, what: str, batch: Batch, bad: Tensor | None):
        """``bad`` (n,): which of this rank's samples; None: it cannot be told."""
        samples = collectives.gather(torch.from_numpy(batch.samples).to(collectives.device()))
        self.step, self.epoch = batch.step, batch.epoch
        self.state: State | None = None
        self.batch: list[int] = samples.tolist()
        self.samples: list[int] = []
        if bad is not None:
            self.samples = samples[collectives.gather(bad.to(samples.device, torch.int64)) > 0].tolist()
        who = self.samples or self.batch
        named = ", ".join(map(str, who[:NAMED])) + (f" and {len(who) - NAMED} more" if len(who) > NAMED else "")
        of = "sample" if len(who) == 1 else "samples"
        where = f"{of} {named} of train" if self.samples else f"a batch of {len(who)}: {of} {named} of train"
        self.what = f"step {batch.step}: {what} ({where})"
        super().__init__(self.what)


def check_vectors(gathered: Tensor, z: Sequence[Tensor], batch: Batch) -> None:
    """Raises Diverged where a vector is not finite. gathered: the first pass of all ranks; z: this rank's passes."""
    broken = ~gathered.isfinite().all()
    if len(z) > 1:
        broken = collectives.top(torch.stack([broken, *(~each.isfinite().all() for each in z[1:])]).any().int()) > 0
    if bool(broken):
        count = len(batch.samples)
        bad = torch.stack([~each.detach().isfinite().reshape(count, -1).all(1) for each in z]).any(0)
        raise Diverged("z is no longer finite", batch, bad)


def check_loss(value: float, terms: Sequence[Term], batch: Batch) -> None:
    """Raises Diverged where the loss of all ranks is not finite."""
    if math.isfinite(value):
        return
    sizes = [len(each["sample"]) for each in batch.columns]
    rows = torch.cat([each["sample"] for each in batch.columns])
    bad = torch.zeros(sum(sizes), dtype=torch.bool, device=rows.device)
    for term in terms:
        if len(term.values) == len(bad):
            bad |= term.counted & ~term.values.detach().isfinite()
    samples = torch.from_numpy(batch.samples).to(rows.device)
    raise Diverged(f"the loss is {value}", batch, torch.isin(samples, rows[bad]))


def check_gradient(network: nn.Module, batch: Batch) -> None:
    """Raises Diverged where the gradient of any weight is not finite; it is the same on all ranks."""
    with_gradient = [(name, each.grad) for name, each in network.named_parameters() if each.grad is not None]
    if not with_gradient:
        return
    largest = torch.stack([torch.linalg.vector_norm(gradient, math.inf).double() for _, gradient in with_gradient])
    if not bool(largest.isfinite().all()):
        first = next(
            name for (name, _), size in zip(with_gradient, largest.tolist(), strict=True) if not math.isfinite(size)
        )
        raise Diverged(f"the gradient of {first} is no longer finite", batch, None)
