"""Check a declaration before training: ``python -m stages.check NAME`` (a name or a path; the spec is validated first).

Reads work/shard/DATA; writes work/check/NAME: findings.json, cost.json, and gate.json, which is all that training
reads of it. With ``--show-views`` it only draws what every declared invariance does: work/logs/NAME/views.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

from pipeline.check import contradictions, cost, gate, priors
from pipeline.encoders.structure import on_meta
from pipeline.shards import Shards
from pipeline.showing import show_views
from pipeline.spec import Refusal, SpecError, read_spec
from pipeline.specification import Specification, faults_of
from pipeline.training import unfit
from stages import WORK, output_folder, output_of, run, spec_path, write_json


def main(arguments: list[str]) -> None:
    """Write findings, cost and gate of one spec; a failed check is a result and exits 0."""
    parser = argparse.ArgumentParser(prog="python -m stages.check", description=__doc__)
    parser.add_argument("name", help="a spec's name or path")
    parser.add_argument("--show-views", action="store_true", help="only draw the invariances: work/logs/NAME/views")
    parser.add_argument("--samples", type=int, default=6, help="rows of each picture")
    given = parser.parse_args(arguments)
    path = spec_path(given.name)
    faults = faults_of(path)
    if faults:
        raise SpecError(faults)
    spec: Specification = read_spec(path, Specification)
    if given.show_views:
        shards, folder = Shards(output_of("shard", spec.data)), WORK / "logs" / path.stem / "views"
        print(*show_views(spec.space, shards, folder, given.samples), sep="\n")
        return
    card = Shards(output_of("shard", spec.data)).card
    reason = unfit(spec.training, card.splits["train"])
    if reason is not None:
        raise Refusal(f"{path}: {reason}")

    findings = list(contradictions(spec.space, spec.check))
    projection = spec.space.projection
    dim = int(on_meta(spec.training.encoder.build).dim) if projection.kind == "none" else projection.dim  # type: ignore[arg-type]
    with output_folder("check", path.stem) as folder:
        write_json(folder / "findings.json", [asdict(finding) for finding in findings])
        write_json(folder / "cost.json", cost(spec.training.global_batch, dim, shares=priors(card, "train")))
        write_json(folder / "gate.json", {"gate": gate(findings)})
    for finding in findings:
        print(f"check {path.stem}: {finding.verdict}: {finding.sentence}")
    print(f"check {path.stem}: {gate(findings)}")


if __name__ == "__main__":
    run(main)
