"""Floor 2: the vectors of one layer of an embedded space, and what several probes need of them, computed once."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from pipeline.embeddings import Embeddings, unusable
from pipeline.neighbours import Codes, Floats, nearest_rows
from pipeline.parallel import Each
from pipeline.probes import SPLITS
from pipeline.probes.standard import Standard, standardise
from pipeline.probes.whitening import Whitening, whitening

SHUFFLED = "shuffled labels"
SEED = 0
"""Of the permutation that shuffles the training labels."""
Row = dict[str, Any]
Neighbours = tuple[Floats, Codes] | str
"""The similarities and indices of each query's neighbours, or why there are none."""


class Layer:
    """gallery (N, D), the training rows; asked, the rows (M, D) of each split that a probe is tested on."""

    def __init__(self, embeddings: Embeddings, name: str):
        self.embeddings, self.name = embeddings, name
        self.gallery: Floats = embeddings.features("train", name)
        self.asked: dict[str, Floats] = {split: embeddings.features(split, name) for split in SPLITS}
        self.controls = (None, SHUFFLED) if name == "h" else (None,)

    @cached_property
    def broken(self) -> dict[str, str | None]:
        """Why nothing can be fitted to the training rows, or read from the rows of a split; None: it can."""
        rows = {"train": self.gallery, **self.asked}
        return {split: unusable(each, cosine=False) for split, each in rows.items()}

    def neighbours(self, k: int) -> dict[str, Neighbours]:
        """The k nearest training rows of every row of each split."""
        reason = unusable(self.gallery)
        if len(self.gallery) < k:
            reason = f"{len(self.gallery)} training rows are fewer than probe.k = {k}"
        if reason is not None:
            return dict.fromkeys(self.asked, reason)
        return {split: unusable(rows) or nearest_rows(rows, self.gallery, k) for split, rows in self.asked.items()}

    def standard(self, each: Each) -> tuple[Standard, Whitening]:
        """The training rows standardised, and their whitening; only where the training rows are not broken."""
        if self._standard is None:
            standard = standardise(self.gallery, each)
            self._standard = standard, whitening(standard.rows)
        return self._standard

    _standard: tuple[Standard, Whitening] | None = None
