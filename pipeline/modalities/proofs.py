"""What check and audit ask a modality: its cheap probes, trivial statistics, drafts, controls and the raw control.

Kept apart from the contract, since sharding and training need none of it. N samples, D numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from torch import Tensor

from pipeline.audio import Audio
from pipeline.images import Input
from pipeline.modalities import Modality
from pipeline.modalities.audio import AudioProof
from pipeline.modalities.image import ImageProof
from pipeline.modalities.series import SeriesProof
from pipeline.series import Series
from pipeline.views import Invariance


class Proof(Protocol):
    """The questions; samples (N, *S) are as an encoder reads them."""

    def features(self, batch: Tensor) -> dict[str, Tensor]:
        """Cheap features: kind to (N, D). ``all`` is the others side by side."""

    def statistics(self, batch: Tensor) -> dict[str, Tensor]:
        """Trivial statistics by which views might be matched: what it is called to (N, D)."""

    def breakers(self, statistic: str) -> Iterable[tuple[str, Invariance]]:
        """Invariances that would break a statistic, as they would be written, mildest first."""

    def drafts(self) -> Sequence[Invariance]:
        """The invariances that a draft tries, in the order in which they would be applied."""

    def controls(self, fill: float) -> Sequence[Invariance]:
        """All that may be a control, at full strength; what comes in at edges is ``fill``."""

    def mover(self, factor: str, fill: float) -> tuple[Invariance, str] | None:
        """The transformation that moves one factor, and the drawn parameter that tells by how much; None: none does."""

    def raw(self, batch: Tensor, side: int) -> Tensor:
        """The input itself as a vector (N, D), pooled to at most ``side`` a side where it has sides."""

    def raw_again(self, rows: Tensor, side: int, smaller: int) -> Tensor:
        """Vectors of ``raw`` at ``side``, pooled on to ``smaller``."""


def proof_of(contract: Modality) -> Proof:
    """What there is to ask of samples under this contract."""
    if isinstance(contract, Audio):
        return AudioProof(contract)
    if isinstance(contract, Series):
        return SeriesProof(contract)
    assert isinstance(contract, Input)
    return ImageProof(contract)
