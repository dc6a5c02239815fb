"""Stage judge: the thresholds of ``audit`` against what audit and probe measured, into work/judge/NAME.

It reads two small JSON files, so a changed threshold is judged again at once. ``verdict.json`` says what was demanded
(with the hash of the demands), what was found and what follows; ``gate.json`` is all that export reads of it.
"""

from __future__ import annotations

import argparse
from typing import Any

from pipeline.audit import Audit
from pipeline.audit.judge import Measured, judge
from pipeline.spec import read_section
from stages import output_folder, output_of, read_json, refusal_before, run, spec_path, write_json, write_refusal


def main(arguments: list[str]) -> None:
    """Judge the space that the one argument names."""
    parser = argparse.ArgumentParser(prog="python -m stages.judge", description=__doc__)
    parser.add_argument("name", help="a spec's name or path")
    path = spec_path(parser.parse_args(arguments).name)
    audit = read_section(path, "audit", Audit)
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
    return found


def _line(row: dict[str, Any]) -> str:
    bound = f"at least {row['at_least']:g}" if "at_least" in row else f"at most {row['at_most']:g}"
    value = row["note"] if row["value"] is None else f"{row['value']:g}"
    if row["low"] is not None:
        value += f" ({row['low']:g} to {row['high']:g})"
    accepted = f"; accepted: {row['accepted']}" if row["accepted"] else ""
    return f"{row['verdict']}: {row['measure']} = {value}, demanded {bound}{accepted}"


if __name__ == "__main__":
    run(main)
