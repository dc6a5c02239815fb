"""The views of a split's samples: bytes → pictures → views, each a function of (seed, epoch, sample, view) alone.

Samples that all have the canvas's size, or are fitted to it first, are decoded once and kept, and a batch's views are
made at once, on the device. Where a view begins by cutting or resizing samples of other sizes, and where all of them
are too many to be kept, each sample is decoded when it is due, once for all of its views: in threads, a batch ahead.

n samples; a pass is the views of one size, V a sample, ordered by sample, then view: (n·V, C, h, w) of pictures, where
h and w stand for whatever sides the samples have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from pipeline.keys import Keys
from pipeline.samples import Size
from pipeline.shards import Shards
from pipeline.views import Images, apply_view, draw_parameters, sizes_views
from pipeline.views.roles import PartnerTable, Role

CHUNK = 8
"""Samples that a thread decodes and cuts at a time: their pictures stay in its cache."""

Epoch = int


class ViewLoader:
    """Makes the views of one split's samples, in roles.

    Args:
        shards: the data.
        split: of it.
        roles: what views there are; the first role's fill the canvas.
        seed: of the views.
        device: where views are made (but for decoding and cutting).
        codes: (N,) the column that makes partners; None where every view is of the sample itself.
        workers: threads that decode.
        resident: bytes of decoded pictures that may be kept.
    """

    def __init__(
        self,
        shards: Shards,
        split: str,
        roles: Sequence[Role],
        seed: int,
        device: torch.device | str = "cpu",
        codes: np.ndarray | None = None,
        workers: int = 1,
        resident: int = 2**32,
    ):
        self.shards, self.split, self.seed, self.device, self.codes = shards, split, seed, torch.device(device), codes
        canvas = shards.card.input
        self.passes: dict[Size, list[Role]] = {}
        for role in roles:
            self.passes.setdefault(role.of(canvas.size), []).append(role)
        self.partners = None if codes is None else PartnerTable(codes)
        self.at_own_size = canvas.own_size(shards.shapes(split))
        self.needed = {self._cuts(role) for role in roles}
        keep = self.needed == {False} and shards.canvas_bytes(split) <= resident
        self.kept = torch.from_numpy(shards.images(split)) if keep else None
        self.threads = None if keep else ThreadPoolExecutor(workers, "views", torch.set_num_threads, (1,))

    def views(self, epoch: Epoch, samples: np.ndarray) -> tuple[Tensor, ...]:
        """The views of some samples (n,): one tensor a pass, (n·V, C, h, w) float in [0, 1], on the device."""
        return next(self.batches([(epoch, samples)]))

    def batches(self, order: Iterable[tuple[Epoch, np.ndarray]]) -> Iterator[tuple[Tensor, ...]]:
        """Yield the views of each (epoch, samples (n,)) in turn; what has to be decoded is decoded a batch ahead."""
        if self.threads is None:
            yield from (self._made(epoch, samples) for epoch, samples in order)
            return
        started = deque[list[Future[tuple[Tensor, ...]]]]()
        for epoch, samples in order:
            started.append(self._started(epoch, samples))
            if len(started) > 1:
                yield self._finished(started.popleft())
        while started:
            yield self._finished(started.popleft())

    def view_numbers(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of each pass's views, in their order in its tensor."""
        return tuple(tuple(view for role in roles for view in role.views) for roles in self.passes.values())

    def _started(self, epoch: Epoch, samples: np.ndarray) -> list[Future[tuple[Tensor, ...]]]:
        assert self.threads is not None
        chunks = (samples[start : start + CHUNK] for start in range(0, len(samples), CHUNK))
        return [self.threads.submit(self._made, epoch, chunk) for chunk in chunks]

    def _finished(self, started: list[Future[tuple[Tensor, ...]]]) -> tuple[Tensor, ...]:
        parts = [future.result() for future in started]
        return tuple(torch.cat(each).to(self.device, non_blocking=True) for each in zip(*parts, strict=True))

    def _made(self, epoch: Epoch, samples: np.ndarray) -> tuple[Tensor, ...]:
        """All passes of some samples."""
        of_view = self._rows(epoch, samples)
        pictures = self._decoded(np.concatenate([samples, *of_view.values()]))
        return tuple(
            _joined([self._role(epoch, samples, role, size, pictures, of_view) for role in roles], len(samples))
            for size, roles in self.passes.items()
        )

    def _rows(self, epoch: Epoch, samples: np.ndarray) -> dict[int, np.ndarray]:
        """For each view that is of another row than the sample, those rows (n,)."""
        return {} if self.partners is None else {1: self.partners.of(samples, self.seed, epoch)}

    def _cuts(self, role: Role) -> bool:
        """Whether a role's views are cut from pictures at their own size, and not from the canvas."""
        return self.at_own_size and bool(role.invariances) and sizes_views(role.invariances[0])

    def _decoded(self, rows: np.ndarray) -> dict[bool, dict[int, Tensor]]:
        """The pictures of some rows at their own size (True), on the canvas (False), as roles need them; each is
        decoded once where one of the two is needed. Nothing where all of them are kept."""
        if self.kept is not None:
            return {}
        unique = np.unique(rows)
        found: dict[bool, dict[int, Tensor]] = {}
        if True in self.needed:
            found[True] = {int(row): torch.from_numpy(self.shards.original(self.split, int(row))) for row in unique}
        if False in self.needed:
            canvases = torch.from_numpy(self.shards.canvases(self.split, unique))
            found[False] = dict(zip(unique.tolist(), canvases, strict=True))
        return found

    def _role(
        self,
        epoch: Epoch,
        samples: np.ndarray,
        role: Role,
        size: Size,
        pictures: dict[bool, dict[int, Tensor]],
        of_view: dict[int, np.ndarray],
    ) -> Tensor:
        """The views of one role: (n·V, C, h, w)."""
        keys = Keys.of(self.seed, epoch, np.repeat(samples, len(role.views)), np.tile(role.views, len(samples)))
        rows = np.stack([of_view.get(view, samples) for view in role.views], axis=1).reshape(-1)  # (n·V,)
        images: Images
        if self.kept is not None:
            images = self.kept[torch.from_numpy(rows)].to(self.device, non_blocking=True)
        else:
            images = [pictures[self._cuts(role)][row] for row in rows.tolist()]
            if not self._cuts(role):
                images = torch.stack(images)
        return apply_view(images, role.invariances, draw_parameters(role.invariances, keys), size)


def _joined(parts: list[Tensor], count: int) -> Tensor:
    """Views of several roles and one size, each (n·V, C, h, w), ordered by sample, then view."""
    if len(parts) == 1:
        return parts[0]
    each = [part.reshape(count, -1, *part.shape[1:]) for part in parts]  # (n, V, C, h, w)
    return torch.cat(each, dim=1).flatten(0, 1)
