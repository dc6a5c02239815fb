"""A queue of keys, as a value: first in, first out, in the global order of samples; the same on every rank.

He et al. 2020, arXiv:1911.05722, section 3.1. Each key is one sample's z by the target network, with the sample, its
group and the step. A batch of any size goes in (a larger one than the queue leaves its last keys); the queue starts
empty, and only what was put in counts. Nothing is changed in place, so a loss that reads it can still be backward.

L keys at most, D dimensions, n keys of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True, eq=False)
class KeyQueue:
    """z (L, D) and the columns sample, group and step (L,) int64; ``filled`` of them count, ``place`` is next."""

    z: Tensor
    columns: dict[str, Tensor]
    place: int
    filled: int

    @property
    def valid(self) -> tuple[Tensor, dict[str, Tensor]]:
        """The keys that count (filled, D) and their columns, in no order of age."""
        return self.z[: self.filled], {name: column[: self.filled] for name, column in self.columns.items()}

    def tensors(self) -> dict[str, Tensor]:
        """All of it by name, for a checkpoint."""
        return {"z": self.z, **self.columns, "at": torch.tensor([self.place, self.filled])}


COLUMNS = ("sample", "group", "step")


def empty(length: int, dim: int, dtype: torch.dtype, device: torch.device | str = "cpu") -> KeyQueue:
    """A queue for ``length`` keys that holds none."""
    none = {name: torch.full((length,), -1, dtype=torch.int64, device=device) for name in COLUMNS}
    return KeyQueue(torch.zeros(length, dim, dtype=dtype, device=device), none, 0, 0)


def of_tensors(tensors: Mapping[str, Tensor], device: torch.device | str = "cpu") -> KeyQueue:
    """The queue that ``tensors()`` described."""
    place, filled = tensors["at"].tolist()
    return KeyQueue(tensors["z"].to(device), {name: tensors[name].to(device) for name in COLUMNS}, place, filled)


def enqueued(queue: KeyQueue, z: Tensor, columns: Mapping[str, Tensor], step: int) -> KeyQueue:
    """The queue after the keys z (n, D) went in, the first first; the oldest went out.

    Args:
        columns: "sample" (n,), and "group" (n,) where there are groups.
    """
    length, count = len(queue.z), len(z)
    last = slice(max(0, count - length), count)  # what a batch larger than the queue leaves of itself
    where = (queue.place + torch.arange(count, device=z.device)[last]) % length
    given = {**columns, "step": torch.full((count,), step, dtype=torch.int64, device=z.device)}
    kept = {
        name: before if name not in given else before.index_copy(0, where, given[name][last])
        for name, before in queue.columns.items()
    }
    vectors = queue.z.index_copy(0, where, z.detach()[last].to(queue.z.dtype))
    return KeyQueue(vectors, kept, (queue.place + count) % length, min(length, queue.filled + count))


def checksum(queue: KeyQueue) -> Tensor:
    """A number that tells two queues apart: of every key, column and place, each weighted by where it stands."""
    rows = torch.cat([queue.z.double(), *(column[:, None].double() for column in queue.columns.values())], dim=1)
    places = torch.arange(1, len(rows) + 1, device=rows.device, dtype=rows.dtype)
    across = torch.arange(1, rows.shape[1] + 1, device=rows.device, dtype=rows.dtype)
    return places.sqrt() @ rows @ across.sqrt() + queue.place + queue.filled / 7


def ages(queue: KeyQueue, step: int) -> Tensor:
    """How many steps ago each key that counts was made: (filled,)."""
    return step - queue.columns["step"][: queue.filled]


def drift(queued: Tensor, now: Tensor) -> Tensor:
    """1 - cosine of each queued key (n, D) and the key that the target network makes of the same view now: (n,)."""
    return 1 - torch.nn.functional.cosine_similarity(queued.double(), now.double(), dim=1)


Look = Callable[[int, NDArray[np.int64]], Tensor]
"""(epoch, samples (n,)) → the keys (n, D) that the target makes now of the views that they had in that epoch."""


def wear(queue: KeyQueue, step: int, per_epoch: int, look: Look, most: int = 64) -> tuple[float, float]:
    """Mean age in steps, and mean drift of at most ``most`` keys of all ages; (0, 0) of an empty queue.

    The views of an epoch are a function of it, so a key's own views can be made once more. Under batch normalisation
    a key depends on its batch too, and part of the drift is that.
    """
    count = queue.filled
    if count == 0:
        return 0.0, 0.0
    oldest_first = (queue.place - count + torch.arange(count)) % len(queue.z)
    chosen = oldest_first[torch.linspace(0, count - 1, min(most, count)).round().long()]
    samples, steps = (queue.columns[name].cpu()[chosen].numpy() for name in ("sample", "step"))
    found = []
    epochs, members = np.unique(steps // per_epoch, return_counts=True)
    for epoch in epochs[members > 1] if (members > 1).any() else epochs:  # a lone row has no batch statistics
        here = steps // per_epoch == epoch
        found.append(drift(queue.z.cpu()[chosen[torch.from_numpy(here)]], look(int(epoch), samples[here]).cpu()))
    return float(ages(queue, step).double().mean()), float(torch.cat(found).mean())
