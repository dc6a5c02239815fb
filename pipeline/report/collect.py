"""Read the stage folders of every spec in the index into plain data; what is missing or damaged is told, not raised."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pipeline.report.readers import READERS, Folder
from pipeline.report.result import Result, Status
from pipeline.report.results import Refused
from pipeline.spec import Fault, SpecError, read_yaml


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
    for stage, read in READERS.items():
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
