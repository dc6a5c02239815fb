"""Where raw pictures come from. A source is a frozen spec with ``columns()`` (its label columns) and ``count()`` (its
pictures), known without data; ``records(raw)`` (what it holds, file by file); ``embedded`` (needs no raw path) and
``splits_itself``.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipeline.sources.archive import Archive
from pipeline.sources.arrays import Arrays
from pipeline.sources.digits import Digits
from pipeline.sources.episodes import Episodes
from pipeline.sources.folder import Folder
from pipeline.sources.manifest import Manifest
from pipeline.sources.record import ColumnKind, Item, Note, Record, Refused
from pipeline.sources.shapes import Shapes
from pipeline.sources.torch_sets import TorchvisionSet
from pipeline.sources.webdataset import WebDataset

Source = Annotated[
    Digits | Shapes | Folder | Archive | WebDataset | Arrays | Episodes | TorchvisionSet, Field(discriminator="kind")
]

__all__ = [
    "Archive",
    "Arrays",
    "ColumnKind",
    "Digits",
    "Episodes",
    "Folder",
    "Item",
    "Manifest",
    "Note",
    "Record",
    "Refused",
    "Shapes",
    "Source",
    "TorchvisionSet",
    "WebDataset",
]
