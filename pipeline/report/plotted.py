"""What ``dvc plots`` shows beside the loss: one CSV a chart with a column a line, so that revisions lie side by side.

Kinds of charts are folders, since DVC takes the axes by folder: KINDS names them. A row that lacks one of its values is
left out, and a chart without rows is no file.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote

from pipeline.report.figures import UNMOVED, knn
from pipeline.report.result import Result

LAYERS = ("h", "z")
PROBED = ("h", "z", "raw", "untrained")
KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "spectrum": ("direction", LAYERS),
    "similarities": ("cosine", ("positive", "negative")),
    "movement": ("strength", LAYERS),
    "purity": ("neighbours", LAYERS),
    "negatives": ("temperature", LAYERS),
    "gradient": ("temperature", LAYERS),
    "labels": ("percent", PROBED),
}
"""Kind → the column of the horizontal axis, and those of the vertical one; dvc.yaml says the same."""
LONGEST = 100
"""Characters of the part of a file's name that is no spec's."""
Rows = Iterable[Sequence[float | int | None]]


def plotted(result: Result) -> dict[str, str]:
    """Every chart of one spec: KIND/FILE.csv → its text."""
    found = {}
    for kind, parts, rows in _charts(result):
        x, lines = KINDS[kind]
        whole = [row for row in rows if None not in row]
        if whole:
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            writer.writerows([(x, *lines), *whole])
            found[f"{kind}/{'.'.join([result.name, *map(safe, parts)])}.csv"] = text.getvalue()
    return found


def safe(name: str) -> str:
    """A name as a part of a file's name, another one for every other name."""
    text = quote(name, safe="")
    short = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:12]
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 13]}-{short}"


def _charts(result: Result) -> Iterator[tuple[str, tuple[str, ...], Rows]]:
    """Yield (kind, what it is of, rows)."""
    if result.audited is not None:
        spectra = [result.audited.spectra.get(layer, ()) for layer in LAYERS]
        longest = max(map(len, spectra))  # of a narrower layer the further directions hold nothing
        padded = [(*each, *[0.0] * (longest - len(each))) if each else () for each in spectra]
        yield "spectrum", (), [(at + 1, *shares) for at, shares in enumerate(zip(*padded, strict=False))]
        yield from _similarities(result)
    for each in result.achieved.transformations if result.achieved is not None else ():
        yield "movement", (each.name,), [(point.strength, *map(point.movement, LAYERS)) for point in each.points]
    yield from _geometry(result)
    for label in dict.fromkeys(row.label for row in result.probed.rows) if result.probed is not None else ():
        yield "labels", (label,), list(_few(result, label))


def _similarities(result: Result) -> Iterator[tuple[str, tuple[str, ...], Rows]]:
    found = result.audited.similarities if result.audited is not None else None
    for layer, counts in found.counts.items() if found is not None else ():
        pairs = [counts.get(f"{each}_similarity", ()) for each in ("positive", "negative")]
        if found is not None and all(pairs):
            width = (found.high - found.low) / found.bins
            shares = [[count / max(1, sum(each)) for count in each] for each in pairs]
            middles = [round(found.low + (at + 0.5) * width, 6) for at in range(found.bins)]
            yield "similarities", (layer,), list(zip(middles, *shares, strict=False))


def _geometry(result: Result) -> Iterator[tuple[str, tuple[str, ...], Rows]]:
    layers = [result.geometry.layers.get(layer) for layer in LAYERS] if result.geometry is not None else []
    h, z = layers if len(layers) == len(LAYERS) else (None, None)
    if h is None or z is None:
        return
    for column in [column for column in h.purity if column in z.purity]:
        both = zip(h.purity[column].at, z.purity[column].at, strict=False)
        yield "purity", (column,), [(one.neighbours, one.value, other.value) for one, other in both]
    temperatures = [() if each.pairs is None else each.pairs.temperatures for each in (h, z)]
    pairs = list(zip(*temperatures, strict=False))
    counts = [(one.temperature, one.effective_negatives.value, other.effective_negatives.value) for one, other in pairs]
    yield "negatives", (), counts
    for column in pairs[0][0].same_label if pairs else ():
        told = [(one.temperature, one.same_label.get(column), other.same_label.get(column)) for one, other in pairs]
        rows = [(at, *(None if each is None else each.value for each in both)) for at, *both in told]
        yield "gradient", (column,), rows


def _few(result: Result, label: str) -> Iterator[Sequence[float | int | None]]:
    """Accuracy of the linear probe by the labels that it is given."""
    probes = dict.fromkeys(row.probe for row in result.probed.rows) if result.probed is not None else {}
    given = {int(probe[4:]): probe for probe in probes if probe.startswith("few_") and probe[4:].isdigit()}
    for percent, probe in sorted({**given, 100: "linear"}.items()):
        rows = [knn(result, label, layer, UNMOVED, probe) for layer in PROBED]
        yield percent, *(None if row is None else row.accuracy for row in rows)
