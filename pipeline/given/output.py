"""Write the audit of vectors of any origin into a folder of the user's choice, whole or not at all."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.curation.writing import write_curation
from pipeline.folders import replaced
from pipeline.given.measures import curated
from pipeline.given.rows import Given
from pipeline.rounding import rounded
from pipeline.sources.names import one_line
from pipeline.spec import Refusal

OURS = {"measures.json", "geometry.json", "figures.json", "drift.json", "ledger.json", "about.json", "curation"}
OURS |= {"embeddings.npy", "view0.npy", "view1.npy", "rows.csv"}
"""What may stand in a folder that is written anew."""


def writable(output: Path) -> None:
    """Hold that a folder may be written: it is not there, empty, or holds an earlier audit alone. Raises Refusal."""
    if output.exists() and not output.is_dir():
        raise Refusal(f"--output {output}: is a file; name a folder")
    foreign = sorted(entry.name for entry in output.iterdir() if entry.name not in OURS) if output.is_dir() else []
    if foreign:
        raise Refusal(f"--output {output}: holds other files, as {foreign[0]}; name a new folder")


@contextmanager
def written(output: Path) -> Iterator[Path]:
    """Yield an empty folder that becomes ``output`` when the block ends, and vanishes when it fails."""
    writable(output)
    with replaced(output) as partial:
        yield partial


def write_audit(folder: Path, space: Given, content: dict[str, Any], keep_vectors: bool) -> dict[str, int]:
    """Write everything that was found.

    Args:
        content: name of a JSON file -> what it holds.
        keep_vectors: whether the vectors are written too, with a table of their rows: where they were made here.

    Returns:
        The entries of each curation list.
    """
    for name, found in content.items():
        write_json(folder / name, rounded(found))
    write_json(folder / "ledger.json", space.ledger.plain())
    if keep_vectors:
        np.save(folder / "embeddings.npy", space.rows)
        for number, rows in enumerate(space.views or ()):
            np.save(folder / f"view{number}.npy", rows)
        _write_rows(folder / "rows.csv", space)
    shown, look = curated(space), space.look
    return write_curation(
        folder,
        shown,
        None if look is None else lambda _, row: look(row),
        None if space.names is None else lambda _, row: space.called(row),
    )


def write_json(path: Path, content: Any) -> None:
    """Write plain data as indented JSON; NaN and infinity are refused."""
    text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def _write_rows(file: Path, space: Given) -> None:
    """One line a vector: its number, name and labels."""
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["row", "name", *space.columns])
        for row in range(len(space.rows)):
            labels = [
                column.classes[int(space.labels[name][row])] if column.kind == "class" else space.labels[name][row]
                for name, column in space.columns.items()
            ]
            writer.writerow([row, one_line(space.called(row)), *labels])
