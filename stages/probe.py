"""Stage probe: what a kNN and a linear probe read from work/embed/NAME, into work/probe/NAME/figures.json.

Every label column of ``probe.labels``, on the test images as they are (test) and moved by the declared invariances
(view0), from h and z beside three controls. The table that it prints is of the moved images.
"""

from __future__ import annotations

import argparse
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
    rows = [row for layer in LAYERS for row in probe_layer(embeddings, layer, probe)]
    with output_folder("probe", path.stem) as folder:
        write_json(folder / "figures.json", rounded({"rows": rows}))
    for row in rows:
        if row["split"] == "view0" and row["control"] is None:
            print(_line(row))


def _line(row: dict[str, Any]) -> str:
    name = f"{row['label']:<16} {row['probe']:<7} {row['layer']:<10}"
    if row["accuracy"] is None:
        return f"{name} {row['note']}"
    return f"{name} {row['accuracy']:6.1%}  ({row['low']:.1%} to {row['high']:.1%}; chance {row['chance']:.1%})"


if __name__ == "__main__":
    run(main)
