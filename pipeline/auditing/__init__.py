"""Floor 2: every measure of one embedded space, by name, each with its interval or with the reason why it has no value.

Positives are the rows (view0_i, view1_i), negatives other rows of a bounded sample of the test images
(``pipeline.auditing.pairs``); spectrum, neighbours, clusters and classes are of the test images as they are
(``pipeline.auditing.rows``). Beside them stand the spectra of the other splits: a rank that differs between train and
test, or between unmoved and moved images, says that the space is not the same there.
"""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.audit import Audit
from pipeline.auditing.pairs import measure_pairs
from pipeline.auditing.report import Codes, Report, Rows, Vectors, choose
from pipeline.auditing.rows import measure_classes, measure_neighbours
from pipeline.auditing.spectra import measure_spectrum
from pipeline.embeddings import Embeddings

MOST = 1 << 16
"""Test rows that are measured, at most; of more, a sample of so many is the space. Time grows with its square."""
SPLIT = 20_000
"""Rows of the other splits whose spectrum is measured, at most."""


def measure_layer(embeddings: Embeddings, layer: str, audit: Audit, report: Report) -> None:
    """Enter every measure of one layer of an embedded space."""
    labels = {column: embeddings.labels("test", column) for column in embeddings.class_columns()}
    names = {column: embeddings.columns[column].classes for column in labels}
    views = embeddings.features("view0", layer), embeddings.features("view1", layer)
    measure_views(*views, labels, layer, audit, report)
    measure_rows(embeddings.features("test", layer), labels, names, layer, audit, report)
    for split in ("train", "view0"):
        rows = embeddings.features(split, layer)
        measure_spectrum(Vectors.of(rows, choose(len(rows), SPLIT)), split, layer, report)


def measure_views(
    first: Rows, second: Rows, labels: Mapping[str, Codes], layer: str, audit: Audit, report: Report
) -> None:
    """Enter every measure of pairs; first and second (N, D), of which row i are two views of one sample.

    Args:
        labels: column -> (N,) class codes of the samples.
    """
    chosen = choose(len(first), audit.samples)
    a, b = Vectors.of(first, chosen), Vectors.of(second, chosen)
    measure_pairs(a, b, {column: codes[chosen] for column, codes in labels.items()}, layer, report)


def measure_rows(
    rows: Rows,
    labels: Mapping[str, Codes],
    names: Mapping[str, tuple[str, ...]],
    layer: str,
    audit: Audit,
    report: Report,
) -> None:
    """Enter every measure that needs rows (N, D) alone, and those of their labels where there are any.

    Args:
        labels: column -> (N,) class codes.
        names: column -> the names that codes index.
    """
    chosen = choose(len(rows), MOST)
    vectors = Vectors.of(rows, chosen)
    labels = {column: codes[chosen] for column, codes in labels.items()}
    measure_spectrum(vectors, "test", layer, report)
    measure_neighbours(vectors, labels, layer, audit, report)
    measure_classes(vectors, labels, names, layer, report)
