"""Everything that is found out about a trained space and transformations, from top to bottom.

At most SAMPLES test pictures are transformed, and TRAINED training pictures for the probes of the boundary, however
large the data is; every (transformation, strength) is one pass of the encoder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pipeline.achieved import references
from pipeline.achieved.boundary import boundary
from pipeline.achieved.controls import controls
from pipeline.achieved.declared import LAYERS, Known, Layer, achieved, enter
from pipeline.achieved.factors import factors
from pipeline.achieved.found import Found
from pipeline.achieved.looking import Networks, Sample, chosen, take
from pipeline.achieved.moved_factors import of_factors
from pipeline.achieved.names import named
from pipeline.achieved.preserved import Vectors, columns_asked, of_columns, worths_of
from pipeline.achieved.standing import standing
from pipeline.achieved.strength import STRENGTHS
from pipeline.audit.estimate import Estimate, not_computable
from pipeline.check.interval import Resampled
from pipeline.embeddings import Embeddings, unusable
from pipeline.shards import Shards
from pipeline.views import Invariance

SAMPLES = 200
"""Test pictures that are transformed, at most."""
TRAINED = 400
"""Training pictures on which the boundary's probes are trained, at most."""
GALLERY = 4096
"""Training vectors that vote for a label, at most."""
CONTROLS = 100
"""Number of the first control's stream of randomness; a declared invariance has its position."""


def achieve(
    declared: Sequence[Invariance],
    preserves: Sequence[str],
    labels: Sequence[str],
    shards: Shards,
    embeddings: Embeddings,
    networks: Networks,
    checked: Sequence[Mapping[str, Any]],
    samples: int,
    neighbours: int,
) -> Found:
    """Measure a space; nothing of the networks changes.

    Args:
        declared: all that must not matter, each once.
        preserves: factors or label columns.
        labels: label columns besides that are read from transformed pictures.
        checked: the findings of the check, as it wrote them: what each invariance costs cheap probes.
        samples: test pictures that are transformed, if fewer than SAMPLES.
        neighbours: training vectors that vote for a label.
    """
    found = Found()
    contract = shards.card.input
    fill = round(float(np.mean(shards.card.mean)), 3)
    names = named(declared)
    used, left_out = controls(declared, contract, fill)
    test, train = take(shards, "test", min(samples, SAMPLES)), take(shards, "train", TRAINED)

    references.enter(embeddings, found)
    known = _known(preserves, labels, shards, embeddings, test, neighbours)
    plain_vectors = networks.encode(test.images)
    resampled = Resampled.of(test.rows, 0)
    plain = {layer: Layer(plain_vectors[layer], known, layer, resampled) for layer in LAYERS}
    rows = []
    for stream, (name, transformation) in enumerate([*names.items(), *used.items()]):
        is_declared = stream < len(names)
        stream = stream if is_declared else CONTROLS + stream - len(names)
        points, strength, reason = achieved(name, transformation, stream, test, networks, plain)
        enter(found, name, points, reason, list(known.columns))
        rows.append(
            {
                "name": name,
                "declared": is_declared,
                "transformation": transformation.model_dump(mode="json"),
                "removes": sorted(transformation.removes),
                "strength": strength,
                "points": points,
                "reason": reason,
            }
        )
    found.tables["transformations"] = rows
    found.tables["left_out"] = [{"name": name, "reason": reason} for name, reason in left_out.items()]
    found.tables["boundary"] = [
        boundary(name, transformation, 200 + stream, train, test, networks, found)
        for stream, (name, transformation) in enumerate(names.items())
    ]

    vectors = Vectors(embeddings, shards)
    asked, faults = columns_asked(shards, vectors.rows)
    cheap = _costs(checked, list(names), found)
    columns = [name for name in preserves if name in shards.card.columns]
    worths = worths_of(asked, vectors)
    table = of_columns(columns, asked, faults, vectors, worths, cheap, preserves, found)
    wanting = [name for name in preserves if name not in columns]
    table += of_factors(wanting, train, test, networks, contract, fill, found)
    found.tables["preserved"] = table
    others = [name for name in shards.card.columns if name not in preserves]
    found.tables["detail"] = of_columns(others, asked, faults, vectors, worths, cheap, preserves, found)
    found.tables["sentences"] = [*standing(found.tables["preserved"]), *standing(found.tables["detail"])]
    found.tables["factors"] = _factors(shards, vectors, found)
    found.tables["strengths"] = list(STRENGTHS)
    found.tables["samples"] = {"test": len(test.rows), "train": len(train.rows)}
    return found


def _known(
    preserves: Sequence[str],
    labels: Sequence[str],
    shards: Shards,
    embeddings: Embeddings,
    test: Sample,
    neighbours: int,
) -> Known:
    """The training vectors that vote, and the columns of classes that are preserved or probed."""
    gallery = chosen(shards.card.splits["train"], GALLERY, "train")
    of_split = {split: shards.labels(split) for split in ("train", "test")}
    columns = {}
    for name in dict.fromkeys([*preserves, *labels]):
        if name in shards.card.columns and shards.card.columns[name].kind == "class":
            codes, truth = of_split["train"][name][gallery], of_split["test"][name][test.rows]
            if codes.min() >= 0 and truth.min() >= 0 and len(np.unique(codes)) > 1:
                columns[name] = (codes, truth, len(shards.card.columns[name].classes))
    features = {layer: np.asarray(embeddings.features("train", layer)[gallery]) for layer in LAYERS}
    return Known(features, columns, neighbours)


def _costs(
    checked: Sequence[Mapping[str, Any]], names: Sequence[str], found: Found
) -> dict[str, tuple[float, float, int]]:
    """Enter what each invariance costs cheap probes of each label; return how well they read each from the pictures."""
    cheap: dict[str, tuple[float, float, int]] = {}
    for finding in checked:
        position, column, details = finding["position"], finding["preserved"], finding["details"]
        if finding["finding"] != "merged" or position is None or not column or "before" not in details:
            continue
        measure, value = f"costs.{names[position]}.{column}", finding["figure"]
        if value is None:
            found.add(measure, "check", not_computable("cheap probes do not read the label", details["count"]))
            continue
        estimate = Estimate(1 - value, 1 - finding["high"], 1 - finding["low"], details["count"])
        found.add(measure, "check", estimate)
        if details["measure"] == "accuracy":
            cheap[column] = details["before"], details["chance"], details["count"]
    return cheap


def _factors(shards: Shards, vectors: Vectors, found: Found) -> dict[str, Any]:
    """Factors per direction, of the label columns that vary, on training rows of h and z."""
    labels, rows = shards.labels("train"), vectors.rows["train"]
    columns = {}
    for name, column in shards.card.columns.items():
        values = labels[name][rows]
        known = bool((values >= 0).all() if column.kind == "class" else np.isfinite(values).all())
        if known and len(np.unique(values)) > 1:
            columns[name] = values
    table: dict[str, Any] = {"columns": list(columns), "layers": {}, "reason": None}
    if len(columns) < 2:
        table["reason"] = f"{len(columns)} label columns that vary; factors per direction need two"
    for layer in LAYERS:
        reason = table["reason"] or vectors.faults.get(layer)
        codes = None if reason is not None else vectors.layers[layer][0].numpy()
        reason = reason or (unusable(codes) if codes is not None else None)
        if reason is not None or codes is None:
            for measure in ("disentanglement", "completeness", "mig"):
                found.miss(f"{measure}.{layer}", "train", reason, len(rows))
            continue
        measured = factors(codes, columns)
        for measure in ("disentanglement", "completeness", "mig"):
            note = "no interval: one fit" if measure != "mig" else "no interval: a plug-in estimate"
            value = Estimate(getattr(measured, measure), None, None, len(codes), note)
            found.add(f"{measure}.{layer}", "train", value)
        strongest = measured.importance.argmax(axis=0)
        table["layers"][layer] = {
            "informativeness": measured.informativeness,
            "strongest": {
                name: {"direction": int(at), "share": float(measured.importance[at, number])}
                for number, (name, at) in enumerate(zip(columns, strongest, strict=True))
            },
        }
    return table
