"""Hand an encoder over: ``python -m stages.export NAME``.

Reads work/pretrain/NAME, work/shard/DATA, h of the test images in work/embed/NAME, the gates of work/check/NAME and
work/judge/NAME; writes the bundle work/export/NAME: encoder.safetensors, projection.safetensors, card.json, README.md,
and where the spec says so model.onnx. The card has a summary of h that later data can be held against (``audit
--bundle``).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.audit.estimate import NotComputable
from pipeline.bundle.writing import write_bundle
from pipeline.drift import summary
from pipeline.embeddings import Embeddings
from pipeline.export import Export
from pipeline.images import Pixels
from pipeline.network import trained_network
from pipeline.shards import Shards
from pipeline.space import LatentSpace
from pipeline.spec import read_section, read_yaml
from pipeline.versions import versions
from stages import output_folder, output_of, read_json, refusal_before, run, spec_path, write_refusal

GRAPH_ON = 33
"""test images that the ONNX graph is compared with the network on"""
MADE_BY = ("latent-space-pipeline", "torch", "torchvision", "timm", "numpy", "safetensors")


def main(arguments: list[str]) -> None:
    """Write the bundle of one spec, or why it may not leave."""
    parser = argparse.ArgumentParser(prog="python -m stages.export", description=__doc__)
    parser.add_argument("name", help="a spec's name or path")
    path = spec_path(parser.parse_args(arguments).name)
    name = path.stem
    trained, checked, judged = output_of("pretrain", name), output_of("check", name), output_of("judge", name)
    embedded = output_of("embed", name)
    refused = refusal_before(trained, embedded, judged)
    for stage, folder in (("judge", judged), ("check", checked)):
        if refused is None and read_json(folder / "gate.json")["gate"] == "fail":
            what = "the check found a contradiction" if stage == "check" else "the audit failed a declared threshold"
            refused = {"stage": stage, "reason": f"{what}; see work/{stage}/{name}"}
    if refused is not None:
        write_refusal("export", name, refused)
        return
    space: LatentSpace = read_section(path, "space", LatentSpace)
    words: Export = read_section(path, "export", Export)
    if words.onnx:
        from pipeline.bundle.graph import refuse_without_packages

        refuse_without_packages()
    shards = Shards(output_of("shard", read_yaml(path)["data"]))
    described = read_json(trained / "network.json")
    network = trained_network(described, trained / "weights.safetensors")
    findings, verdict = read_json(checked / "findings.json"), read_json(judged / "verdict.json")
    card = {
        "name": name,
        "description": words.description,
        "licence": words.licence,
        "space": space.model_dump(mode="json"),
        "space_identity": space.identity(),
        "ignores": [
            {"invariance": each.model_dump(mode="json"), "removes": sorted(each.removes)} for each in space.declared()
        ],
        "network": {key: value for key, value in described.items() if key not in ("projection", "views")},
        "input": shards.card.input.model_dump(mode="json"),
        "data": _data(shards),
        "check": findings,
        "audit": verdict,
        "accepted": _accepted(findings, verdict),
        "training": read_json(trained / "summary.json"),
        "trained_with": read_yaml(path)["training"],
        "reference": _reference(embedded),
        "versions": versions(MADE_BY),
    }
    with output_folder("export", name) as folder:
        write_bundle(folder, network, card, words.projection, _canvases(shards) if words.onnx else None)
    graph = "with model.onnx" if words.onnx else "no model.onnx (export.onnx is false)"
    print(f"export {name}: work/export/{name}, {graph}")


def _data(shards: Shards) -> dict[str, Any]:
    """The data as the card has it: fingerprint, counts, and how often each class occurs, by which objectives go."""
    card = shards.card
    columns = {
        name: {"classes": column.classes, "counts": column.counts, "prior": column.agreement}
        for name, column in card.columns.items()
        if column.kind == "class"
    }
    return {"name": card.name, "fingerprint": card.fingerprint, "splits": card.splits, "columns": columns}


def _accepted(findings: list[dict[str, Any]], verdict: dict[str, Any]) -> list[str]:
    """What was found against the space and accepted, each with its reason, in a sentence."""
    found = [str(row["sentence"]) for row in findings if row["verdict"] == "accepted"]
    return found + [
        f"{row['measure']} = {row['value']} fails its threshold; accepted: {row['accepted']}"
        for row in verdict["rows"]
        if row["accepted"] is not None
    ]


def _canvases(shards: Shards) -> Sequence[Pixels]:
    count = min(GRAPH_ON, shards.card.splits["test"])
    return list(shards.canvases("test", np.arange(count)))


def _reference(embedded: Path) -> dict[str, Any] | None:
    """A summary of h of the test images; None where the space is too broken to have one."""
    try:
        return summary(Embeddings(embedded).features("test", "h")).model_dump(mode="json")
    except NotComputable:
        return None


if __name__ == "__main__":
    run(main)
