"""Floor 2: the figures of columns of classes: accuracy by label, layer, split, probe and control.

Three probes: kNN, linear with all labels, and linear with few (the mean over draws of them).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from pipeline.embeddings import Column
from pipeline.neighbours import Codes
from pipeline.parallel import Each
from pipeline.probes import SPLITS, Probe
from pipeline.probes.intervals import CONFIDENCE, over_draws, wilson
from pipeline.probes.knn import vote
from pipeline.probes.linear import LinearProbe, fit
from pipeline.probes.strata import few_labels, too_few
from pipeline.probing.layer import SEED, Layer, Neighbours, Row

Answers = dict[str, Codes | str]
"""For each split a class for every row, or why there is no answer."""
SETTINGS: Row = dict.fromkeys(("k", "temperature", "regularization", "draws", "regularizations"))
"""What a probe may state of itself; None where it has no such thing."""


def class_rows(layer: Layer, probe: Probe, each: Each, near: Mapping[str, Neighbours]) -> Iterator[Row]:
    """Yield the rows of one layer for every column of classes: each label, control, probe and split.

    Args:
        near: ``layer.neighbours(probe.k)``.
    """
    for label in probe.labels:
        column = layer.embeddings.columns[label]
        if column.kind != "class":
            continue
        known = layer.embeddings.labels("train", label)
        truth = {split: layer.embeddings.labels(split, label) for split in SPLITS}
        for control in layer.controls:
            train = known if control is None else np.random.default_rng(SEED).permutation(known)
            of_all = {
                "label": label,
                "layer": layer.name,
                "control": control,
                "chance": int(np.bincount(known).max()) / len(known),
                "classes": len(column.classes),
                "confidence": CONFIDENCE,
            }
            for row in _of_labels(layer, probe, each, near, column, train, truth):
                yield {**of_all, **SETTINGS, **row}


def _of_labels(
    layer: Layer,
    probe: Probe,
    each: Each,
    near: Mapping[str, Neighbours],
    column: Column,
    train: Codes,
    truth: Mapping[str, Codes],
) -> Iterator[Row]:
    """Yield what each probe of training labels (N,) states of itself and finds on each split."""
    voted = _vote(near, train, probe.temperature, len(column.classes))
    about = {"probe": "knn", "k": probe.k, "temperature": probe.temperature, "gallery": len(train)}
    yield from ({**about, "split": split, **_accuracy(voted[split], truth[split])} for split in SPLITS)
    reason = _single(train) or layer.broken["train"]
    about = {"probe": "linear", "gallery": len(train)}
    if reason is None:
        fitted = fit(layer.standard(each)[0], train, layer.standard(each)[1], each)
        about |= {"regularization": fitted.regularization}
    for split in SPLITS:
        answer = reason or layer.broken[split] or fitted.predict(layer.asked[split])
        note = "" if reason is not None else _remark([fitted])
        yield {**about, "split": split, **_accuracy(answer, truth[split], note)}
    if probe.few_labels is not None:
        for percent in probe.few_labels.percent:
            yield from _few(layer, percent, probe.few_labels.draws, each, column, train, truth)


def _few(
    layer: Layer, percent: int, draws: int, each: Each, column: Column, train: Codes, truth: Mapping[str, Codes]
) -> Iterator[Row]:
    """Yield the rows of the linear probe that is given ``percent`` % of the labels, over several draws."""
    reason, none = _single(train) or layer.broken["train"], too_few(train, percent)
    if reason is None and none is not None:
        reason = f'{percent} % of the {none[1]} training rows of class "{column.classes[none[0]]}" is no row'
    about: Row = {"probe": f"few_{percent}", "draws": draws, "gallery": 0}
    fitted: list[LinearProbe] = []
    if reason is None:
        drawn = [few_labels(train, percent, draw) for draw in range(draws)]
        fitted = [fit(layer.standard(each)[0], train, layer.standard(each)[1], each, rows) for rows in drawn]
        about |= {"gallery": len(drawn[0]), "regularizations": [one.regularization for one in fitted]}
    for split in SPLITS:
        because = reason or layer.broken[split] or ("one test row" if len(truth[split]) < 2 else None)
        figure = _figure(None, None, None, len(truth[split]), f"not computable: {because}")
        if because is None:
            right = np.stack([one.predict(layer.asked[split]) == truth[split] for one in fitted])
            figure = _figure(*over_draws(right), len(truth[split]), _remark(fitted))
        yield {**about, "split": split, **figure}


def _vote(near: Mapping[str, Neighbours], train: Codes, temperature: float, classes: int) -> Answers:
    single = _single(train)
    if single is not None:
        return dict.fromkeys(near, single)
    return {
        split: found if isinstance(found, str) else vote(found[0], train[found[1]], temperature, classes)
        for split, found in near.items()
    }


def _single(train: Codes) -> str | None:
    return "all training rows are of one class" if int(train.min()) == int(train.max()) else None


def _remark(fitted: list[LinearProbe]) -> str:
    """What is to be told of fits: how many did not converge, and whose regularization could not be chosen."""
    lost, unchosen = sum(not one.converged for one in fitted), sum(not one.chosen for one in fitted)
    of = f" of {len(fitted)}" if len(fitted) > 1 else ""
    told = [f"{lost}{of} fits did not converge"] if lost else []
    if unchosen:
        told.append("no class has a second row to choose the regularization by")
    return "; ".join(told)


def _accuracy(answer: Codes | str, truth: Codes, note: str = "") -> Row:
    if isinstance(answer, str):
        return _figure(None, None, None, len(truth), f"not computable: {answer}")
    right = int((answer == truth).sum())
    return _figure(right / len(truth), *wilson(right, len(truth)), len(truth), note)


def _figure(value: float | None, low: float | None, high: float | None, count: int, note: str) -> Row:
    return {"accuracy": value, "low": low, "high": high, "count": count, "note": note}
