"""A clean repository, from specs to bundles, by DVC: what an edit reruns, and what it does not."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ruamel.yaml import YAML
from small import ROOT, whole

from pipeline.bundle import load
from pipeline.shards import Shards

pytestmark = pytest.mark.slow

CHANGES: dict[str, Any] = {
    "training__encoder": {"kind": "small", "widths": [8, 16], "strides": [2, 2], "groups": 4},
    "training__epochs": 2,
    "training__schedule": {"kind": "cosine", "warmup_epochs": 1},
    "check__samples": 400,
    "probe__few_labels": None,
    "audit__samples": 100,
    "audit__thresholds": [{"measure": "effective_rank.h", "at_least": 1.0}],
}
CODE = {"kind": "code", "file": "mine/vignette.py", "name": "Vignette", "arguments": {"amount": 0.2}}
ONE: dict[str, Any] = {
    **CHANGES,
    "space__invariances": [{"kind": "shift", "pixels": 1.5}, {**CODE, "removes": ["brightness"]}],
}
"""Spec one, which has code of its own; spec two is CHANGES."""


class Repository:
    """A git and DVC repository that holds copies of what a clone has."""

    def __init__(self, root: Path):
        self.root = root
        ignored = shutil.ignore_patterns("__pycache__")
        for name in ("pipeline", "stages", "specs"):
            shutil.copytree(ROOT / name, root / name, ignore=ignored)
        for name in ("dvc.yaml", ".dvcignore", ".gitignore"):
            shutil.copy(ROOT / name, root / name)
        (root / "mine").mkdir()
        shutil.copy(ROOT / "specs" / "examples" / "code" / "vignette.py", root / "mine")
        self.write("one", whole(**ONE))
        self.write("two", whole(**CHANGES, training__seed=1))
        for name in ("digits", "shapes"):
            (root / "specs" / f"{name}.yaml").unlink()
        self.dump(
            root / "specs" / "index.yaml",
            {
                "data": {"digits": {"raw": "specs/none"}},
                "specs": {
                    "one": {"data": "digits", "files": "mine"},
                    "two": {"data": "digits", "files": "specs/none"},
                },
            },
        )
        self.git("init", "--quiet")
        self.dvc("init", "--quiet")
        self.dvc("config", "core.analytics", "false")
        self.commit()

    def dump(self, file: Path, content: dict[str, Any]) -> None:
        with file.open("w", encoding="utf-8") as stream:
            YAML(typ="safe").dump(content, stream)

    def write(self, name: str, content: dict[str, Any]) -> None:
        self.dump(self.root / "specs" / f"{name}.yaml", content)

    def run(self, *command: str) -> str:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "LATENT_"))},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "LATENT_DEVICE": "cpu",
            "LATENT_PROCESSES": "1",
            "DVC_NO_ANALYTICS": "1",
            "DVC_SITE_CACHE_DIR": str(self.root.with_name("dvc-site")),
        }
        done = subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def git(self, *arguments: str) -> str:
        return self.run("git", "-c", "user.name=test", "-c", "user.email=test@example.org", *arguments)

    def dvc(self, *arguments: str) -> str:
        return self.run(sys.executable, "-m", "dvc", *arguments)

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "state")

    def repro(self, *arguments: str) -> set[str]:
        """What `dvc repro` runs."""
        return ran(self.dvc("repro", *arguments))

    def would_run(self, **changes: Any) -> set[str]:
        """What an edit of spec one would run first, by itself; the spec is put back."""
        self.write("one", whole(**{**ONE, **changes}))
        stages = self.repro("--dry")
        self.write("one", whole(**ONE))
        return stages


def ran(output: str) -> set[str]:
    return set(re.findall(r"Running stage '([^']+)'", output))


def test_from_specs_to_bundles_and_what_an_edit_reruns(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "clone")
    root = repository.root
    chain = ("check", "pretrain", "embed", "probe", "audit", "gallery", "judge", "export")

    everything = {"validate", "shard@digits", "verdict", "report"}
    assert repository.repro() == everything | {f"{stage}@{name}" for stage in chain for name in ("one", "two")}
    assert repository.repro() == set()
    repository.commit()

    # what left is what was embedded
    images = Shards(root / "work" / "shard" / "digits").images("test")
    for name in ("one", "two"):
        embedded = np.load(root / "work" / "embed" / name / "test.h.npy")
        opened = load(root / "work" / "export" / name)
        np.testing.assert_array_equal(opened.embed(list(images.transpose(0, 2, 3, 1))), embedded)
    assert json.loads((root / "work/report/metrics.json").read_text()).keys() == {"one", "two"}
    assert (root / "work" / "report.html").stat().st_size > 10_000

    # which edits reach training
    assert "pretrain@one" in repository.would_run(space__objective={"kind": "decoupled"})
    assert "pretrain@one" in repository.would_run(space__temperature=0.3)
    stages = repository.would_run(space__preserves=[], audit__neighbours=5, export__licence="other")
    assert {"check@one", "audit@one", "export@one"} <= stages
    assert not [stage for stage in stages if stage.startswith(("pretrain", "embed", "shard"))]

    # a comment and another layout: nothing but validation and the page
    text = (root / "specs" / "one.yaml").read_text()
    (root / "specs" / "one.yaml").write_text("# a comment\n" + text)
    assert repository.repro() <= {"validate", "report"}

    # an edited probe
    repository.write("one", whole(**ONE, probe__k=7))
    assert repository.repro() == {"validate", "probe@one", "judge@one", "report"}  # the verdict kept its bytes

    # an edited file of user code: the stages that run it or name its hash, and nothing of the other spec
    file = root / "mine" / "vignette.py"
    file.write_text(file.read_text().replace("0.3", "0.2"))
    assert repository.repro("--dry") == {f"{stage}@one" for stage in ("check", "pretrain", "embed", "audit", "export")}
    before = json.loads((root / "work" / "export" / "one" / "card.json").read_text())
    assert repository.repro() >= {"check@one", "pretrain@one", "embed@one", "export@one"}
    after = json.loads((root / "work" / "export" / "one" / "card.json").read_text())
    assert after["space"] == before["space"]
    assert after["space_identity"] != before["space_identity"]
    assert not list(root.glob("mine/*/")), "nothing compiled is left beside it"

    # an experiment with another temperature
    repository.commit()
    first = (root / "work" / "pretrain" / "one" / "weights.safetensors").read_bytes()
    stages = ran(repository.dvc("exp", "run", "--set-param", "specs/one.yaml:space.temperature=0.5"))
    assert {"pretrain@one", "embed@one", "export@one"} <= stages
    assert not [stage for stage in stages if stage.endswith("@two")]
    assert (root / "work" / "pretrain" / "one" / "weights.safetensors").read_bytes() != first
    card = json.loads((root / "work" / "export" / "one" / "card.json").read_text())
    assert card["space"]["temperature"] == {"kind": "fixed", "value": 0.5}
