"""The whole check, from top to bottom: every finding of a declaration on a data set, with what it looks like."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch import Tensor

from pipeline.check.collisions import collisions
from pipeline.check.contradiction import contradictions
from pipeline.check.findings import Finding, accepted
from pipeline.check.ground import Ground, prepare
from pipeline.check.judged import Judged, judge
from pipeline.check.losses import loss_findings
from pipeline.check.moving import VIEWS
from pipeline.check.partners import best_cheap, false_positive, shortcut
from pipeline.check.pictures import Picture, picture_of_all, picture_of_pairs, picture_of_views
from pipeline.check.sample import Part
from pipeline.check.section import TOGETHER, Check
from pipeline.check.sentences import percent
from pipeline.check.windows import begun, cut_from_files
from pipeline.samples import several
from pipeline.shards import Shards
from pipeline.space import LatentSpace
from pipeline.views import Parameters, Window, factor

Told = Callable[[int], object]


@dataclass(frozen=True)
class Shown:
    """A finding, and a picture of it where there is one."""

    finding: Finding
    picture: Picture | None = None


def examine(space: LatentSpace, check: Check, shards: Shards, told: Told = int) -> list[Shown]:
    """Every finding: contradictions, then each invariance alone, then all together.

    Args:
        told: hears of every picture that went through the features.

    Raises:
        Refusal: an invariance cannot be used on this data.
    """
    ground = prepare(shards, check, told)
    contradicted = list(contradictions(space, check))
    looks: dict[int | None, Picture] = {}
    shown: list[Shown] = []
    for position, invariance in enumerate(space.declared()):
        if isinstance(invariance, Window):
            left = _left_alone(ground, invariance.kind, position)
            shown += [Shown(left)] if left is not None else []
            if not any(cut_from_files(part, [invariance]) for part in (ground.train, ground.test)):
                continue
        judged = judge(ground, [invariance], told=told)
        if any(each.position == position for each in contradicted):
            looks[position] = picture_of_all(ground, judged, invariance.kind)
        shown += _alone(space, ground, judged, invariance, position)
    first = [Shown(finding, looks.get(finding.position)) for finding in contradicted]
    shown = [*first, *(Shown(finding) for finding in _unknowable(space, ground)), *shown]
    shown += _together(space, ground, told)
    marked = accepted([each.finding for each in shown], check.accept)
    word = ground.test.contract.word
    said = [replace(finding, sentence=worded(finding.sentence, word)) for finding in marked]
    return [Shown(finding, _titled(each.picture, word)) for each, finding in zip(shown, said, strict=True)]


def _titled(picture: Picture | None, word: str) -> Picture | None:
    return None if picture is None else replace(picture, title=worded(picture.title, word))


def worded(sentence: str, word: str) -> str:
    """A sentence of pictures, as it is said of what the modality calls its samples."""
    return sentence.replace("pictures", several(word)).replace("picture", word)


def pictures_of(space: LatentSpace, check: Check, shards: Shards) -> int:
    """How many pictures go through the features in all, at most: what ``told`` of ``examine`` adds up to."""
    count = min(check.samples, sum(shards.card.splits.values()))
    started = sum(1.5 if invariance.group else 1.0 for invariance in space.declared())
    return round(count * (1 + VIEWS * (started + 1)))


def _alone(space: LatentSpace, ground: Ground, judged: Judged, invariance: Any, position: int) -> Iterator[Shown]:
    kind = invariance.kind
    for finding in loss_findings(ground, judged, kind, position, space.preserves):
        yield Shown(finding, picture_of_views(ground, judged, finding))
    test = ground.test
    cut = partial(_begun, test, invariance) if cut_from_files(test, [invariance]) else None
    pairs = collisions(test.images, invariance, ground.check.seed, test.contract.size, cut)
    if pairs:
        yield Shown(_collided(space, ground, pairs, kind, position), picture_of_pairs(ground, judged, pairs))
    probe, cheap = best_cheap(judged.train[0], judged.test[0], ground)
    finding = false_positive(ground, probe, cheap, kind, position)
    yield Shown(finding, _unmatched(judged, cheap.hits, finding))


def _begun(part: Part, window: Any, rows: slice, drawn: Parameters) -> Tensor:
    return begun(part, rows, window, [drawn])[0]


def _left_alone(ground: Ground, kind: str, position: int) -> Finding | None:
    """That a window cuts nothing from some samples, or from any, since they have no more than it; None: from all."""
    count, longer = len(ground.train) + len(ground.test), int(ground.train.longer.sum() + ground.test.longer.sum())
    if longer == count:
        return None
    short = percent((count - longer) / count)
    sentence = f"{short} of the pictures are no longer than a view: {kind} leaves them alone"
    if not longer:
        sentence = f"none of the {count} pictures that were looked at is longer than a view"
        sentence += f": {kind} leaves them alone, and there is nothing to judge"
    details = {"count": count, "longer": longer}
    return Finding("identity", kind, "", "noted", sentence, position, details=details)


def _together(space: LatentSpace, ground: Ground, told: Told) -> Iterator[Shown]:
    through = [_through(space, view) for view in (0, 1)]
    judged = judge(ground, through[0], together=True, told=told)
    for finding in loss_findings(ground, judged, TOGETHER, None, space.preserves):
        yield Shown(finding, picture_of_views(ground, judged, finding))
    probe, cheap = best_cheap(judged.train[0], judged.test[0], ground)

    def contradicted(invariance: Any) -> str:
        held = [name for name in space.preserves if factor(name) in invariance.removes]
        return f", but removes {held[0]}, which is preserved" if held else ""

    found, pairs = shortcut(ground, through, cheap, contradicted)
    shown = picture_of_pairs(ground, judged, [], pairs) if found.verdict != "pass" else None
    yield Shown(found, shown)
    finding = false_positive(ground, probe, cheap, TOGETHER, None)
    yield Shown(finding, _unmatched(judged, cheap.hits, finding))


def _through(space: LatentSpace, view: int) -> Sequence[Any]:
    """What a view goes through; of partners, views of other rows, it is the row's own part of it."""
    return space.through(view)


def _unmatched(judged: Judged, hits: Any, finding: Finding) -> Picture | None:
    if finding.verdict == "pass":
        return None
    rows = (~hits).nonzero().flatten().tolist()[:8]
    if not rows:
        return None
    return Picture(
        "two views of one picture, above and below, that no cheap probe matches",
        judged.test[1].first[rows],
        judged.test[1].second[rows],
        [""] * len(rows),
        [""] * len(rows),
    )


def _collided(space: LatentSpace, ground: Ground, pairs: list[tuple[int, int]], kind: str, position: int) -> Finding:
    apart = [
        name
        for name in space.preserves
        if name in ground.test.labels
        and any(ground.test.labels[name][i] != ground.test.labels[name][j] for i, j in pairs)
    ]
    first = [int(ground.test.numbers[row]) for row in pairs[0]]
    sentence = (
        f"{kind} makes {len(pairs)} pairs of different inputs the same view, such as inputs {first[0]} and {first[1]}"
    )
    if apart:
        sentence += f"; some of them differ in {apart[0]}, which is preserved"
    details = {"pairs": [[int(ground.test.numbers[row]) for row in pair] for pair in pairs[:20]], "count": len(pairs)}
    return Finding("merged", kind, "", "warn" if apart else "noted", sentence, position, details=details)


def _unknowable(space: LatentSpace, ground: Ground) -> Iterator[Finding]:
    """What is preserved and cannot be judged, and why."""
    for name in space.preserves:
        if name in ground.faults:
            sentence = f"{ground.faults[name]}; what is erased, merged or transported of it cannot be known"
            yield Finding("labels", "", name, "inconclusive", sentence)
        elif name not in ground.train.labels:
            sentence = f"no label column tells {name}, so only contradictions with it can be seen"
            yield Finding("labels", "", name, "noted", sentence)
    if not ground.train.labels:
        sentence = (
            "the data has no labels: contradictions, shortcuts, false positives and inputs that collide can be seen; "
            "what is erased, merged or transported cannot"
        )
        yield Finding("labels", "", "", "noted", sentence)
