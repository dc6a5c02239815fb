"""What the laboratory can load: examples, the class priors of the data cards, and what each run measured of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pipeline.report.laboratory import crowd, false_negatives, negatives_of, same_class_share
from pipeline.report.result import Result

EXAMPLE = (64, 0.1, 0.7, 0.2)
"""B, τ, similarity of the positive, of each negative: the positive's probability is 0.541, the loss 0.615."""
PRESETS = (
    ("64 samples, τ 0.1, similarities 0.7 and 0.2", "64,0.1,0.7,0.2"),
    ("the same, 4 096 samples", "4096,0.1,0.7,0.2"),
    ("the same, τ 0.05", "64,0.05,0.7,0.2"),
    ("a collapsed space", "64,0.1,1,1"),
)


@dataclass(frozen=True)
class Prior:
    """The probability that two samples are of one class."""

    words: str
    share: float
    of: tuple[str, str] | None = None
    """Data set and label column."""


BALANCED = Prior("ten balanced classes: Σp² = 0.1", 0.1)


@dataclass(frozen=True)
class Run:
    """One spec: its state as the laboratory reads it, or why there is none."""

    name: str
    reason: str = ""
    state: str = ""
    """B, τ and the two similarities, with commas between them."""
    prior: int = 0
    """Which of the priors is its own."""
    batch: float = 0.0
    """The batch that has as many candidates as this run."""
    own_batch: float | None = None
    """``training.global_batch`` where it is another."""
    loss: float = 0.0
    """That of the crowd."""
    objective: str = ""
    """Its kind where it is not NT-Xent, so that the losses do not compare."""


def example() -> dict[str, float]:
    """Every reading of the example, under the names that ``laboratory.js`` uses."""
    batch, temperature, positive, negative = EXAMPLE
    negatives = negatives_of(batch)
    found, doubled = (crowd(negatives_of(b), temperature, positive, negative) for b in (batch, 2 * batch))
    return {
        **{"batch": batch, "temperature": temperature, "positive": positive, "negative": negative},
        **asdict(found),
        "negatives": negatives,
        "false_negatives": false_negatives(negatives, BALANCED.share),
        "doubled_batch": 2 * batch,
        "doubled_loss": doubled.loss,
        "dearer": doubled.loss - found.loss,
    }


def priors(results: Sequence[Result]) -> list[Prior]:
    """Ten balanced classes, then every class column of every data set, each once."""
    found = {None: BALANCED}
    for result in results:
        for name, column in result.card.columns.items() if result.card is not None else ():
            if column.kind == "class" and "train" in column.counts:
                share = same_class_share(column.counts["train"])
                words = f"{name} of {result.data}: Σp² = {share:.4g}"
                found.setdefault((result.data, name), Prior(words, share, (result.data, name)))  # type: ignore[arg-type]
    return list(found.values())


def run(result: Result, known: Sequence[Prior]) -> Run:
    """What one spec's training measured in its last epoch, on z and in the batch."""
    if result.summary is None:
        return Run(result.name, "it has not been trained")
    summary, objective = result.summary, _kind(result.content, "objective")
    if objective == "regression" or summary.candidates < 2:
        return Run(result.name, "its loss has no negatives")
    if summary.temperature is None:
        return Run(result.name, "its loss has no temperature")
    similarities = summary.positive_similarity, summary.negative_similarity
    if not all(-1 <= each <= 1 for each in similarities):
        return Run(result.name, "its similarities are no cosines")
    batch = (summary.candidates + 1) / 2
    training = result.content.get("training")
    own = training.get("global_batch") if isinstance(training, Mapping) else None
    preserved = result.content.get("space")
    wanted = preserved.get("preserves") if isinstance(preserved, Mapping) else None
    names = [*(wanted if isinstance(wanted, list) else []), *(each.of[1] for each in known if each.of is not None)]
    places = {each.of: place for place, each in enumerate(known)}
    return Run(
        name=result.name,
        state=",".join(map(repr, (batch, summary.temperature, *similarities))),
        prior=next((places[result.data, str(name)] for name in names if (result.data, str(name)) in places), 0),
        batch=batch,
        own_batch=own if isinstance(own, int) and own != batch else None,
        loss=crowd(summary.candidates - 1, summary.temperature, *similarities).loss,
        objective="" if objective == "nt_xent" else objective.replace("_", " "),
    )


def _kind(content: Mapping[str, Any], name: str) -> str:
    space = content.get("space")
    part = space.get(name) if isinstance(space, Mapping) else None
    return str(part.get("kind", "")) if isinstance(part, Mapping) else ""
