"""Stage judge: the thresholds of ``audit`` against what audit and probe measured, into work/judge/NAME.

It reads two small JSON files, so a changed threshold is judged again at once. ``verdict.json`` says what was demanded
(with the hash of the demands), what was found and what follows; ``gate.json`` is all that export reads of it. With
``--when`` it judges nothing, but says whether the thresholds of the verdict stood in the spec when the training began.
"""

from __future__ import annotations

import argparse
from typing import Any

from pipeline.audit import Audit
from pipeline.audit.judge import Measured, judge
from pipeline.declared import declared_when
from pipeline.declared_log import digest_of
from pipeline.spec import Refusal, read_section
from stages import WORK, output_folder, output_of, read_json, refusal_before, run, spec_path, write_json, write_refusal


def main(arguments: list[str]) -> None:
    """Judge the space that the one argument names."""
    parser = argparse.ArgumentParser(prog="python -m stages.judge", description=__doc__)
    parser.add_argument("name", help="a spec's name or path")
    parser.add_argument("--when", action="store_true", help="whether the thresholds were declared before the training")
    given = parser.parse_args(arguments)
    path = spec_path(given.name)
    audit = read_section(path, "audit", Audit)
    if given.when:
        print(*_when(path.stem, audit), sep="\n")
        return
    audited, probed = output_of("audit", path.stem), output_of("probe", path.stem)
    refused = refusal_before(audited, probed)
    if refused is not None:
        write_refusal("judge", path.stem, refused)
        return
    measured = collect(read_json(audited / "measures.json"), read_json(probed / "figures.json"))
    verdict, gate = judge(audit, measured, f"{path}: audit")
    with output_folder("judge", path.stem) as folder:
        write_json(folder / "verdict.json", verdict)
        write_json(folder / "gate.json", {"gate": gate})
    print(f"judge {path.stem}: {verdict['verdict']} ({len(verdict['rows'])} thresholds), gate {gate}")
    for row in verdict["rows"]:
        if row["verdict"] != "passed":
            print(f"  {_line(row)}")
    for reason in verdict["reasons"]:
        print(f"  {reason['sentence']}")


def collect(measures: dict[str, Any], figures: dict[str, Any]) -> dict[str, Measured]:
    """Name every measure of measures.json and every row of figures.json that is no shuffled control."""
    found = {
        name: Measured(entry["value"], entry["low"], entry["high"], entry["note"])
        for name, entry in measures["measures"].items()
    }
    for row in figures["rows"]:
        if row["control"] is None:
            name = f"probe.{row['label']}.{row['probe']}.{row['layer']}"
            name += "" if row["split"] == "test" else f".{row['split']}"
            found[name] = Measured(row["accuracy"], row["low"], row["high"], row["note"])
    for row in figures.get("numbers", ()):
        if row["control"] is None:
            end = row["layer"] + ("" if row["split"] == "test" else f".{row['split']}")
            for measure in ("r2", "mae"):
                found[f"probe.{row['label']}.{measure}.{end}"] = Measured(
                    row[measure], row[f"{measure}_low"], row[f"{measure}_high"], row["note"]
                )
    return found


def _when(name: str, audit: Audit) -> list[str]:
    """Whether the thresholds of a verdict stood when its training began, on one line; then what was changed."""
    judged, trained = output_of("judge", name), output_of("pretrain", name)
    refused = refusal_before(trained, judged)
    if refused is not None:
        raise Refusal(f"judge {name}: there is no verdict; {refused['stage']} refused it: {refused['reason']}")
    if read_json(judged / "verdict.json")["thresholds"] != audit.fingerprint():
        raise Refusal(f"judge {name}: the verdict is of other thresholds than the spec's; run `dvc repro judge@{name}`")
    weights = trained / "weights.safetensors"
    if not weights.is_file():
        raise Refusal(f"{weights}: not there; `dvc checkout` brings it back, `dvc repro` makes it anew")
    found = declared_when(WORK / "logs" / name, digest_of(weights), audit.thresholds)
    first = f"judge {name}: thresholds {audit.fingerprint()[:8]}, {found.told}"
    return [first, *(f"  {line}" for line in found.changes)]


def _line(row: dict[str, Any]) -> str:
    bound = f"at least {row['at_least']:g}" if "at_least" in row else f"at most {row['at_most']:g}"
    value = row["note"] if row["value"] is None else f"{row['value']:g}"
    if row["low"] is not None:
        value += f" ({row['low']:g} to {row['high']:g})"
    accepted = f"; accepted: {row['accepted']}" if row["accepted"] else ""
    return f"{row['verdict']}: {row['measure']} = {value}, demanded {bound}{accepted}"


if __name__ == "__main__":
    run(main)
