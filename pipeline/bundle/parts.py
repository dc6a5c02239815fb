"""Parts of a long run on disk: vectors, names and refusals of some files, each part whole or not there at all.

A part carries a key of the files that it was made of, so that a resumed run makes anew only what is missing or changed.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.bundle.encoder import BATCH, Bundle
from pipeline.bundle.input import Part
from pipeline.bundle.vectors import Layer, Rows
from pipeline.images import Pixels
from pipeline.intake import Lost
from pipeline.ledger import Ledger
from pipeline.sources import Note, Refused


def settled(partial: Path, about: dict[str, str]) -> None:
    """Leave in ``partial`` only what an earlier run with the same bundle and layer wrote."""
    file = partial / "about.json"
    try:
        if json.loads(file.read_text(encoding="utf-8")) == about:
            return
    except (OSError, ValueError):
        pass
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    file.write_text(json.dumps(about), encoding="utf-8")


def part_file(partial: Path, number: int) -> Path:
    """The file of a part."""
    return partial / f"{number:06d}.npz"


def described_part(file: Path) -> Any:
    """Names, refusals, notes and key of a part."""
    with np.load(file, allow_pickle=False) as content:
        return json.loads(content["about"].tobytes())


def values_of(file: Path) -> Rows:
    """The vectors of a part (n, D)."""
    with np.load(file, allow_pickle=False) as content:
        values: Rows = content["values"]
    return values


def is_there(partial: Path, part: Part) -> bool:
    """Whether an earlier run wrote this part, of the same files."""
    try:
        return bool(described_part(part_file(partial, part.number))["key"] == part.key)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return False


def write_part(bundle: Bundle, partial: Path, part: Part, found: list[Pixels | Lost | None], layer: Layer) -> None:
    """Embed one part and write it, whole or not at all."""
    names: list[str] = []
    canvases: list[Pixels] = []
    refused: list[Refused] = []
    notes: list[tuple[str, bool]] = []
    for item, outcome in zip(part.items, found, strict=True):
        if isinstance(item, Note):
            notes.append((item.text, item.damage))
        elif isinstance(item, Refused):
            refused.append(item)
        elif isinstance(outcome, Lost):
            refused.append(Refused(item.name, outcome.reason, outcome.detail))
        elif outcome is not None:
            names.append(item.name)
            canvases.append(outcome)
    starts = range(0, len(canvases), BATCH)
    rows: list[Rows] = [bundle.encode(canvases[start : start + BATCH], layer) for start in starts]
    values = np.concatenate(rows) if rows else np.empty((0, bundle.dim(layer)), np.float32)
    plain = [(each.name, each.reason, each.detail) for each in refused]
    about = json.dumps({"key": part.key, "names": names, "refused": plain, "notes": notes})
    file = part_file(partial, part.number)
    aside = file.with_suffix(".tmp.npz")
    np.savez(aside, values=values, about=np.frombuffer(about.encode(), np.uint8))
    aside.rename(file)


def accounted(files: list[Path], ledger: Ledger) -> int:
    """Fill the ledger from the parts; the number of vectors."""
    for file in files:
        described = described_part(file)
        ledger.kept += len(described["names"])
        ledger.refused += [Refused(*each) for each in described["refused"]]
        ledger.notes += [text for text, _ in described["notes"]]
        ledger.damage += [text for text, damage in described["notes"] if damage]
    return ledger.kept
