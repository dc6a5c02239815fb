"""Long tables: time and memory of reading many episodes from one Parquet file, in order or mixed row by row.

    python tests/benchmarks/episodes.py 8000          # episodes of 1,000 steps and 8 channels
    python tests/benchmarks/episodes.py 1000 --mixed

The table is made in a temporary folder by another process, so that the peak is that of reading alone.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from pipeline.sources import Episodes, Record

STEPS, CHANNELS, AT_ONCE = 1000, 8, 100


def write(file: Path, count: int, mixed: bool) -> None:
    """A table of ``count`` episodes, a hundred in a row group."""
    import pyarrow as arrow
    from pyarrow import parquet

    random, writer = np.random.default_rng(0), None
    for start in range(0, count, AT_ONCE):
        episode, step = np.meshgrid(np.arange(start, start + AT_ONCE), np.arange(STEPS), indexing="ij")
        columns = {"episode": (episode.T if mixed else episode).ravel(), "t": (step.T if mixed else step).ravel()}
        columns |= {f"x{channel}": random.normal(size=episode.size).astype(np.float32) for channel in range(CHANNELS)}
        table = arrow.table({**columns, "label": (columns["episode"] % 4).astype(str)})
        writer = writer or parquet.ParquetWriter(file, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def main() -> None:
    """Print what reading took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("episodes", type=int)
    parser.add_argument("--mixed", action="store_true")
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    if given.write is not None:
        write(given.write, given.episodes, given.mixed)
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.parquet"
        subprocess.run([sys.executable, *sys.argv, "--write", str(file)], check=True)
        source = Episodes(
            kind="episodes",
            file=None,
            episode="episode",
            time="t",
            uneven=0.01,
            classes=("label",),
            numbers=(),
            split=None,
        )
        before, started = peak(), time.perf_counter()
        names = [f"x{channel}" for channel in range(CHANNELS)]
        kept = sum(isinstance(item, Record) for item in source.records(file, names))
        took, size = time.perf_counter() - started, file.stat().st_size / 2**20
        print(f"{kept} episodes, {kept * STEPS / 1e6:g} million rows, {size:.0f} MiB: {took:.1f} s")
        print(f"memory above the start: {peak() - before:.0f} MiB")


def peak() -> float:
    """Most memory that this process has had, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
