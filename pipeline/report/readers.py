"""The folder of each stage, file by file, into a result; what is wrong with a file is kept as a problem, not raised."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from pipeline.report.first_batch import class_codes
from pipeline.report.result import STAGES, Result
from pipeline.report.results import (
    Audited,
    Bundle,
    Cost,
    DataCard,
    Findings,
    Gate,
    Judged,
    Ledger,
    Lineage,
    Part,
    Probed,
    Summary,
)
from pipeline.report.results_audit import Achieved, Curation, Geometry
from pipeline.report.results_gallery import Gallery

CURATED = ("worst_false_negatives", "suspicious_labels", "near_duplicates", "outliers")
"""The audit's curation lists."""
PNG = b"\x89PNG\r\n\x1a\n"
Read = TypeVar("Read", bound=Part)


class Folder:
    """One stage's output folder, read file by file; ``problems`` keeps what was wrong."""

    def __init__(self, path: Path):
        self.path = path
        self.problems: list[str] = []

    def bytes(self, name: str) -> bytes:
        """A file's content; empty, and a problem, where it is not there."""
        try:
            return (self.path / name).read_bytes()
        except OSError as error:
            self.problems.append(f"{name}: {(error.strerror or 'cannot be read').lower()}")
            return b""

    def json(self, name: str, model: type[Read], wrap: Callable[[str], str] = str) -> Read | None:
        """A JSON file as ``model``; None, and a problem, where it is missing or of another form."""
        content = self.bytes(name)
        if self.problems and not content:
            return None
        try:
            return model.model_validate_json(wrap(content.decode("utf-8")))
        except UnicodeDecodeError:
            self.problems.append(f"{name}: not text")
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            self.problems.append(f"{name}: {where + ': ' if where else ''}{first['msg'].lower()}")
        return None


def _shard(folder: Folder, found: Result) -> None:
    found.card = folder.json("index.json", DataCard)
    found.ledger = folder.json("ledger.json", Ledger)
    try:
        found.codes = class_codes(folder.path / "index.npz")
    except ValueError as error:
        folder.problems.append(f"index.npz: {error}")


def _check(folder: Folder, found: Result) -> None:
    found.findings = folder.json("findings.json", Findings, lambda text: f'{{"rows": {text}}}')
    named = [each.picture for each in found.findings.rows if each.picture] if found.findings is not None else []
    for name in [*named, *sorted(path.name for path in folder.path.glob("kept-*.png"))]:
        picture = folder.bytes(name) if Path(name).name == name else b""
        if picture.startswith(PNG):
            found.seen[name] = picture
        elif picture:
            folder.problems.append(f"{name}: no PNG")
    found.cost = folder.json("cost.json", Cost)
    found.check_gate = folder.json("gate.json", Gate)


def _pretrain(folder: Folder, found: Result) -> None:
    found.summary = folder.json("summary.json", Summary)
    found.views = folder.bytes("views.png")
    if found.views and not found.views.startswith(PNG):
        folder.problems.append("views.png: no PNG")
        found.views = b""
    for path in sorted(folder.path.glob("view-[0-9][0-9]-*.png")):
        picture = folder.bytes(path.name)
        if picture.startswith(PNG):
            found.roles[path.stem[8:].replace("_", " ")] = picture
        elif picture:
            folder.problems.append(f"{path.name}: no PNG")
    if (folder.path / "lineage.json").is_file():
        found.lineage = folder.json("lineage.json", Lineage)
    text = folder.bytes("curve.csv").decode("utf-8", errors="replace")
    if text:
        found.curve = _columns(text)
        if found.curve is None:
            folder.problems.append("curve.csv: not a table of numbers")
        else:
            found.curve_text = text


def _probe(folder: Folder, found: Result) -> None:
    found.probed = folder.json("figures.json", Probed)


def _audit(folder: Folder, found: Result) -> None:
    found.audited = folder.json("measures.json", Audited)
    if (folder.path / "geometry.json").is_file():
        found.geometry = folder.json("geometry.json", Geometry)
    if (folder.path / "achieved.json").is_file():
        found.achieved = folder.json("achieved.json", Achieved)
    if (folder.path / "curation").is_dir():
        found.curation = folder.json("curation/lists.json", Curation, lambda text: f'{{"lists": {text}}}')


def _gallery(folder: Folder, found: Result) -> None:
    gallery = folder.json("gallery.json", Gallery)
    sheets = {} if gallery is None else {"map": gallery.sheets.map, "pictures": gallery.sheets.pictures}
    for name, described in sheets.items():
        if described.count:
            sheet = folder.bytes(f"{name}.webp")
            if sheet[:4] + sheet[8:12] == b"RIFFWEBP":
                found.sheets[name] = sheet
            elif sheet:
                folder.problems.append(f"{name}.webp: no WebP")
    found.gallery = gallery if not folder.problems else None


def _judge(folder: Folder, found: Result) -> None:
    found.judged = folder.json("verdict.json", Judged)
    found.gate = folder.json("gate.json", Gate)


def _export(folder: Folder, found: Result) -> None:
    found.bundle = folder.json("card.json", Bundle)


READERS: dict[str, Callable[[Folder, Result], None]] = dict(
    zip(STAGES, (_shard, _check, _pretrain, _probe, _audit, _gallery, _judge, _export), strict=True)
)


def _columns(text: str) -> dict[str, list[float]] | None:
    """A CSV of finite numbers as columns; None where it is anything else or lacks step or loss.

    A column without any value (the temperature of a loss that has none) is left out.
    """
    names, *lines = list(csv.reader(io.StringIO(text)))
    if any(len(line) != len(names) for line in lines):
        return None
    held = [position for position in range(len(names)) if any(line[position] for line in lines)]
    names = [names[position] for position in held]
    try:
        rows = [[float(line[position]) for position in held] for line in lines]
    except ValueError:
        return None
    if not {"step", "loss"} <= set(names) or not rows or any(len(row) != len(names) for row in rows):
        return None
    if not all(math.isfinite(value) for row in rows for value in row):
        return None
    return {name: [row[position] for row in rows] for position, name in enumerate(names)}
