"""shard: raw data to webdataset tars with card, index and ledger in work/shard/NAME.

Reads specs/data/NAME.yaml and the raw path that specs/index.yaml gives it (the placeholder specs/none for embedded
sources). The bytes written are a function of both. Where a data set is refused, work/logs/NAME/shard_ledger.json tells
what became of its files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from tqdm import tqdm

from pipeline.data import DataSpec
from pipeline.ledger import Unsharded
from pipeline.machine import read_machine
from pipeline.sharding import shard
from pipeline.sources import Item
from pipeline.sources.names import one_line
from pipeline.spec import Fault, Refusal, SpecError, read_spec, read_yaml
from stages import SPECS, WORK, output_folder, run, spec_path


def main(arguments: list[str]) -> None:
    """Shard one data set, named or given by the path of its spec."""
    if len(arguments) != 1:
        raise Refusal("usage: python -m stages.shard NAME (of specs/data/NAME.yaml, or a path)")
    path = spec_path(arguments[0], SPECS / "data")
    spec, name = read_spec(path, DataSpec), path.stem
    raw = None if spec.source.embedded else raw_path(name)

    def bar(items: Iterable[Item]) -> Iterable[Item]:
        wrapped: Iterable[Item] = tqdm(items, desc=f"shard {name}", unit=" files", mininterval=0.5)
        return wrapped

    workers = read_machine().workers or cores()
    left = WORK / "logs" / name / "shard_ledger.json"
    with output_folder("shard", name) as folder:
        left.unlink(missing_ok=True)
        try:
            card, ledger = shard(spec, name, raw, folder, bar, workers=workers)
        except Unsharded as refusal:
            raise Refusal(one_line(f"{path}: {refusal.left(left)}")) from None
    counts = ", ".join(f"{count} {split}" for split, count in card.splits.items())
    print(f"shard {name}: {ledger.summary()} ({counts}, {len(card.shards)} shards)")
    if ledger.counted():
        print(one_line(f"shard {name}: refused: {ledger.first()}"))
    if ledger.copies:
        print(f"shard {name}: {ledger.copies}")
    for note in ledger.notes:
        print(one_line(f"shard {name}: {note}"))


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def raw_path(name: str) -> Path:
    """The raw path that specs/index.yaml gives a data set. Raises SpecError where it gives none."""
    file = SPECS / "index.yaml"
    sets = read_yaml(file).get("data")
    entry = sets.get(name) if isinstance(sets, dict) else None
    raw = entry.get("raw") if isinstance(entry, dict) else None
    if not isinstance(raw, str) or Path(raw) == SPECS / "none":
        raise SpecError(
            [Fault(str(file), f"data.{name}.raw", "", "missing; its source is not embedded: give its path")]
        )
    return Path(raw)


if __name__ == "__main__":
    run(main)
