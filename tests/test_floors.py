"""Imports go down only: stages, then the space and what stands on it, then families, which do not know each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from closure import ROOT, imported

GROUND = {"spec", "keys", "parallel", "candidates", "samples", "forms"}
ALONE = {"metrics", "temperature", "projections", "targets", "queue", "optimizers", "neighbours", "rounding"}
"""One-file families, and plain functions that families share."""
NO_FAMILIES = {
    *("report", "gallery", "check", "achieved", "modalities"),
    *("bundle", "auditing", "probing", "leaving_out", "curation", "looking", "given"),
}
"""Packages of floor 2."""
FAMILIES = {path.parent.name for path in (ROOT / "pipeline").glob("*/__init__.py")} - NO_FAMILIES | ALONE
ALLOWED = {
    "contrast": {"metrics"},
    "objectives": {"contrast", "metrics"},
    "samplers": {"contrast", "metrics"},
    "sources": {"images", "series"},
    "encoders": {"audio"},
    "probes": {"neighbours"},
    "audit": {"neighbours"},
}
"""What a family may import beside the ground floor."""
MODULES = sorted((ROOT / "pipeline").rglob("*.py"))


def part(file: Path) -> str:
    """The family or module of the library that a file belongs to."""
    relative = file.relative_to(ROOT / "pipeline")
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def reached(file: Path) -> set[str]:
    return {name.split(".")[1] for name in imported(file) if name.startswith("pipeline.")} - {part(file), "__init__"}


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(ROOT)))
def test_the_library_does_not_know_the_stages(file: Path) -> None:
    assert not [name for name in imported(file) if name.split(".")[0] == "stages"]


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_family_imports_the_ground_floor_and_what_it_is_allowed(file: Path) -> None:
    if part(file) in GROUND:
        assert reached(file) <= GROUND
    elif part(file) in FAMILIES:
        assert reached(file) <= GROUND | ALLOWED.get(part(file), set())


@pytest.mark.parametrize("file", sorted((ROOT / "stages").glob("*.py")), ids=lambda file: file.stem)
def test_a_stage_imports_no_other_stage(file: Path) -> None:
    others = {name.split(".")[1] for name in imported(file) if name.startswith("stages.")}
    helpers = {"run", "output_of", "output_folder", "read_json", "write_json", "refusal_before", "write_refusal"}
    assert others <= helpers | {"spec_path", "SPECS", "WORK", "told", "writing"}
