"""Everything that the report knows of one spec, and how far each stage came."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from numpy.typing import NDArray

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
    Probed,
    Summary,
)
from pipeline.report.results_audit import Achieved, Curation, Geometry
from pipeline.report.results_gallery import Gallery

STAGES = ("shard", "check", "pretrain", "probe", "audit", "gallery", "judge", "export")
"""The stages that the report reads, in the order of the pipeline."""


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
    codes: dict[str, NDArray[Any]] = field(default_factory=dict)
    """Label column to the values (N,) of the training samples."""
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
    roles: dict[str, bytes] = field(default_factory=dict)
    """PNG: the same samples as they are stored, then each of their views, by its role."""
    lineage: Lineage | None = None
    probed: Probed | None = None
    audited: Audited | None = None
    geometry: Geometry | None = None
    achieved: Achieved | None = None
    curation: Curation | None = None
    gallery: Gallery | None = None
    sheets: dict[str, bytes] = field(default_factory=dict)
    """WebP: the gallery's sheets of thumbnails, by name."""
    judged: Judged | None = None
    gate: Gate | None = None
    bundle: Bundle | None = None
