"""Check a declaration before training: ``python -m stages.check NAME`` (a name or a path; the spec is validated first).

Reads work/shard/DATA; writes work/check/NAME: findings.json, cost.json, and gate.json, which is all that training
reads of it.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

from pipeline.check import contradictions, cost, gate, priors
from pipeline.encoders.structure import on_meta
from pipeline.shards import Shards
from pipeline.spec import Refusal, SpecError, read_spec
from pipeline.specification import Specification, faults_of
from pipeline.training import unfit
from stages import output_folder, output_of, run, spec_path, write_json


def main(arguments: list[str]) -> None:
    """Write findings, cost and gate of one spec; a failed check is a result and exits 0."""
    parser = argparse.ArgumentParser(prog="python -m stages.check", description=__doc__)
    parser.add_argument("name", help="a spec's name or path")
    path = spec_path(parser.parse_args(arguments).name)
    faults = faults_of(path)
    if faults:
        raise SpecError(faults)
    spec: Specification = read_spec(path, Specification)
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
