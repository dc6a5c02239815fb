"""What every source hands to sharding: one record a raw picture, or the reason why a raw file is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

ColumnKind = Literal["class", "number"]
Split = Literal["train", "test"]


@dataclass(frozen=True)
class Record:
    """One raw picture: its bytes (or the file that holds them), its name in the source, its labels, and its split where
    the source has one.

    A label of a ``class`` column is the class's name (str), of a ``number`` column a finite float; one that is missing
    is not in ``labels``.
    """

    name: str
    content: bytes | Path
    labels: Mapping[str, str | float] = field(default_factory=dict)
    split: Split | None = None
    array: bool = False
    """whether the bytes are those of an .npy of one picture, (H, W, C) of any type, instead of an encoded file's"""


@dataclass(frozen=True)
class Refused:
    """One raw file that is no record: ``reason`` to be counted by, ``detail`` to be read."""

    name: str
    reason: str
    detail: str = ""
    split: Split | None = None
    """of a record that was refused later on, where the source has one"""


@dataclass(frozen=True)
class Note:
    """Something a user should know about the source that is no file of its own."""

    text: str
    damage: bool = True
    """whether data may have been lost"""


Item = Record | Refused | Note
