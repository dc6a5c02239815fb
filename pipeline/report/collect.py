"""Read the stage folders of every spec in the index into plain data; what is missing or damaged is told, not raised."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import ValidationError

from pipeline.report.results import (
    Audited,
    Bundle,
    Cost,
    DataCard,
    Findings,
    Gate,
    Judged,
    Ledger,
    Part,
    Probed,
    Refused,
    Summary,
)
from pipeline.spec import Fault, SpecError, read_yaml

STAGES = ("shard", "check", "pretrain", "probe", "audit", "judge", "export")
"""The stages that the report reads, in the order of the pipeline."""
PNG = b"\x89PNG\r\n\x1a\n"
Read = TypeVar("Read", bound=Part)


@dataclass(frozen=True)
class Status:
    """How far one stage came, in words: ``reason`` is empty where it is done."""

    state: Literal["done", "refused", "missing", "damaged"]
    by: str = ""
    """The stage that refused."""
    reason: str = ""


@dataclass
class Result:
    """Everything that is known of one spec. What a stage did not write is None."""

    name: str
    data: str
    text: str
    """The spec's YAML as it is written."""
    content: dict[str, Any]
    """The same, parsed; empty where it cannot be."""
    fault: str
    """What is wrong with the YAML file, or nothing."""
    stages: dict[str, Status] = field(default_factory=dict)
    card: DataCard | None = None
    ledger: Ledger | None = None
    findings: Findings | None = None
    seen: dict[str, bytes] = field(default_factory=dict)
    """PNG: a picture a finding, by its file name, and kept-LABEL.png: what each invariance leaves of a label."""
    cost: Cost | None = None
    check_gate: Gate | None = None
    summary: Summary | None = None
    curve: dict[str, list[float]] | None = None
    """Column name to its values, a value a step."""
    curve_text: str = ""
    views: bytes = b""
    """PNG: one column a sample, its two views one above the other."""
    probed: Probed | None = None
    audited: Audited | None = None
    judged: Judged | None = None
    gate: Gate | None = None
    bundle: Bundle | None = None


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


def collect(specs: Path, work: Path) -> list[Result]:
    """Read every spec of ``specs``/index.yaml, in its order.

    Raises:
        SpecError: the index cannot be read, is no mapping of specs, or a name is no plain file name.
    """
    index = specs / "index.yaml"
    entries = read_yaml(index).get("specs")
    if not isinstance(entries, dict):
        raise SpecError([Fault(str(index), "specs", "", "missing; must be a mapping of spec names")])
    results = []
    for name, entry in entries.items():
        if not isinstance(name, str) or name in ("", "..") or Path(name).name != name or "\0" in name:
            raise SpecError([Fault(str(index), "specs", repr(name), "must be the name of a file in specs, no path")])
        data = entry.get("data") if isinstance(entry, dict) else None
        results.append(_collect(name, str(data or ""), specs, work))
    return results


def _collect(name: str, data: str, specs: Path, work: Path) -> Result:
    path, fault, content = specs / f"{name}.yaml", "", {}
    try:
        content = read_yaml(path)
    except SpecError as error:
        fault = "; ".join(f"{each.path}: {each.remedy}" if each.path else each.remedy for each in error.faults)
    text = path.read_bytes().decode("utf-8", errors="replace") if path.is_file() else ""
    found = Result(name, data or str(content.get("data", "")), text, content, fault)
    for stage, read in _READERS.items():
        folder = Folder(work / stage / (found.data if stage == "shard" else name))
        found.stages[stage] = _status(folder, found, read)
    return found


def _status(folder: Folder, found: Result, read: Callable[[Folder, Result], None]) -> Status:
    if not folder.path.is_dir():
        return Status("missing", reason="it has not run")
    if (folder.path / "refused.json").is_file():
        refused = folder.json("refused.json", Refused)
        if refused is not None:
            return Status("refused", by=refused.stage, reason=refused.reason)
    else:
        read(folder, found)
    return Status("damaged", reason="; ".join(folder.problems)) if folder.problems else Status("done")


def _shard(folder: Folder, found: Result) -> None:
    found.card = folder.json("index.json", DataCard)
    found.ledger = folder.json("ledger.json", Ledger)


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


def _judge(folder: Folder, found: Result) -> None:
    found.judged = folder.json("verdict.json", Judged)
    found.gate = folder.json("gate.json", Gate)


def _export(folder: Folder, found: Result) -> None:
    found.bundle = folder.json("card.json", Bundle)


_READERS: dict[str, Callable[[Folder, Result], None]] = dict(
    zip(STAGES, (_shard, _check, _pretrain, _probe, _audit, _judge, _export), strict=True)
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
