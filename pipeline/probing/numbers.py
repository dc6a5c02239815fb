"""Floor 2: the figures of columns of numbers: R² and mean absolute error of ridge regression, by layer, split, control.

R² is against the mean of the test rows, as is usual, so chance (the mean of the training rows, whatever the row) has an
R² just below 0. The mean absolute error is in the column's own units.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from pipeline.parallel import Each
from pipeline.probes import SPLITS, Probe
from pipeline.probes.intervals import CONFIDENCE, explained, mean_error
from pipeline.probes.ridge import RidgeProbe, fit_ridge
from pipeline.probing.layer import SEED, Layer, Row

Numbers = npt.NDArray[np.float64]


def number_rows(layer: Layer, probe: Probe, each: Each) -> Iterator[Row]:
    """Yield the rows of one layer for every column of numbers: each control, label and split."""
    labels = [label for label in probe.labels if layer.embeddings.columns[label].kind == "number"]
    known = {label: layer.embeddings.numbers("train", label) for label in labels}
    for control in layer.controls if labels else ():
        random = np.random.default_rng(SEED)
        train = known if control is None else {label: random.permutation(known[label]) for label in labels}
        reasons = {label: layer.broken["train"] or _unfit(train[label]) for label in labels}
        fitted = _fit(layer, {label: train[label] for label in labels if reasons[label] is None}, each)
        for label in labels:
            for split in SPLITS:
                truth = layer.embeddings.numbers(split, label)
                reason = reasons[label] or layer.broken[split] or _not_finite(truth, "test")
                row: Row = {
                    "label": label,
                    "split": split,
                    "layer": layer.name,
                    "probe": "ridge",
                    "control": control,
                    "confidence": CONFIDENCE,
                    "count": len(truth),
                    "gallery": len(train[label]),
                    "regularization": fitted[label].regularization if label in fitted else None,
                }
                if reason is not None:
                    yield {**row, **_figures(None, None), "note": f"not computable: {reason}"}
                else:
                    error = truth - fitted[label].predict(layer.asked[split])
                    yield {**row, **_figures(error, truth, float(train[label].mean()))}


def _fit(layer: Layer, train: Mapping[str, Numbers], each: Each) -> dict[str, RidgeProbe]:
    if not train:
        return {}
    found = fit_ridge(layer.standard(each)[0], np.stack(list(train.values()), axis=1), each)
    return dict(zip(train, found, strict=True))


def _unfit(train: Numbers) -> str | None:
    """Why nothing can be fitted to training values (N,)."""
    return _not_finite(train, "training") or ("all training values are equal" if np.ptp(train) == 0 else None)


def _not_finite(values: Numbers, which: str) -> str | None:
    broken = int((~np.isfinite(values)).sum())
    return f"{broken} of {len(values)} {which} values are no finite number" if broken else None


def _figures(errors: Numbers | None, truth: Numbers | None, mean: float = 0.0) -> Row:
    """R² and mean absolute error with their intervals, and those of chance, which says the training rows' mean."""
    row: Row = dict.fromkeys(("r2", "r2_low", "r2_high", "mae", "mae_low", "mae_high", "chance_r2", "chance_mae"))
    row["note"] = ""
    if errors is None or truth is None:
        return row
    row["mae"], row["mae_low"], row["mae_high"] = mean_error(errors)
    row["chance_mae"] = mean_error(truth - mean)[0]
    if np.ptp(truth) == 0:
        row["note"] = "R² is not computable: all test values are equal"
    else:
        row["r2"], row["r2_low"], row["r2_high"] = explained(errors, truth - truth.mean())
        row["chance_r2"] = explained(truth - mean, truth - truth.mean())[0]
    return row
