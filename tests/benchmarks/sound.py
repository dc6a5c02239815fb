"""How many hours of sound become shards, and are read as windows, in what time and in how much memory.

``python tests/benchmarks/sound.py [HOURS] [FOLDER]`` makes HOURS (1) of synthetic recordings in FOLDER (a temporary
one), a third each WAV at 16 kHz, WAV at 44.1 kHz and FLAC at 16 kHz, of ten minutes, shards them onto clips of 4 s at
16 kHz as the stage does, and then reads batches of random windows, two views a recording, as training does. The peak is
that of the process and its decoding processes together.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))
MINUTES, BATCH, BATCHES = 10, 64, 20
DATA = """
source: {kind: folder, train: null, test: null, classes: null, names: null}
manifest: null
input: {kind: audio, rate: 16000, seconds: 4.0, channels: 1, mix: mean, longer: centre, shorter: centre}
split: {test: 0.1, seed: 0}
labels: []
"""


def main() -> None:
    """Print the figures."""
    hours = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as place:
        folder = Path(place)
        count = round(hours * 60 / MINUTES)
        made(folder / "raw", count)
        size = sum(file.stat().st_size for file in (folder / "raw").iterdir())
        print(f"{count * MINUTES / 60:g} hours in {count} files, {size / 2**30:.2f} GiB", flush=True)
        sharding(folder)
        reading(folder)


def made(folder: Path, count: int) -> None:
    """Recordings of noise under a moving tone; each differs."""
    import soundfile

    folder.mkdir()
    random = np.random.default_rng(0)
    for number in range(count):
        rate = (16_000, 44_100, 16_000)[number % 3]
        second = np.arange(rate) / rate
        pieces = [
            0.2 * np.sin(2 * np.pi * (200 + 40 * np.sin(minute)) * second) + 0.05 * random.normal(size=rate)
            for minute in range(60)
        ]
        minute = np.concatenate(pieces).astype(np.float32)
        name = f"{number:05}.{'flac' if number % 3 == 2 else 'wav'}"
        with soundfile.SoundFile(folder / name, "w", rate, 1, "PCM_16") as file:
            for start in range(MINUTES):
                file.write(np.roll(minute, 977 * start))


def sharding(place: Path) -> None:
    """Run the stage as a user does, and watch the memory of it and of its processes."""
    (place / "specs" / "data").mkdir(parents=True)
    (place / "specs" / "data" / "sounds.yaml").write_text(DATA)
    (place / "specs" / "index.yaml").write_text("data:\n  sounds: {raw: raw}\nspecs: {}\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    started = time.perf_counter()
    command = [sys.executable, "-m", "stages.shard", "sounds"]
    stage = subprocess.Popen(command, cwd=place, env=environment, stderr=subprocess.DEVNULL)
    peak = [0.0]

    def watch() -> None:
        while stage.poll() is None:
            peak[0] = max(peak[0], memory(stage.pid))
            time.sleep(0.1)

    watcher = threading.Thread(target=watch)
    watcher.start()
    stage.wait()
    watcher.join()
    assert stage.returncode == 0
    print(f"sharded in {time.perf_counter() - started:.1f} s, peak {peak[0]:.0f} MiB", flush=True)


def memory(process: int) -> float:
    """MiB that a process and its descendants hold."""
    total, todo = 0.0, [process]
    while todo:
        each = todo.pop()
        try:
            status = Path(f"/proc/{each}/status").read_text()
            todo += [int(child) for child in Path(f"/proc/{each}/task/{each}/children").read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS")), 0.0)
    return total


def reading(place: Path) -> None:
    """Random windows of random recordings, two views each."""
    import torch

    from pipeline.loading import ViewLoader
    from pipeline.shards import Shards
    from pipeline.views import Window
    from pipeline.views.audio import Gain, TimeShift
    from pipeline.views.roles import Role

    torch.set_num_threads(1)
    shards = Shards(place / "work" / "shard" / "sounds")
    views: tuple[Any, ...] = (Window(), TimeShift(ms=60), Gain(db=6))
    before = memory(os.getpid())
    loader = ViewLoader(shards, "train", [Role("view", (0, 1), views)], 0, workers=1)
    random, count = np.random.default_rng(0), shards.card.splits["train"]
    started, peak = time.perf_counter(), before
    done = 0
    for _ in range(BATCHES):
        loader.views(0, random.integers(0, count, BATCH))
        done += 1
        peak = max(peak, memory(os.getpid()))
        if time.perf_counter() - started > 30:
            break
    rate = done * BATCH * 2 / (time.perf_counter() - started)
    print(f"read {rate:,.0f} windows of 4 s a second, {peak - before:.0f} MiB above {before:.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
