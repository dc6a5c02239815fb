"""Stage probe: what probes read from work/embed/NAME, into work/probe/NAME/figures.json.

Every label column of ``probe.labels``, on the test images as they are (test) and moved by the declared invariances
(view0), from h and z beside three controls. The table that it prints is of the moved images.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import Any

from pipeline.embeddings import Embeddings
from pipeline.probes import LAYERS, Probe
from pipeline.rounding import rounded
from pipeline.spec import read_section
from stages import output_folder, output_of, refusal_before, run, spec_path, write_json, write_refusal


def main(arguments: list[str]) -> None:
    """Probe the space that the one argument names."""
    parser = argparse.ArgumentParser(prog="python -m stages.probe", description=__doc__)
    parser.add_argument("name", help="a spec's name or path")
    path = spec_path(parser.parse_args(arguments).name)
    probe, source = read_section(path, "probe", Probe), output_of("embed", path.stem)
    refused = refusal_before(source)
    if refused is not None:
        write_refusal("probe", path.stem, refused)
        return
    from pipeline.probing import check_columns, probe_layer

    embeddings = Embeddings(source)
    check_columns(probe, embeddings.columns, path)
    found = [probe_layer(embeddings, layer, probe) for layer in LAYERS]
    rows, numbers = ([row for part in parts for row in part] for parts in zip(*found, strict=True))
    with output_folder("probe", path.stem) as folder:
        write_json(folder / "figures.json", rounded({"rows": rows, "numbers": numbers}))
    for line in (*_table(rows, "accuracy", "chance"), *_table(numbers, "r2", "chance_r2")):
        print(line)


def _table(rows: Iterable[dict[str, Any]], value: str, chance: str) -> Iterator[str]:
    """A line for each label and probe, the layers side by side; then why figures are missing."""
    lines: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for row in rows:
        if row["split"] == "view0" and row["control"] is None:
            lines.setdefault((row["label"], row["probe"]), {})[row["layer"]] = row
    if not lines:
        return
    yield f"{value:<26}" + "".join(f"{layer:>22}" for layer in LAYERS) + f"{'chance':>9}"
    for (label, probe), layers in sorted(lines.items(), key=lambda line: line[0][0]):
        cells = "".join(f"{_cell(layers[layer], value):>22}" for layer in LAYERS)
        known = next((row[chance] for row in layers.values() if row[chance] is not None), None)
        end = "" if known is None else f"{known:9.2f}" if value == "r2" else f"{known:9.1%}"
        yield f"{_plain(label):<18}{probe:<8}{cells}{end}"
    for (label, probe), layers in lines.items():
        for layer, row in layers.items():
            if row[value] is None:
                yield _plain(f"{label} {probe} {layer}: {row['note']}")


def _cell(row: dict[str, Any], value: str) -> str:
    if row[value] is None:
        return "-"
    low, high = (row["low"], row["high"]) if value == "accuracy" else (row["r2_low"], row["r2_high"])
    if value == "r2":
        return f"{row[value]:.2f} ({low:.2f} to {high:.2f})"
    return f"{row[value]:.1%} ({low:.0%} to {high:.0%})"


def _plain(text: str) -> str:
    """A text on one line: what a terminal would act upon is shown as its escape."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


if __name__ == "__main__":
    run(main)
