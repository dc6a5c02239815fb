"""Validate every spec before any output is touched: ``python -m stages.validate [NAME …]`` (all of the index if none).

With ``--resolved`` it prints the specs as they are understood, presets written out; with ``--schema`` it writes
specs/schema.json, which editors read.
"""

from __future__ import annotations

import argparse

from pipeline.machine import read_machine
from pipeline.spec import Fault, SpecError, read_spec
from pipeline.specification import Specification, all_faults, faults_of, resolved, schema
from pipeline.trackers import check_loggers
from stages import SPECS, output_folder, run, spec_path, write_json


def main(arguments: list[str]) -> None:
    """Print every fault of every spec and exit 1, or write work/validate/specs."""
    parser = argparse.ArgumentParser(prog="python -m stages.validate", description=__doc__)
    parser.add_argument("names", nargs="*", help="spec names or paths; all of specs/index.yaml if none")
    parser.add_argument("--resolved", action="store_true", help="print the named specs with presets written out")
    parser.add_argument("--schema", action="store_true", help="write specs/schema.json")
    chosen = parser.parse_args(arguments)
    if chosen.schema:
        (SPECS / "schema.json").write_text(schema(), encoding="utf-8")
        print(f"wrote {SPECS / 'schema.json'}")
        return
    if chosen.resolved and not chosen.names:
        parser.error("--resolved: name the specs")
    if chosen.names:
        faults = [fault for name in chosen.names for fault in faults_of(spec_path(name))]
    else:
        faults = all_faults(SPECS)
    faults += machine_faults()
    if faults:
        raise SpecError(dict.fromkeys(faults))
    if chosen.resolved:
        print("---\n".join(resolved(read_spec(spec_path(name), Specification)) for name in chosen.names), end="")
        return
    if chosen.names:
        print(f"{', '.join(chosen.names)}: valid")
        return
    with output_folder("validate", "specs") as folder:
        write_json(folder / "valid.json", {"valid": True})  # no names, so that a new spec reruns nothing else
    print("every spec is valid")


def machine_faults() -> list[Fault]:
    """What is wrong with machine.yaml and the LATENT_* variables: told before the hours that lead to the training."""
    try:
        machine = read_machine()
    except SpecError as error:
        return list(error.faults)
    check_loggers(machine.loggers)
    machine.chosen_device()
    return []


if __name__ == "__main__":
    run(main)
