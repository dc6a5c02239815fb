"""What a training depends on, as one hash: exactly the parameters and files that dvc.yaml lists for it.

An unfinished run lies in a folder named by it, so that another temperature, another data set or other code never goes
on from it, and an edited probe never loses it. Neither ranks, threads nor anything else of the machine is in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from pipeline.shards import CARD
from pipeline.spec import canonical, read_yaml

ROOT = Path(__file__).resolve().parent.parent
"""Of the code, and of dvc.yaml."""
CODE = ("pipeline", "stages")
SKIPPED = {"__pycache__", ".DS_Store"}


def fingerprint(spec: Path, stage: str = "pretrain", root: Path = ROOT) -> str:
    """16 hex digits of what ``stage`` depends on for a spec file; data and user files lie in the working folder."""
    content = read_yaml(spec)
    entry = _entry(stage, root)
    keys = [key for lists in entry.get("params", []) for key in next(iter(lists.values())) or ()]
    found: dict[str, Any] = {f"parameter {key}": _value(content, key) for key in keys or content}
    for dependency in entry.get("deps", [*CODE, "work/shard/${item.data}"]):
        place = dependency.replace("${key}", spec.stem)
        for name, value in _item(spec, content).items():
            place = place.replace(f"${{item.{name}}}", value)
        path = root / place if place.split("/")[0] in CODE else Path(place)
        found |= {f"file {place}{inside}": digest for inside, digest in _digests(path)}
    return hashlib.sha256(canonical(found).encode()).hexdigest()[:16]


def _entry(stage: str, root: Path) -> dict[str, Any]:
    """The stage in dvc.yaml; nothing where the code was installed without it, and then all code and keys count."""
    file = root / "dvc.yaml"
    if not file.is_file():
        return {}
    entry = YAML(typ="safe").load(file.read_text(encoding="utf-8"))["stages"][stage]
    found: dict[str, Any] = entry.get("do", entry)
    return found


def _item(spec: Path, content: dict[str, Any]) -> dict[str, str]:
    """What the index says of the spec; a spec outside it has the data that it names, and no files."""
    index = spec.parent / "index.yaml"
    entry = (read_yaml(index).get("specs") or {}).get(spec.stem) if index.is_file() else None
    return {str(k): str(v) for k, v in (entry or {"data": content.get("data"), "files": "specs/none"}).items()}


def _value(content: Any, dotted: str) -> Any:
    for step in dotted.split("."):
        content = content.get(step) if isinstance(content, dict) else None
    return content


def _digests(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (name inside, SHA-256) of a file or of all files of a folder; sharded data is known by its card."""
    if path.is_file():
        yield "", _digest(path)
    elif (path / CARD).is_file():  # it names the hash of every shard
        yield f"/{CARD}", _digest(path / CARD)
    elif path.is_dir():
        for file in sorted(path.rglob("*")):
            inside = file.relative_to(path)
            if file.is_file() and not SKIPPED.intersection(inside.parts):
                yield f"/{inside.as_posix()}", _digest(file)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
