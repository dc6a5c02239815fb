"""Nothing that is read can execute code: no pickle is opened, no shell started, no text run but the user's own code.

Held on the source of every module; what hostile files do is in test_hostile, tests/sources and tests/images.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from closure import ROOT

MODULES = sorted([*(ROOT / "pipeline").rglob("*.py"), *(ROOT / "stages").glob("*.py")])
PICKLES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
RUN = {"eval", "exec", "compile", "__import__"}
USERS = ROOT / "pipeline" / "views" / "code_loading.py"
"""Runs the file of an invariance of kind code, which the user names and whose hash is part of the space."""


def faults(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
            yield from (f"import {name}" for name in names if name.split(".")[0] in PICKLES)
        elif isinstance(node, ast.Call):
            name, given = ast.unparse(node.func), {each.arg: ast.unparse(each.value) for each in node.keywords}
            if name in RUN or name in ("os.system", "os.popen"):
                yield name
            if name in ("torch.load", "torch.hub.load") and given.get("weights_only") != "True":
                yield f"{name} without weights_only"
            if given.get("allow_pickle", "False") != "False" or given.get("shell", "False") != "False":
                yield f"{name} with {given}"
            if name.split(".")[-1] == "YAML" and given.get("typ", "'rt'") not in ("'safe'", "'rt'"):
                yield f"{name} with {given}"


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_module_executes_what_it_reads(file: Path) -> None:
    found = set(faults(ast.parse(file.read_text(encoding="utf-8"))))
    assert found == ({"compile", "exec"} if file == USERS else set())


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from joblib import load",
        "torch.load(path)",
        "np.load(path, allow_pickle=True)",
        "subprocess.run(text, shell=True)",
        "os.system(text)",
        "eval(text)",
        "YAML(typ='unsafe')",
    ],
)
def test_the_search_finds_what_it_is_for(line: str) -> None:
    assert len(list(faults(ast.parse(line)))) == 1
