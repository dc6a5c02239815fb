"""specs/index.yaml: what ``dvc repro`` runs. DVC reads it too, so it repeats what DVC cannot see in a spec."""

from __future__ import annotations

import os
import stat
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


def unhashable(raw: Path) -> str | None:
    """What DVC cannot hash under a raw path (a link to nowhere ends it, a pipe blocks it), or None."""
    for folder, below, files in os.walk(raw):
        below.sort()
        for name in sorted(files):
            path = Path(folder, name)
            try:
                mode = path.stat().st_mode
            except OSError as error:
                return f"{path} is a link to nowhere" if path.is_symlink() else f"{path}: {error.strerror}"
            if not stat.S_ISREG(mode):
                return f"{path} is a device or pipe"
            if not os.access(path, os.R_OK):
                return f"{path} may not be read by this user"
    return None
