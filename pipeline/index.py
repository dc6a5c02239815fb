"""specs/index.yaml: what ``dvc repro`` runs. DVC reads it too, so it repeats what DVC cannot see in a spec."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from pipeline.spec import Spec, read_spec

NONE = "specs/none"
"""Stands in the index for "no raw data" and "no user files": a path that is always there."""


class DataEntry(Spec):
    """What the index says of a data set."""

    raw: str = Field(min_length=1)
    """The raw data's path: a dependency of sharding; specs/none for embedded data."""


class SpecEntry(Spec):
    """What the index says of a spec."""

    data: str
    """The same name as in the spec itself (DVC cannot read it there)."""
    files: str = Field(min_length=1)
    """The folder of user files (code, weights): a dependency of training; specs/none for none."""


class Index(Spec):
    """What ``dvc repro`` runs."""

    data: dict[str, DataEntry]
    specs: dict[str, SpecEntry]


def read_index(folder: Path) -> Index:
    """Read specs/index.yaml. Raises SpecError."""
    index: Index = read_spec(folder / "index.yaml", Index)
    return index
