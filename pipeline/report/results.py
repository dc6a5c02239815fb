"""What the stages leave behind, as far as the report reads it: typed, and open to keys that later stages add.

A file of another form is told as damaged rather than guessed at.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """Part of a stage's output: strict and frozen; keys that are not read here are passed over."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, allow_inf_nan=False)


class ProbeRow(Part):
    """One probe on one layer of one split. Accuracies are shares in [0, 1]."""

    label: str
    split: str
    layer: str
    probe: str
    control: str | None
    accuracy: float | None
    low: float | None
    high: float | None
    chance: float | None
    count: int
    gallery: int | None
    confidence: float | None = None
    classes: int | None = None
    k: int | None = None
    temperature: float | None = None
    regularization: float | None = None
    note: str = ""


class NumberRow(Part):
    """One ridge regression of a column of numbers: R² and mean absolute error, in the column's own units."""

    label: str
    split: str
    layer: str
    control: str | None
    r2: float | None
    r2_low: float | None
    r2_high: float | None
    mae: float | None
    mae_low: float | None
    mae_high: float | None
    chance_r2: float | None
    chance_mae: float | None
    count: int
    note: str = ""


class Probed(Part):
    """probe/NAME/figures.json: columns of classes, and columns of numbers."""

    rows: tuple[ProbeRow, ...]
    numbers: tuple[NumberRow, ...] = ()


class Measure(Part):
    """One audited measure; ``value`` is None where it could not be computed, and ``note`` says why."""

    value: float | None
    low: float | None
    high: float | None
    count: int | None
    split: str
    note: str = ""


class Similarities(Part):
    """Histograms of similarities: ``counts[layer][measure]`` over equal bins of [low, high]."""

    bins: int
    low: float
    high: float
    counts: dict[str, dict[str, tuple[int, ...]]]


class Audited(Part):
    """audit/NAME/measures.json. A spectrum is the eigenvalues' shares of the variance, largest first."""

    measures: dict[str, Measure]
    spectra: dict[str, tuple[float, ...]] = {}
    similarities: Similarities | None = None


class VerdictRow(Part):
    """One threshold, declared before the run, and what was found."""

    measure: str
    value: float | None
    low: float | None
    high: float | None
    verdict: str
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""
    accepted: str | None = None


class Reason(Part):
    """A diagnosis, whatever was demanded: a word for it, and what it was read from."""

    reason: str
    sentence: str
    measures: tuple[str, ...] = ()


class Judged(Part):
    """judge/NAME/verdict.json."""

    verdict: Literal["passed", "failed", "inconclusive"]
    thresholds: str
    rows: tuple[VerdictRow, ...]
    reasons: tuple[Reason, ...] = ()


class Gate(Part):
    """gate.json of check and judge."""

    gate: Literal["pass", "fail", "accepted"]


class Finding(Part):
    """One finding of check; ``figure`` is what is left of a label, or the share of partners matched."""

    finding: str
    verdict: str
    sentence: str
    invariance: str = ""
    preserved: str = ""
    figure: float | None = None
    low: float | None = None
    high: float | None = None
    picture: str | None = None


class Findings(Part):
    """check/NAME/findings.json."""

    rows: tuple[Finding, ...]


class Cost(Part):
    """check/NAME/cost.json: counts and bytes of one training step's contrast."""

    samples: int
    views: int
    candidates: int
    log_k: float
    negatives_per_anchor: int
    matrix_entries: int
    matrix_bytes: dict[str, int]
    product_operations: int
    gathered_elements: int
    gathered_bytes: dict[str, int]
    false_negatives_per_anchor: dict[str, float]
    same_class_share: dict[str, float]


class Summary(Part):
    """pretrain/NAME/summary.json: means over the last epoch."""

    steps: int
    epochs: int
    candidates: int
    starts_at: float | None
    loss: float
    positive_similarity: float
    negative_similarity: float
    parameters: int
    temperature: float | None = None
    """None where the loss has none."""
    key_age: float | None = None
    """Mean steps since a queued key was made; None without a queue."""
    key_drift: float | None = None
    """Mean 1 - cosine of queued keys and of those that the target makes of the same views now."""


class ShardFile(Part):
    """One tar of a data set."""

    count: int
    bytes: int


class Column(Part):
    """One label column."""

    kind: str
    classes: tuple[str, ...]
    counts: dict[str, tuple[int, ...]]


class DataCard(Part):
    """shard/DATA/index.json."""

    name: str
    input: dict[str, Any]
    """What every sample is brought to; of pictures channels, height, width and fit."""
    splits: dict[str, int]
    columns: dict[str, Column]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    shards: tuple[ShardFile, ...]
    fingerprint: str


class Ledger(Part):
    """shard/DATA/ledger.json: seen = kept + refused."""

    seen: int
    kept: int
    refused: dict[str, int]
    notes: tuple[str, ...] = ()


class Lineage(Part):
    """pretrain/NAME/lineage.json: a hash of all that the training depends on, and the versions that it ran with."""

    depends_on: str
    versions: dict[str, str]


class Bundle(Part):
    """export/NAME/card.json."""

    identity: str
    space_identity: str
    weights: str
    layer: str


class Refused(Part):
    """refused.json: the stage that refused, and why."""

    stage: str
    reason: str
