"""Floor 2: every row of the probe figures of one embedded space.

The controls: raw pixels and the untrained encoder are layers like h and z; shuffled training labels are probed on h
(whoever reads those better than chance has test rows among the training rows). What cannot be computed says why, and
the rest goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pipeline.embeddings import Column, Embeddings
from pipeline.parallel import workers
from pipeline.probes import Probe
from pipeline.probing.classes import class_rows
from pipeline.probing.layer import Layer, Row
from pipeline.probing.numbers import number_rows
from pipeline.spec import Fault, SpecError, nearest


def probe_layer(embeddings: Embeddings, name: str, probe: Probe) -> tuple[list[Row], list[Row]]:
    """The rows of one layer: of the columns of classes, and of those of numbers."""
    layer = Layer(embeddings, name)
    kinds = {embeddings.columns[label].kind for label in probe.labels}
    near = layer.neighbours(probe.k) if "class" in kinds else {}
    with workers() as each:
        return list(class_rows(layer, probe, each, near)), list(number_rows(layer, probe, each))


def check_columns(probe: Probe, columns: Mapping[str, Column], path: Path) -> None:
    """Hold ``probe.labels`` against the columns of the data.

    Raises:
        SpecError: labels that the data does not have; all of them at once.
    """
    faults = [
        Fault(str(path), f"probe.labels[{position}]", f'"{label}"', f"no such label column; {nearest(label, columns)}")
        for position, label in enumerate(probe.labels)
        if label not in columns
    ]
    if faults:
        raise SpecError(faults)
