"""The ledger: what became of every raw file; kept + refused = seen.

A reason alone is seldom the cause of a refusal: where one class is left, the only file of the other may have been
refused. So whatever ends sharding once files were seen names the first that were refused, and carries the ledger.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
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
    odd: dict[str, tuple[int, str]] = field(default_factory=dict)
    """what was odd about kept samples: how many, and the first one's name; becomes notes"""
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

    def left(self, file: Path, refusal: str) -> str:
        """Write the ledger of refused data to a file; what to add to the line, nothing where no file was refused."""
        if not self.refused:
            return ""
        text = json.dumps({"refusal": refusal, **self.plain()}, indent=1, ensure_ascii=False)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
        return f"; {file} names all"

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


class Unsharded(Refusal):
    """A data set that cannot be used, with what became of its files until that was known."""

    def __init__(self, text: str, ledger: Ledger):
        self.ledger = ledger
        super().__init__(text)

    def left(self, file: Path) -> str:
        """The line, the ledger written to a file."""
        return f"{self}{self.ledger.left(file, str(self))}"


@contextmanager
def accounted(ledger: Ledger) -> Iterator[None]:
    """Add to whatever is refused inside how many files were refused before, and the first of them.

    Raises:
        Unsharded: in the place of any Refusal.
    """
    try:
        yield
    except Refusal as refusal:
        text, first = str(refusal), ledger.first()
        if ledger.refused and not (first and first in text):
            text += f" ({ledger.summary()}{f': {first}' if first else ''})"
        raise Unsharded(text, ledger) from None
