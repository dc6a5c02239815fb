"""The ledger: what became of every raw file; kept + refused = seen."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from pipeline.data import LedgerRules
from pipeline.sources import Refused
from pipeline.sources.names import HIDDEN
from pipeline.spec import Refusal

NAMED = 3
"""refused files that an error names"""


@dataclass
class Ledger:
    """What became of every raw file."""

    kept: int = 0
    refused: list[Refused] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    """the notes that tell of lost data"""
    repeated: dict[str, Any] = field(default_factory=dict)
    """exact copies; empty where there are none"""
    copies: str = ""
    """the same in a few words"""

    def plain(self) -> dict[str, Any]:
        """As it is written: seen = kept + refused, the refused by reason and one by one, copies and notes."""
        return {
            "seen": self.kept + len(self.refused),
            "kept": self.kept,
            "refused": dict(sorted(Counter(file.reason for file in self.refused).items())),
            "files": [
                {"name": file.name, "reason": file.reason, "detail": file.detail, "split": file.split}
                for file in self.refused
            ],
            "repeated": self.repeated,
            "notes": self.notes,
        }

    def summary(self) -> str:
        """One line: how many were kept and what was refused."""
        reasons = Counter(file.reason for file in self.refused)
        told = "".join(f"; {count} refused: {reason}" for reason, count in reasons.most_common())
        return f"kept {self.kept} of {self.kept + len(self.refused)}{told}"

    def first(self) -> str:
        """The first refused files, each with its reason, on one line."""
        counted = self.counted()
        named = [f"{file.name} ({file.reason}{f': {file.detail}' if file.detail else ''})" for file in counted[:NAMED]]
        more = len(counted) - len(named)
        return ", ".join(named) + (f" and {more} more" if more > 0 else "")

    def counted(self) -> list[Refused]:
        """The refused files but hidden and system ones, which are no one's pictures."""
        return [file for file in self.refused if file.reason != HIDDEN]

    def held(self, rules: LedgerRules, name: str) -> None:
        """Hold what was refused to the data spec's rules. Raises Refusal."""
        refused = len(self.counted())
        seen = self.kept + refused
        if rules.strict and refused:
            raise Refusal(
                f"data set {name}: {refused} of {seen} files refused, and ledger.strict allows none: {self.first()}; "
                f"mend or remove them, or set strict: false"
            )
        if rules.strict and self.damage:
            raise Refusal(
                f"data set {name}: {self.damage[0]}; ledger.strict allows no damage; mend it, or set strict: false"
            )
        if rules.budget is not None and refused > rules.budget * seen:
            raise Refusal(
                f"data set {name}: {refused} of {seen} files refused, above ledger.budget = {rules.budget:g}: "
                f"{self.first()}; mend or remove them, or raise the budget"
            )
