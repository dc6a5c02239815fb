"""Which source files a stage can reach by imports, and dvc.yaml's list of them.

``python tests/closure.py`` rewrites the code dependencies of every stage in dvc.yaml (data dependencies and comments
stay); the test beside it holds them equal.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parent.parent
CODE = ("pipeline", "stages")


def imported(file: Path) -> Iterator[str]:
    """Yield the absolute name of every module or member that a file imports, at any depth in it."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{file}: imports are absolute here"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def files_of(name: str) -> Iterator[Path]:
    """Yield the files that are executed when ``name`` is imported: every package on the way, and the module."""
    parts = name.split(".")
    if parts[0] in CODE:
        for count in range(1, len(parts) + 1):
            base = ROOT.joinpath(*parts[:count])
            for file in (base / "__init__.py", base.with_suffix(".py")):
                if file.is_file():
                    yield file


def closure(stage: str) -> set[Path]:
    """Every project file that ``python -m stages.STAGE`` can execute."""
    todo = list(files_of(f"stages.{stage}"))
    seen = set(todo)
    while todo:
        for name in imported(todo.pop()):
            for file in files_of(name):
                if file not in seen:
                    seen.add(file)
                    todo.append(file)
    return seen


def code_dependencies(stage: str) -> list[str]:
    """The closure as dvc.yaml lists it: a family's folder where all of it is reached, else its single files."""
    reached = closure(stage)
    listed: list[Path] = []
    for folder in {file.parent for file in reached}:
        inside = {file for file in reached if file.parent == folder}
        whole = folder.parent != ROOT and inside == set(folder.glob("*.py"))
        listed += [folder] if whole else sorted(inside)
    return sorted(str(path.relative_to(ROOT)) for path in listed)


def is_code(dependency: Any) -> bool:
    """Whether an entry of ``deps`` names source code."""
    return isinstance(dependency, str) and dependency.split("/")[0] in CODE


def stages_of(content: Any) -> Iterator[tuple[str, Any]]:
    """Yield (name, body) of every stage of dvc.yaml; a foreach's body is what it repeats."""
    for name, entry in content["stages"].items():
        yield name, entry.get("do", entry)


def rewrite() -> None:
    """Write the code dependencies of every stage into dvc.yaml."""
    yaml = YAML()
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    file = ROOT / "dvc.yaml"
    content = yaml.load(file.read_text(encoding="utf-8"))
    for name, body in stages_of(content):
        data = [dependency for dependency in body["deps"] if not is_code(dependency)]
        body["deps"] = data + code_dependencies(name)
    with file.open("w", encoding="utf-8") as stream:
        yaml.dump(content, stream)


if __name__ == "__main__":
    rewrite()
