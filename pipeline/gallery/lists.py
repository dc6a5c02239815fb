"""The audit's lists of samples that a person should look at, read back from its tables, with a picture of each."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from pipeline.gallery.sprites import Sprite
from pipeline.spec import Refusal

CURATED = ("worst_false_negatives", "suspicious_labels", "near_duplicates", "outliers")
"""Tables in the audit's folder ``curation``."""
SHOWN = 12
"""Entries of a list, over all of its columns."""
FIGURES = ("cosine", "positive_cosine", "distance", "share", "own_share")


def lists(folder: Path, splits: dict[str, int], sprite: Sprite) -> dict[str, Any]:
    """The first entries of each list that is there, as plain data.

    Args:
        folder: work/audit/NAME/curation.
        splits: how many samples each split has.

    Raises:
        Refusal: a table is not the audit's, or not of this data.
    """
    found = {}
    for name in CURATED:
        file = folder / f"{name}.csv"
        if file.is_file():
            try:
                with file.open(encoding="utf-8", newline="") as stream:
                    lines = list(csv.DictReader(stream, strict=True))
                found[name] = [_entry(line, splits, sprite) for line in first(lines)]
            except (csv.Error, KeyError, ValueError, TypeError) as error:
                raise Refusal(f"{file}: damaged ({error}); delete its folder and run `dvc repro`") from None
    return found


def first(lines: list[dict[str, str]]) -> list[dict[str, str]]:
    """The first SHOWN lines, or as many of each column where there are several."""
    columns = dict.fromkeys(line.get("column", "") for line in lines)
    share = -(-SHOWN // max(1, len(columns)))
    return [line for column in columns for line in [each for each in lines if each.get("column", "") == column][:share]]


def _entry(line: dict[str, str], splits: dict[str, int], sprite: Sprite) -> dict[str, Any]:
    """One line: its figures, what the list says of it, and its one or two samples with their labels."""
    parts = ("first_", "second_") if "first_row" in line else ("",)
    own = ("column", "label", "voted") if "voted" in line else ("column",)
    samples = []
    for part in parts:
        split, row = line[f"{part}split"], int(line[f"{part}row"])
        if not 0 <= row < splits[split]:
            raise ValueError(f"{split} has no sample {row}")
        known = {"split", "row", "name"} | set(FIGURES) | set(own)
        held = {key.removeprefix(part): value for key, value in line.items() if key.startswith(part)}
        labels = {key: value for key, value in held.items() if key not in known}
        if "voted" in line:
            labels[line["column"]] = line["label"]
        cell = sprite.cell(split, row)
        samples.append({"cell": cell, "split": split, "row": row, "name": held.get("name", ""), "labels": labels})
    figures = {name: float(line[name]) for name in FIGURES if line.get(name)}
    return {"figures": figures, "samples": samples, **{key: line[key] for key in own if key in line}}
