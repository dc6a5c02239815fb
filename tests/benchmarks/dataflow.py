"""Time the default dataflow: ``python tests/benchmarks/dataflow.py``.

Clones the committed state into a temporary folder, runs ``dvc repro`` twice there, and prints both wall times beside
the goals (240 s and 2.5 s on 2 cores), the slowest stages, and the figures that the first run printed.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def repro(folder: Path) -> tuple[float, list[tuple[float, str]], str]:
    """Run ``dvc repro``; return wall seconds, (seconds, stage) of each stage, and all that it printed."""
    started = time.monotonic()
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        ["dvc", "repro"], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    lines, begun = [], []
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line)
        found = re.search(r"Running stage '([^']+)'", line)
        if found:
            begun.append((time.monotonic(), found[1]))
    if process.wait():
        raise SystemExit("".join(lines))
    ended = time.monotonic()
    ends = [moment for moment, _ in begun[1:]] + [ended] * bool(begun)
    return (
        ended - started,
        [(end - moment, name) for (moment, name), end in zip(begun, ends, strict=True)],
        "".join(lines),
    )


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "clone"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
        first, stages, printed = repro(folder)
        second, again, _ = repro(folder)
    print(f"| cores | {len(os.sched_getaffinity(0))} | |")
    print(f"| first dvc repro | {first:.0f} s | goal 240 s |")
    print(f"| second dvc repro | {second:.1f} s, {len(again)} stages run | goal 2.5 s, 0 stages |")
    for seconds, name in sorted(stages, reverse=True)[:6]:
        print(f"| {name} | {seconds:.1f} s | |")
    print("".join(printed.partition("> python -m stages.report\n")[2].splitlines(keepends=True)[:40]))


if __name__ == "__main__":
    main()
