"""Hand an encoder over: ``python -m stages.export NAME``.

Reads work/pretrain/NAME, the index of work/shard/DATA, h of the test images in work/embed/NAME, the gates of
work/check/NAME and work/judge/NAME; writes the bundle work/export/NAME: encoder.safetensors (without the projection)
and card.json, with a summary of h that later data can be held against (``audit --bundle``).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pipeline.audit.estimate import NotComputable
from pipeline.bundle import write_bundle
from pipeline.drift import summary
from pipeline.embeddings import Embeddings
from pipeline.export import Export
from pipeline.network import trained_network
from pipeline.shards import Shards
from pipeline.space import LatentSpace
from pipeline.spec import read_section, read_yaml
from stages import output_folder, output_of, read_json, refusal_before, run, spec_path, write_refusal


def main(arguments: list[str]) -> None:
    """Write the bundle of one spec, or why it may not leave."""
    parser = argparse.ArgumentParser(prog="python -m stages.export", description=__doc__)
    parser.add_argument("name", help="a spec's name or path")
    path = spec_path(parser.parse_args(arguments).name)
    name = path.stem
    trained, checked, judged = output_of("pretrain", name), output_of("check", name), output_of("judge", name)
    embedded = output_of("embed", name)
    refused = refusal_before(trained, embedded, judged)
    if refused is None and read_json(judged / "gate.json")["gate"] == "fail":
        refused = {"stage": "judge", "reason": f"the audit failed a declared threshold; see work/judge/{name}"}
    if refused is not None:
        write_refusal("export", name, refused)
        return
    space: LatentSpace = read_section(path, "space", LatentSpace)
    words: Export = read_section(path, "export", Export)
    card = Shards(output_of("shard", read_yaml(path)["data"])).card
    described = read_json(trained / "network.json")
    network = trained_network(described, trained / "weights.safetensors")
    layer = {key: value for key, value in described.items() if key not in ("projection", "views")}
    with output_folder("export", name) as folder:
        write_bundle(
            folder,
            network,
            {
                "name": name,
                "description": words.description,
                "licence": words.licence,
                "space": space.model_dump(mode="json"),
                "space_identity": space.identity(),
                "network": layer,
                "layer": "h",
                "input": card.input.model_dump(mode="json"),
                "data": {"name": card.name, "fingerprint": card.fingerprint, "splits": card.splits},
                "check": read_json(checked / "findings.json"),
                "audit": read_json(judged / "verdict.json"),
                "training": read_json(trained / "summary.json"),
                "reference": _reference(embedded),
            },
        )
    print(f"export {name}: work/export/{name}")


def _reference(embedded: Path) -> dict[str, Any] | None:
    """A summary of h of the test images; None where the space is too broken to have one."""
    try:
        return summary(Embeddings(embedded).features("test", "h")).model_dump(mode="json")
    except NotComputable:
        return None


if __name__ == "__main__":
    run(main)
