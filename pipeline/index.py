"""specs/index.yaml: what ``dvc repro`` runs. DVC reads it too, so it repeats what DVC cannot see in a spec."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

from pydantic import Field

from pipeline.spec import Fault, Spec, SpecError, read_spec

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


MEANINGS = {
    "data": "the data sets, each as NAME: {raw: PATH}",
    "specs": "the specs, each as NAME: {data: NAME, files: PATH}",
    "raw": f"the path of its raw data, or {NONE} where it is embedded",
    "files": f"the folder of its code and weights, or {NONE}",
}
"""What a missing key would say; DVC's own words for it are "Could not find 'item.files'"."""


def read_index(folder: Path) -> Index:
    """Read specs/index.yaml. Raises SpecError."""
    try:
        index: Index = read_spec(folder / "index.yaml", Index)
    except SpecError as error:
        raise SpecError(map(_explained, error.faults)) from None
    return index


def _explained(fault: Fault) -> Fault:
    """A missing key of the index, with what it must say."""
    above, _, key = fault.path.rpartition(".")
    if not fault.remedy.startswith("missing") or key not in MEANINGS:
        return fault
    meaning = "the name of its data set" if key == "data" and above else MEANINGS[key]
    return replace(fault, remedy=f"missing; write it out: {meaning}")


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
