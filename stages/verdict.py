"""Say whether every spec went through: ``python -m stages.verdict``; exits 1 and names the refused ones.

No stage depends on it, so that everything else, the report included, is made before it fails.
"""

from __future__ import annotations

import argparse
import os

from pipeline.index import read_index
from pipeline.spec import Refusal
from stages import SPECS, output_folder, output_of, refusal_before, run, write_json


def main(arguments: list[str]) -> None:
    """Name every refused spec on a line of its own, or write work/verdict/all."""
    argparse.ArgumentParser(prog="python -m stages.verdict", description=__doc__).parse_args(arguments)
    lines = []
    names = sorted(read_index(SPECS).specs)
    for name in names:
        exported = output_of("export", name)
        refused = refusal_before(exported)
        if refused is None and not exported.is_dir():
            refused = {"stage": "verdict", "reason": "nothing was exported yet; run `dvc repro`"}
        if refused is not None:
            lines.append(f"{name}: refused by {refused['stage']}: {refused['reason']}")
    if lines:
        lines.append("work/report.html explains it")
        if "DVC_EXP_BASELINE_REV" in os.environ:  # DVC forgets an experiment with a stage that failed
            lines.append("to keep a refused experiment: dvc exp run report, which asks for no verdict")
        raise Refusal("\n".join(lines))
    with output_folder("verdict", "all") as folder:
        write_json(folder / "verdict.json", {"refused": []})
    print(f"every space went through: {', '.join(names)}")


if __name__ == "__main__":
    run(main)
