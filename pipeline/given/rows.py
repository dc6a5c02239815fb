"""Vectors of any origin with what is known of their rows, before they are measured: broken rows go to the ledger.

Legend: N rows, D dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.embeddings import Column
from pipeline.images import Pixels
from pipeline.ledger import Ledger
from pipeline.sources import ColumnKind, Refused
from pipeline.spec import Refusal

Rows = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int64]
BLOCK = 4096


@dataclass(frozen=True)
class Given:
    """Rows that can be measured."""

    name: str
    rows: Rows
    """(N, D)"""
    views: tuple[Rows, Rows] | None
    """two views of each row's sample (N, D)"""
    columns: dict[str, Column]
    """label columns"""
    labels: dict[str, npt.NDArray[Any]]
    """of each column class codes (N,) int64, or numbers (N,) float64"""
    names: Sequence[str] | None
    """of the rows, where they have any"""
    train: npt.NDArray[np.bool_] | None
    """rows that probes are trained on (N,); None: they are drawn"""
    ledger: Ledger
    told: list[str] = field(default_factory=list)
    look: Callable[[int], Pixels] | None = None
    """row → its picture (C, H, W) uint8"""

    def called(self, row: int) -> str:
        """What a row is called."""
        return str(row) if self.names is None else self.names[row]


def given(
    name: str,
    rows: Rows,
    views: tuple[Rows, Rows] | None,
    texts: Mapping[str, tuple[ColumnKind, Sequence[str]]],
    names: Sequence[str] | None,
    train: npt.NDArray[np.bool_] | None,
    ledger: Ledger,
    told: list[str],
    look: Callable[[int], Pixels] | None = None,
) -> Given:
    """Take rows that can be measured, and tell the ledger of all others.

    Args:
        texts: of each label column its kind, and the label of each row; an empty one is missing.

    Raises:
        Refusal: no row is left.
    """
    reasons: dict[int, tuple[str, str]] = {}
    for where, array in (("", rows), *((f"view {place + 1}", view) for place, view in enumerate(views or ()))):
        for row in _broken(array):
            reasons.setdefault(row, ("not finite", f"{where} holds NaN or infinity".strip()))
    values = {column: _values(kind, list(labels)) for column, (kind, labels) in texts.items()}
    for column, (_, known, _) in values.items():
        for row in np.flatnonzero(~known).tolist():
            reasons.setdefault(row, ("no label", f"nothing usable in column '{column}'"))
    kept = np.ones(len(rows), bool)
    kept[list(reasons)] = False
    for row in sorted(reasons):
        ledger.refused.append(Refused(str(row) if names is None else names[row], *reasons[row]))
    ledger.kept = int(kept.sum())
    if not kept.any():
        raise Refusal(f"{name}: no row can be measured ({ledger.first()})")
    places = np.flatnonzero(kept)

    def taken(array: Rows) -> Rows:
        return array if kept.all() else array[places]

    return Given(
        name,
        taken(rows),
        None if views is None else (taken(views[0]), taken(views[1])),
        {column: described for column, (described, _, _) in values.items()},
        {column: array[places] for column, (_, _, array) in values.items()},
        [str(place) if names is None else names[place] for place in places.tolist()]
        if names is not None or not kept.all()
        else None,
        None if train is None else train[places],
        ledger,
        told,
        None if look is None else lambda row: look(int(places[row])),
    )


def _broken(array: Rows) -> list[int]:
    """Rows that hold NaN or infinity."""
    found: list[int] = []
    for start in range(0, len(array), BLOCK):
        finite = np.isfinite(array[start : start + BLOCK]).all(axis=1)
        found += (start + np.flatnonzero(~finite)).tolist()
    return found


def _values(kind: ColumnKind, texts: list[str]) -> tuple[Column, npt.NDArray[np.bool_], npt.NDArray[Any]]:
    """A column, which of its labels are known, and its codes or numbers (an unknown one has any)."""
    if kind == "number":
        numbers = np.array([float(text) if text else np.nan for text in texts])
        return Column(kind="number"), np.isfinite(numbers), numbers
    classes = tuple(sorted({text for text in texts if text}))
    place = {text: code for code, text in enumerate(classes)}
    codes = np.array([place.get(text, 0) for text in texts], dtype=np.int64)
    return Column(kind="class", classes=classes), np.array([bool(text) for text in texts]), codes
