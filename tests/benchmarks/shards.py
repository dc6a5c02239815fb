"""How fast raw data becomes shards, in how much memory, and how fast shards are read beside webdataset's stream.

``python tests/benchmarks/shards.py [FOLDER]``; FOLDER holds cifar10_train.tar.gz and cifar10_test.tar.gz (60,000 JPEG
files of 32x32); without it, ../shared/data/natural is taken, and where that is absent too only reading is timed. All
cores that the process may use are taken, as by the stage (LATENT_WORKERS). Files are in the page cache.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
PICTURES, BYTES = 20_000, 6_000


def main() -> None:
    """Print the figures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "../shared/data/natural"
    with tempfile.TemporaryDirectory() as place:
        if (folder / "cifar10_train.tar.gz").is_file():
            sharding(folder.resolve(), Path(place))
        reading(Path(place))


def sharding(raw: Path, place: Path) -> None:
    """Time the stage on CIFAR-10 as a user runs it, and watch the memory of it and of its decoding processes."""
    (place / "specs" / "data").mkdir(parents=True)
    text = (ROOT / "specs" / "examples" / "data" / "cifar10.yaml").read_text()
    (place / "specs" / "data" / "cifar10.yaml").write_text(text)
    (place / "specs" / "index.yaml").write_text(f"data:\n  cifar10: {{raw: {raw}}}\nspecs: {{}}\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    started = time.perf_counter()
    stage = subprocess.Popen(
        [sys.executable, "-m", "stages.shard", "cifar10"],
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    curve: list[tuple[float, float]] = []

    def watch() -> None:
        while stage.poll() is None:
            curve.append((time.perf_counter() - started, memory(stage.pid)))
            time.sleep(0.2)

    watcher = threading.Thread(target=watch)
    watcher.start()
    said, _ = stage.communicate()
    took = time.perf_counter() - started
    watcher.join()
    print(said.strip())
    quarters = [max((mib for at, mib in curve if q <= 4 * at / took < q + 1), default=0.0) for q in range(4)]
    print(f"sharding: {took:.1f} s ({60_000 / took:.0f}/s) on {len(os.sched_getaffinity(0))} cores, load {load()}")
    print(
        f"peak memory of all its processes, by quarter of the time: {', '.join(f'{mib:.0f}' for mib in quarters)} MiB"
    )


def memory(process: int) -> float:
    """Proportional set size of a process and all its descendants, MiB."""
    total = 0.0
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
                if int(path.name) == process:
                    lines = (path / "smaps_rollup").read_text().splitlines()
                    total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
                elif parent == process:
                    total += memory(int(path.name))
            except (OSError, StopIteration):
                continue
    return total


def load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


def reading(place: Path) -> None:
    """Random reads through the index beside webdataset's stream of the same shards, one process, no decoding."""
    import webdataset

    from pipeline.data import DataSpec
    from pipeline.images import encode_png
    from pipeline.sharding import shard
    from pipeline.shards import Shards
    from pipeline.spec import parse

    noise = np.random.default_rng(0)
    with tarfile.open(place / "noise.tar", "w") as tar:
        for number in range(PICTURES):
            content = encode_png(noise.integers(0, 256, (44, BYTES // 44 // 3, 3), dtype=np.uint8))
            info = tarfile.TarInfo(f"{number}.png")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    plain = {
        "source": {"kind": "archive", "train": None, "test": None, "classes": None},
        "input": {"height": 44, "width": 44, "channels": 3, "fit": "resize"},
        "split": {"test": 0.01, "seed": 0},
        "labels": [],
    }
    (place / "noise").mkdir()
    shard(parse(plain, DataSpec, "noise"), "noise", place / "noise.tar", place / "noise", most=1000)
    shards = Shards(place / "noise")
    count = shards.card.splits["train"]
    urls = [str(place / "noise" / file.file) for file in shards.card.shards if file.split == "train"]
    ours, theirs = [], []
    for round_number in range(5):
        order = np.random.default_rng(round_number).permutation(count).tolist()
        started = time.perf_counter()
        size = sum(len(shards.read("train", index)) for index in order)
        ours.append(count / (time.perf_counter() - started))
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            stream = webdataset.WebDataset(urls, shardshuffle=False)
            assert sum(len(sample["png"]) for sample in stream) == size
        theirs.append(count / (time.perf_counter() - started))
    ratios = sorted(mine / other for mine, other in zip(ours, theirs, strict=True))
    print(f"reading {count} pictures of {size / count / 1000:.1f} KB, 5 rounds interleaved, load {load()}")
    print(f"  random order through the index: {max(ours):.0f}/s; webdataset, its stream: {max(theirs):.0f}/s")
    print(f"  ratio of a round: median {ratios[2]:.1f}, least {ratios[0]:.1f}, most {ratios[-1]:.1f}")


if __name__ == "__main__":
    main()
