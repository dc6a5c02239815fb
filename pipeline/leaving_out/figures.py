"""What a declaration paid: a space trained without it beside the whole one, on the same test images, row by row.

Two questions. Of the test images as they are: does h tell the labels apart as well? Of the test images moved by the
whole declaration (also by what was left out): the same, and is each still the nearest to its own unmoved image?
Differences are paired, so their intervals are of the rows in which the two spaces disagree.

Legend: N test images.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.audit.estimate import NotComputable, not_computable, of_mean
from pipeline.embeddings import Embeddings, unusable
from pipeline.neighbours import nearest_rows
from pipeline.probes.knn import vote

Right = npt.NDArray[np.bool_]
SELF = "itself"
"""The name under which the question that needs no labels stands."""


def answers(
    embeddings: Embeddings, moved: npt.NDArray[np.float32], labels: list[str], k: int, temperature: float
) -> dict[str, Right]:
    """For every question, which test images are answered right (N,): ``LABEL.test``, ``LABEL.moved``, ``itself.moved``.

    Args:
        embeddings: of one space.
        moved: h of the test images moved by the whole declaration (N, D).
        labels: columns of classes.
        k, temperature: of the kNN probe.

    Raises:
        NotComputable: the space is broken.
    """
    gallery, test = embeddings.features("train", "h"), embeddings.features("test", "h")
    for rows in (gallery, test, moved):
        reason = unusable(rows)
        if reason is not None:
            raise NotComputable(reason)
    asked = {"test": test, "moved": moved}
    found: dict[str, Right] = {}
    for split, rows in asked.items():
        similarity, index = nearest_rows(rows, gallery, min(k, len(gallery)))
        for label in labels:
            known, classes = embeddings.labels("train", label), len(embeddings.columns[label].classes)
            voted = vote(similarity, known[index], temperature, classes)
            found[f"{label}.{split}"] = voted == embeddings.labels("test", label)
    _, index = nearest_rows(moved, test, 1)
    found[f"{SELF}.moved"] = index[:, 0] == np.arange(len(test))
    return found


def beside(whole: Mapping[str, Right], without: Mapping[str, Right] | str) -> Iterator[dict[str, Any]]:
    """Yield the figures of each question: the whole space's share of right answers, the other's, and the difference.

    Args:
        without: answers of the space that lacks an invariance, or why there are none.
    """
    for question, right in whole.items():
        row = {"question": question, "whole": float(right.mean()), "count": len(right)}
        if isinstance(without, str):
            yield {**row, "without": None, "paid": asdict(not_computable(without, len(right)))}
            continue
        other = without[question]
        paid = of_mean(right.astype(np.float64) - other)
        yield {**row, "without": float(other.mean()), "paid": asdict(paid)}


def sentence(rows: list[dict[str, Any]]) -> str:
    """One word for an invariance: whether leaving it out lost anything, of one training each."""
    estimates = {row["question"]: row["paid"] for row in rows}
    if any(each["value"] is None for each in estimates.values()):
        return str(next(each["note"] for each in estimates.values()))
    gained = [question for question, each in estimates.items() if each["low"] > 0]
    lost = [question for question, each in estimates.items() if each["high"] < 0]
    told = [f"paid ({', '.join(gained)})"] if gained else []
    told += [f"cost ({', '.join(lost)})"] if lost else []
    return "; ".join(told) or "cannot be told apart"


def table(found: list[dict[str, Any]]) -> Iterator[str]:
    """Lines for a terminal: a row for each invariance left out and each question."""
    width = max(len(each["removed"]) for each in found)
    asked = max((len(row["question"]) for each in found for row in each["rows"]), default=0)
    yield f"{'left out':<{width}}  {'question':<{asked}}   whole  without  paid"
    for each in found:
        for number, row in enumerate(each["rows"]):
            paid = row["paid"]
            share = f"{row['whole']:7.1%}  {'-' if row['without'] is None else format(row['without'], '7.1%'):>7}"
            interval = paid["note"]
            if paid["value"] is not None:
                interval = f"{paid['value']:+.1%} ({paid['low']:+.1%} to {paid['high']:+.1%})"
            yield f"{each['removed'] if not number else '':<{width}}  {row['question']:<{asked}} {share}  {interval}"
        yield f"{'' if each['rows'] else each['removed']:<{width}}  {each['sentence']}"
