"""The ledger: what became of every raw file; kept + refused = seen."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from pipeline.sources import Refused


@dataclass
class Ledger:
    """What became of every raw file."""

    kept: int = 0
    refused: list[Refused] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """As it is written: seen = kept + refused, the refused by reason and one by one, and notes."""
        return {
            "seen": self.kept + len(self.refused),
            "kept": self.kept,
            "refused": dict(sorted(Counter(file.reason for file in self.refused).items())),
            "files": [{"name": file.name, "reason": file.reason, "detail": file.detail} for file in self.refused],
            "notes": self.notes,
        }

    def summary(self) -> str:
        """One line: how many were kept and what was refused."""
        reasons = Counter(file.reason for file in self.refused)
        told = "".join(f"; {count} refused: {reason}" for reason, count in reasons.most_common())
        return f"kept {self.kept} of {self.kept + len(self.refused)}{told}" + "".join(f"; {n}" for n in self.notes)
