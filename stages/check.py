"""Check a declaration before training: ``python -m stages.check NAME`` (a name or a path; the spec is validated first).

Reads work/shard/DATA; writes work/check/NAME: findings.json, cost.json, a PNG for each finding that did not pass, a
chart a preserved label, and gate.json, which is all that training reads of it.

Three calls print or draw and write nothing that is tracked: ``--show-views`` draws what every declared invariance does
(work/logs/NAME/views), ``--plan`` measures a few steps and prints what this machine will need, ``--suggest`` tries
every invariance on the data and prints a draft of ``invariances:`` with the evidence.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

from pipeline.check import Finding, cost, gate, gate_file, priors
from pipeline.encoders.structure import on_meta
from pipeline.shards import Shards
from pipeline.showing import show_views
from pipeline.spec import Refusal, SpecError, nearest, read_spec
from pipeline.specification import Specification, faults_of
from pipeline.training_section import unfit
from stages import WORK, output_folder, output_of, run, spec_path, write_json


def main(arguments: list[str]) -> None:
    """Write findings, cost and gate of one spec; a failed check is a result and exits 0."""
    parser = argparse.ArgumentParser(prog="python -m stages.check", description=__doc__)
    parser.add_argument("name", help="a spec's name or path")
    parser.add_argument("--show-views", action="store_true", help="only draw the invariances: work/logs/NAME/views")
    parser.add_argument("--samples", type=int, default=6, help="rows of each picture of --show-views")
    parser.add_argument("--plan", action="store_true", help="only measure a few steps, and print time and memory")
    parser.add_argument("--suggest", action="store_true", help="only try all invariances, and print a draft of them")
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
    shards = Shards(output_of("shard", spec.data))
    reason = unfit(spec.training, shards.card.splits["train"], space=spec.space)
    if reason is not None:
        raise Refusal(f"{path}: {reason}")
    named = {"check.group": [spec.check.group] if spec.check.group is not None else [], "check.words": spec.check.words}
    for place, names in named.items():
        for column in names:
            if column not in shards.card.columns:
                raise Refusal(
                    f"{path}: {place} = {column}: no such label column; {nearest(column, shards.card.columns)}"
                )
    if given.plan:
        from pipeline.check.plan import plan

        print(*plan(spec.space, spec.training, shards, path.stem), sep="\n")
        return
    if given.suggest:
        from pipeline.check.suggest import suggest

        for line in suggest(shards, spec.check, spec.space.preserves, lambda kind: print(kind, file=sys.stderr)):
            print(line, flush=True)
        return
    findings = write(path.stem, spec, shards)
    print(*told(path.stem, findings), sep="\n")


def told(name: str, findings: list[Finding]) -> Iterator[str]:
    """What is printed: all that did not pass, what could not be judged since nothing is moved, and the gate."""
    for finding in findings:
        if finding.verdict not in ("pass", "noted") or finding.finding == "identity":
            yield f"check {name}: {finding.verdict}: {finding.sentence}"
    yield f"check {name}: {gate(findings)}"


def write(name: str, spec: Specification, shards: Shards) -> list[Finding]:
    """Examine a spec and write its folder; how far it is, the standard error shows."""
    from tqdm import tqdm

    from pipeline.check.examine import examine, pictures_of
    from pipeline.check.pictures import draw

    projection = spec.space.projection
    dim = int(on_meta(spec.training.encoder.build).dim) if projection.kind == "none" else projection.dim  # type: ignore[arg-type]
    total = pictures_of(spec.space, spec.check, shards)
    with tqdm(total=total, desc=f"check {name}", unit=shards.card.input.word, mininterval=1.0) as bar:
        shown = examine(spec.space, spec.check, shards, bar.update)
        bar.update(total - bar.n)
    findings: list[Finding] = []
    with output_folder("check", name) as folder:
        for number, each in enumerate(shown):
            finding = each.finding
            if each.picture is not None and finding.verdict not in ("pass", "noted"):
                file = f"{number:03d}-{finding.finding}-{finding.invariance}.png"
                draw(each.picture, folder / file, shards.card.input.pictures)
                finding = replace(finding, picture=file)
            findings.append(finding)
        for label in spec.space.preserves:
            _chart(findings, label, spec, folder)
        write_json(folder / "findings.json", [asdict(finding) for finding in findings])
        card = shards.card
        candidates = spec.space.sampler.candidates(spec.training.global_batch, spec.space.crossed)
        counted = cost(spec.training.global_batch, dim, shares=priors(card, "train"), candidates=candidates)
        write_json(folder / "cost.json", counted)
        write_json(folder / "gate.json", gate_file(findings))
    return findings


def _chart(findings: list[Finding], label: str, spec: Specification, folder: Path) -> None:
    from pipeline.check.chart import draw_kept

    if any(each.preserved == label and each.figure is not None for each in findings):
        draw_kept(findings, label, spec.check.words.get(label, label), folder / f"kept-{label}.png")


if __name__ == "__main__":
    run(main)
