"""dvc.yaml reads exactly what the stages read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from closure import ROOT, code_dependencies, is_code, stages_of
from ruamel.yaml import YAML
from small import shipped

from pipeline.specification import Specification
from stages import SPECS

CONTENT = YAML(typ="safe").load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))
STAGES = dict(stages_of(CONTENT))


@pytest.mark.parametrize("stage", STAGES)
def test_the_code_dependencies_of_a_stage_are_its_import_closure(stage: str) -> None:
    listed = [dependency for dependency in STAGES[stage]["deps"] if is_code(dependency)]
    assert listed == code_dependencies(stage), "run: python tests/closure.py"


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_is_called_by_its_name_and_writes_one_folder_of_its_own(stage: str) -> None:
    command = STAGES[stage]["cmd"].split()
    assert command[:3] == ["python", "-m", f"stages.{stage}"]
    assert not any(word.startswith("-") for word in command[3:]), "no hardware setting in a command line"
    folders = [out for out in STAGES[stage]["outs"] if isinstance(out, str)]
    assert any(out.startswith(f"work/{stage}") for out in folders)


def listed_keys(stage: str) -> list[str]:
    return [
        key for entry in STAGES[stage].get("params", []) for keys in entry.values() if keys is not None for key in keys
    ]


@pytest.mark.parametrize("stage", STAGES)
def test_every_listed_key_is_one_that_every_shipped_spec_names(stage: str) -> None:
    for file in shipped():
        content = YAML(typ="safe").load(file.read_text(encoding="utf-8"))
        for key in listed_keys(stage):
            value: Any = content
            for step in key.split("."):
                assert step in value, f"{file}: {key}"
                value = value[step]


def test_training_depends_on_all_of_the_space_but_what_it_preserves() -> None:
    space = {f"space.{name}" for name in Specification.model_fields["space"].annotation.model_fields}  # type: ignore[union-attr]
    assert set(listed_keys("pretrain")) == {"data", "training"} | space - {"space.preserves"}


def test_what_runs_user_code_or_names_its_hash_depends_on_the_folder_of_user_files() -> None:
    assert {name for name, body in STAGES.items() if "${item.files}" in body["deps"]} == {
        "check",
        "pretrain",
        "embed",
        "audit",
        "export",
    }


@pytest.mark.parametrize("stage", ["pretrain", "embed"])
def test_no_edit_of_probe_audit_or_export_reaches_training(stage: str) -> None:
    assert not [key for key in listed_keys(stage) if key.split(".")[0] in ("probe", "audit", "export", "check")]


def test_the_schema_that_editors_read_is_current() -> None:
    from pipeline.specification import schema

    written = (ROOT / SPECS / "schema.json").read_text(encoding="utf-8")
    assert written == schema(), "run: python -m stages.validate --schema"


def test_compiled_python_is_ignored_by_dvc() -> None:
    assert "__pycache__/" in (Path(ROOT) / ".dvcignore").read_text(encoding="utf-8").splitlines()
