"""Ten thousand random corruptions of a bundle: how many are refused, and that none is accepted or crashes.

    python tests/benchmarks/bundle_damage.py          # writes results/bundle_damage.json

A bundle of the small encoder is written into a temporary folder and corrupted as ``tests/corrupted.py`` does it; every
corrupted bundle is opened, and where it opens, its h and z of two pictures are compared with those of the whole one.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--output", type=Path, default=HERE / "results" / "bundle_damage.json")
    given = parser.parse_args()
    import torch
    from bundled import bundled
    from corrupted import FILES, corrupt, tally
    from small import pictures

    torch.set_num_threads(1)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        folder, _ = bundled(Path(place) / "bundle")
        source = {name: (folder / name).read_bytes() for name in FILES}
        kinds = Counter(corrupt(source, number)[0] for number in range(given.count))
        counts, faults = tally(folder, range(given.count), pictures([(16, 12), (9, 20)], 3))
    found = {
        "corruptions": given.count,
        "by kind": dict(sorted(kinds.items())),
        "refused": counts["refused"],
        "the same encoder": counts["unchanged"],
        "changed weights accepted": counts["accepted"],
        "crashes": counts["crashed"],
        "faults": faults,
    }
    given.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))
    print(f"{time.monotonic() - started:.0f} s")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
