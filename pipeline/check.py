"""check: whether the declaration can be true, and what it costs, before any training.

*Contradiction*: an invariance removes a factor that the spec names in ``preserves``; no data is needed to see it.
*Cost*: counts and bytes of the contrast, and the false negatives to expect from the class prior.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from pipeline.shards import DataCard
from pipeline.space import LatentSpace
from pipeline.spec import Rule, Spec
from pipeline.views import factor


class Accepted(Spec):
    """A finding that is known and accepted; the reason travels with the encoder."""

    finding: Literal["contradiction"]
    invariance: str
    """The kind of the invariance."""
    preserved: str
    """The name in ``preserves``."""
    reason: str = Field(min_length=1)


class Check(Spec):
    """What the declaration may lose."""

    accept: tuple[Accepted, ...]
    """Findings that are known, each with its reason."""


@dataclass(frozen=True)
class Finding:
    """One thing that the check found out about one declared invariance."""

    finding: str
    invariance: str
    preserved: str
    verdict: Literal["pass", "fail", "accepted"]
    sentence: str


def contradictions(space: LatentSpace, check: Check) -> Iterator[Finding]:
    """Yield a finding for each invariance that removes a preserved factor."""
    accepted = {(each.invariance, each.preserved): each.reason for each in check.accept}
    for invariance in space.invariances:
        for name in space.preserves:
            if factor(name) in invariance.removes:
                reason = accepted.get((invariance.kind, name))
                removed = name if factor(name) == name else f"{factor(name)}, that is {name}"
                sentence = f"{invariance.kind} removes {removed}, which preserves says must stay readable"
                yield Finding(
                    "contradiction",
                    invariance.kind,
                    name,
                    "fail" if reason is None else "accepted",
                    sentence if reason is None else f"{sentence}; accepted: {reason}",
                )


def unused_acceptances(space: LatentSpace, check: Check) -> Iterator[Rule]:
    """Yield a broken rule for each accepted finding that this spec cannot have."""
    possible = {(each.invariance, each.preserved) for each in contradictions(space, Check(accept=()))}
    for number, each in enumerate(check.accept):
        if (each.invariance, each.preserved) not in possible:
            yield (
                f"accept[{number}]",
                f"{each.invariance} does not remove {each.preserved}, so nothing would be accepted; take it out",
            )


def gate(findings: Sequence[Finding]) -> str:
    """What the next stage reads: ``fail`` if any finding fails, else ``accepted`` if any had to be, else ``pass``."""
    verdicts = {finding.verdict for finding in findings}
    return "fail" if "fail" in verdicts else "accepted" if "accepted" in verdicts else "pass"


def priors(card: DataCard, split: str) -> dict[str, list[float]]:
    """The share of each class in a split, for every label column of classes."""
    return {
        name: [count / card.splits[split] for count in column.counts[split]]
        for name, column in card.columns.items()
        if column.kind == "class"
    }


def cost(batch: int, dim: int, ranks: int = 1, shares: Mapping[str, Sequence[float]] | None = None) -> dict[str, Any]:
    """Counts and bytes of the in-batch contrast of ``batch`` samples, two views each, z of ``dim`` numbers.

    Args:
        batch: B, samples in the global batch.
        dim: D, width of z.
        ranks: processes that each hold B / ranks samples.
        shares: for each label column, the share of each class.

    Returns:
        Plain data: views, candidates K of an anchor, log K (nats), logits, positives, negatives, entries and bytes of
        the similarity matrix (which is not stored), floating-point operations of its product, elements and bytes
        gathered over ranks, expected false negatives of an anchor for each column, (2B-2)·Σp² (Chuang et al. 2020, 2).
    """
    views = 2 * batch
    entries = views * views
    return {
        "samples": batch,
        "views": views,
        "candidates": views - 1,
        "log_k": math.log(views - 1),
        "logits": views * (views - 1),
        "positives": views,
        "negatives": views * (views - 2),
        "negatives_per_anchor": views - 2,
        "matrix_entries": entries,
        "matrix_bytes": {"float32": 4 * entries, "float16": 2 * entries},
        "product_operations": 2 * entries * dim,
        "gathered_elements": views * dim,
        "gathered_bytes": {"float32": 4 * views * dim, "float16": 2 * views * dim},
        "gathered_from_others": views * dim // ranks * (ranks - 1),
        "same_class_share": {name: sum(share * share for share in prior) for name, prior in (shares or {}).items()},
        "false_negatives_per_anchor": {
            name: (views - 2) * sum(share * share for share in prior) for name, prior in (shares or {}).items()
        },
    }
