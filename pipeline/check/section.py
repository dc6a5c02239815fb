"""The ``check`` section of a spec: how much of what may be lost, and which findings are accepted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from pipeline.spec import Rule, Spec

TOGETHER = "together"
"""What a finding on all invariances in their order names as its invariance."""


class Accepted(Spec):
    """A finding that is known and accepted; the reason travels with the encoder."""

    finding: Literal["contradiction", "erased", "merged", "transported"]
    invariance: str
    """The kind of the invariance, or together."""
    preserved: str
    """The name in ``preserves``."""
    reason: str = Field(min_length=1)


class Check(Spec):
    """What the declaration may lose, before training is refused."""

    samples: int = Field(ge=100)
    """Pictures that are looked at, at most; up to a third of them for testing."""
    seed: int = Field(ge=0, lt=2**63)
    """Of the sample, the views and the intervals."""
    group: str | None
    """A label column whose equal values stay on one side of train and test; null: the data's own split decides."""
    words: dict[str, str]
    """Label columns in the words of the domain, for sentences; {}: their names."""
    tolerance: float = Field(ge=0, le=1)
    """Largest part of what is known of a preserved label, above chance, that may be erased or merged."""
    retained: float = Field(ge=0, le=1)
    """Least part that a probe of the pictures must still read from their views, or they leave the distribution."""
    shortcut: float = Field(gt=0, le=1)
    """Largest part of partners, above chance, that one trivial statistic may match in a batch of 256."""
    matched: float = Field(ge=0, lt=1)
    """Least part of partners, above chance, that the best cheap probe must match."""
    accept: tuple[Accepted, ...]
    """Findings that are known, each with its reason."""

    def rules(self) -> Iterator[Rule]:
        if self.matched >= self.shortcut:
            yield "matched", f"must be below shortcut ({self.shortcut:g}), or no recipe could pass both"

    def __hash__(self) -> int:
        return hash(self.model_dump_json())
