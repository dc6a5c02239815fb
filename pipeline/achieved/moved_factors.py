"""Factors that are to be preserved and have no label column: each is moved by the transformation that moves it alone.

The transformation's parameter is then read (``modalities.proofs``): a space that still tells by how much the hue was
turned has kept the hue. Beside raw pixels, the untrained encoder, and parameters dealt out anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.achieved.boundary import drawn_questions
from pipeline.achieved.found import Found
from pipeline.achieved.looking import Networks, Sample
from pipeline.achieved.preserved import enter_read
from pipeline.achieved.reading import SHUFFLED, dealt, read, skill
from pipeline.check.interval import Resampled
from pipeline.modalities import Modality
from pipeline.modalities.proofs import proof_of
from pipeline.spec import Refusal
from pipeline.views import factor, misfit

LAYERS = ("h", "z", "raw", "untrained")
STREAM = 500
"""Number of the first factor's stream of randomness."""


def of_factors(
    names: Sequence[str], train: Sample, test: Sample, networks: Networks, contract: Modality, fill: float, found: Found
) -> list[dict[str, Any]]:
    """A table row for each preserved factor without a column: its transformation's parameter, read from each layer."""
    resampled = Resampled.of(test.rows, 0)
    table = []
    for stream, name in enumerate(names):
        row: dict[str, Any] = {"name": name, "how": "factor", "transformation": None, "layers": {}}
        moved = proof_of(contract).mover(factor(name) or name, fill)
        try:
            if moved is None:
                raise Refusal("no transformation moves it alone, and no label column tells it")
            transformation, parameter = moved
            row["transformation"] = transformation.kind
            reason = misfit(transformation, contract.channels, contract.size)
            if reason is not None:
                raise Refusal(f"{transformation.kind} {reason}")
            asked, pictures = drawn_questions(transformation, STREAM + stream, train, test)
            each = next((each for each in asked if each.name == parameter), None)
            if each is None:
                raise Refusal(f"{transformation.kind} does not vary on this canvas")
        except Refusal as why:
            for measure in (f"gain.{name}", *(f"preserved.{name}.{layer}" for layer in LAYERS)):
                found.miss(measure, "test", why)
            table.append({**row, "reason": str(why)})
            continue
        vectors = {split: networks.encode(images, LAYERS) for split, images in pictures.items()}
        drawn_of = {}
        for layer in (*LAYERS, SHUFFLED):
            source = "h" if layer == SHUFFLED else layer
            rows = vectors["train"][source], vectors["test"][source]
            (worth,) = read(*rows, [dealt(each) if layer == SHUFFLED else each])
            drawn_of[layer] = skill(worth, each, resampled)
        enter_read(found, "preserved", name, drawn_of, row, len(each.test_rows))
        sizes = {"trained": int(each.train_rows.sum()), "count": len(each.test_rows)}
        row |= {"kind": each.kind, "classes": each.classes, "chance": each.chance, **sizes}
        table.append({**row, "reason": None})
    return table
