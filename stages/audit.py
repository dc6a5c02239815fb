"""Stage audit: what h and z in work/embed/NAME are like, and how they answer to transformations; it judges nothing.

measures.json: numbers that thresholds may name, each with its interval. geometry.json: what stands behind them, by
layer: histograms and gradient mass of pairs, spectra of splits and classes, purity at several k, hubness,
neighbourhoods.
achieved.json: declared invariances and controls at four strengths, the boundary between h and z, what stayed readable.
curation/: lists of samples to look at. With options it audits what came from elsewhere: vectors, encoders, bundles.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.audit import LAYERS, LOSS, Audit
from pipeline.audit.loss import loss_below_log_k
from pipeline.embeddings import Embeddings
from pipeline.rounding import rounded
from pipeline.spec import read_section, read_yaml
from stages import output_folder, output_of, read_json, refusal_before, run, spec_path, write_json, write_refusal

if TYPE_CHECKING:
    from pipeline.achieved.found import Found


def main(arguments: list[str]) -> None:
    """Measure the space that the one argument names, or what the options name."""
    if any(argument.startswith("-") for argument in arguments):  # no stage of the pipeline, so none of its dependencies
        import_module("pipeline.given.command").main(arguments)
        return
    parser = argparse.ArgumentParser(prog="python -m stages.audit", description=__doc__)
    parser.add_argument("name", help="a spec's name or path")
    path = spec_path(parser.parse_args(arguments).name)
    audit = read_section(path, "audit", Audit)
    source, trained = output_of("embed", path.stem), output_of("pretrain", path.stem)
    refused = refusal_before(trained, source)
    if refused is not None:
        write_refusal("audit", path.stem, refused)
        return
    from pipeline.auditing import measure_layer
    from pipeline.auditing.report import Report

    embeddings, report = Embeddings(source), Report()
    for layer in LAYERS:
        measure_layer(embeddings, layer, audit, report)
    report.add(LOSS, "train", loss_below_log_k(read_json(trained / "summary.json")))
    found = transformed(path, audit, embeddings)
    report.measures.update(found.measures)
    with output_folder("audit", path.stem) as folder:
        write_json(folder / "measures.json", rounded(report.content()))
        write_json(folder / "geometry.json", rounded(report.geometry()))
        write_json(folder / "achieved.json", rounded(found.tables))
        curate(path, embeddings, folder)
    print(f"audit {path.stem}: {len(report.measures)} measures")


def transformed(path: Path, audit: Audit, embeddings: Embeddings) -> Found:
    """What the trained space of a spec does with transformations."""
    from pipeline.achieved.achieve import achieve
    from pipeline.achieved.looking import Networks
    from pipeline.machine import read_machine, settle
    from pipeline.probes import Probe
    from pipeline.shards import Shards
    from pipeline.space import LatentSpace

    space: LatentSpace = read_section(path, "space", LatentSpace)
    probe: Probe = read_section(path, "probe", Probe)
    shards = Shards(output_of("shard", read_yaml(path)["data"]))
    trained, checked = output_of("pretrain", path.stem), output_of("check", path.stem)
    machine = read_machine()
    settle(machine)
    described, weights = read_json(trained / "network.json"), trained / "weights.safetensors"
    networks = Networks(described, weights, shards.card.input, machine.chosen_device())
    return achieve(
        space.declared(),
        space.preserves,
        probe.labels,
        shards,
        embeddings,
        networks,
        read_json(checked / "findings.json"),
        audit.samples,
        audit.neighbours,
    )


def curate(path: Path, embeddings: Embeddings, folder: Path) -> None:
    """Write the lists of samples that a person should look at."""
    from pipeline.curation.lists import Space
    from pipeline.curation.writing import write_curation
    from pipeline.shard_names import Names
    from pipeline.shards import Shards

    shards = Shards(output_of("shard", read_yaml(path)["data"]))
    write_curation(folder, Space.of(embeddings), shards.image, Names(shards))


if __name__ == "__main__":
    run(main)
