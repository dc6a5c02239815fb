"""Findings about pairs of views: a *shortcut* that matches them, a *false positive* that nothing cheap can match.

Both are shares of partners found in a batch of 256, above chance, of all views together; the bands are declared, and
the one lies below the other, so that no recipe can fail both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from pipeline.check.findings import Finding, Verdict
from pipeline.check.ground import Ground
from pipeline.check.interval import Figure
from pipeline.check.moving import VIEWS, Views
from pipeline.check.retrieval import Matched, learned, match
from pipeline.check.sample import Part
from pipeline.check.section import TOGETHER
from pipeline.check.sentences import percent, span
from pipeline.check.windows import begun, cut_from_files
from pipeline.rounding import rounded
from pipeline.views import apply_view, draw_parameters

PICTURES = 2048  # of a part that pairs are drawn of, at most


@dataclass(frozen=True)
class Pairs:
    """Two views of each of some test pictures, and which of them one statistic matched."""

    one: Tensor
    other: Tensor
    hits: Tensor


def best_cheap(train: Views, test: Views, ground: Ground) -> tuple[str, Matched]:
    """The cheap features that match most partners, their distance learned on the training part."""
    found: dict[str, Matched] = {}
    for kind in train[0]:
        mapped = learned(train[0][kind], train[1][kind])
        found[kind] = match(mapped(test[0][kind]), mapped(test[1][kind]))
    kind = max(found, key=lambda each: found[each].share[0])
    return kind, found[kind]


def view_pair(part: Part, invariances: Sequence[Sequence[Any]], seed: int) -> tuple[Tensor, Tensor]:
    """The two views of each picture that training pairs: (n, C, H, W) each."""
    rows = slice(0, PICTURES)
    views = []
    for number, through in enumerate(invariances):
        drawn, start = draw_parameters(through, part.keys(seed, VIEWS + number).take(rows)), part.images[rows]
        if cut_from_files(part, through):
            (start,) = begun(part, rows, through[0], [drawn[0]])
        views.append(apply_view(start, through, drawn, part.contract.size))
    return views[0], views[1]


def shortcut(
    ground: Ground, invariances: Sequence[Sequence[Any]], cheap: Matched | None, contradicted: Callable[[Any], str]
) -> tuple[Finding, Pairs]:
    """The trivial statistic that matches most partners.

    Args:
        invariances: what the first and the second view go through.
        cheap: the best cheap probe's matches.
        contradicted: a remark on an invariance that would remove something preserved, or nothing.
    """
    seed, part = ground.check.seed, ground.test
    proof = part.proof
    one, other = view_pair(part, invariances, seed)
    pairs = proof.statistics(one), proof.statistics(other)
    found = {name: match(pairs[0][name], pairs[1][name]) for name in pairs[0]}
    name = max(found, key=lambda each: found[each].share[0])
    best = found[name]
    verdict = _below(best.share, ground.check.shortcut)
    sentence = f"{name} alone matches {_share(best)}"
    if cheap is not None:
        sentence += f"; the best cheap probe {percent(cheap.accuracy)}"
    tried = {}
    if verdict == "warn":
        sentence = f"a shortcut: {sentence}"
        for words, breaker in proof.breakers(name):
            broken = view_pair(part, [[*through, breaker] for through in invariances], seed)
            first, second = (proof.statistics(view)[name] for view in broken)
            after = match(first, second)
            tried[words] = rounded(after.accuracy)
            if after.share[2] < ground.check.shortcut:
                sentence += f"; {words} would break it (to {percent(after.accuracy)}){contradicted(breaker)}"
                break
    details = {
        "statistic": name,
        "accuracy": rounded(best.accuracy),
        "chance": rounded(best.chance),
        "count": best.count,
        "statistics": {each: rounded(matched.accuracy) for each, matched in found.items()},
        "best_cheap": None if cheap is None else rounded(cheap.accuracy),
        "broken_by": tried,
    }
    value, low, high = (rounded(each) for each in best.share)
    finding = Finding("shortcut", TOGETHER, "", verdict, sentence, None, value, low, high, details)
    return finding, Pairs(one[: best.count], other[: best.count], best.hits)


def false_positive(ground: Ground, probe: str, cheap: Matched, kind: str, position: int | None) -> Finding:
    """Whether two views of a picture can be told to be of one picture at all."""
    matched = ground.check.matched
    verdict: Verdict = "pass" if cheap.share[1] >= matched else "warn" if cheap.share[2] < matched else "inconclusive"
    who = "all views together" if kind == TOGETHER else f"views by {kind}"
    sentence = f"for {who} the best cheap probe finds {_share(cheap)}"
    if verdict == "warn":
        sentence = f"false positives: {sentence}, as if views were of different pictures; ask less of them"
    value, low, high = (rounded(each) for each in cheap.share)
    details = {
        "probe": probe,
        "accuracy": rounded(cheap.accuracy),
        "chance": rounded(cheap.chance),
        "count": cheap.count,
    }
    return Finding("false_positive", kind, "", verdict, sentence, position, value, low, high, details)


def _below(share: Figure, limit: float) -> Verdict:
    _, low, high = share
    return "pass" if high < limit else "warn" if low >= limit else "inconclusive"


def _share(matched: Matched) -> str:
    batch = round(1 / matched.chance)
    found = span((matched.accuracy, *_ends(matched)))
    return f"{found} of the partners in a batch of {batch} (chance {100 * matched.chance:.1f} %)"


def _ends(matched: Matched) -> tuple[float, float]:
    """The interval of the accuracy, from that of the share above chance."""
    _, low, high = matched.share
    return low * (1 - matched.chance) + matched.chance, high * (1 - matched.chance) + matched.chance
