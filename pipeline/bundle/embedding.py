"""``python -m stages.embed --bundle PATH --input PATH --output FILE``: vectors of everything that lies at a path.

Files are streamed: decoded on several processes, embedded a batch at a time, and written in parts, so that memory stays
flat, and a run that was stopped goes on where it was; a part whose files have changed is made anew. Beside the output
stands its ledger: every file is kept or named there with its reason.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tqdm import tqdm

from pipeline.bundle import Bundle, load
from pipeline.bundle.input import Part, items, parts
from pipeline.bundle.parts import accounted, described_part, is_there, part_file, settled, values_of, write_part
from pipeline.bundle.stored import FORMS, Stored, refuse_without_packages, write_vectors
from pipeline.bundle.vectors import Layer
from pipeline.decoding import on_canvases
from pipeline.images import Pixels
from pipeline.intake import Lost, judged
from pipeline.ledger import Ledger
from pipeline.lock import held
from pipeline.machine import read_machine, settle
from pipeline.sources import Item, Record
from pipeline.sources.folder import walked
from pipeline.sources.names import one_line
from pipeline.spec import Refusal


def main(arguments: list[str]) -> None:
    """Embed what the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m stages.embed", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bundle", required=True, help="a folder that the export stage wrote, or its URL")
    parser.add_argument(
        "--input",
        required=True,
        type=Path,
        help="a folder, an archive, shards, arrays (.npy, .npz), a table of series, or one file",
    )
    parser.add_argument("--output", required=True, type=Path, help="vectors.parquet or vectors.npy")
    parser.add_argument("--layer", choices=("h", "z"), default="h", help="z: where the loss acted (default: h)")
    given = parser.parse_args(arguments)
    output = given.output
    if output.suffix not in FORMS:
        raise Refusal(f"--output {output}: must end in {' or '.join(FORMS)}")
    if output.exists():
        raise Refusal(f"--output {output}: exists; name another file, or take it away")
    refuse_without_packages(output)
    machine = read_machine()
    settle(machine)
    bundle = load(given.bundle, machine.chosen_device())
    if given.layer == "z" and not bundle.has_z:
        raise Refusal(f"--layer z: {given.bundle} has no projection; export it with export.projection: true")
    output.parent.mkdir(parents=True, exist_ok=True)
    partial = output.with_name(f".{output.name}.partial")
    lock = output.with_name(f".{output.name}.lock")
    try:
        with held(lock, f"embed {output}"):
            ledger = embed_input(bundle, given.input, output, partial, given.layer, machine.chosen_workers())
    finally:
        if not list(partial.glob("*.npz")):  # nothing to go on from
            shutil.rmtree(partial, ignore_errors=True)
            lock.unlink(missing_ok=True)
    print(one_line(f"embed {output}: {ledger.summary()}"))
    if ledger.refused:
        print(one_line(f"refused: {ledger.first() or 'hidden files'}; {ledger_of(output)} names all"))


def ledger_of(output: Path) -> Path:
    """Where the ledger of an output stands."""
    return output.with_name(f"{output.name}.ledger.json")


def embed_input(bundle: Bundle, path: Path, output: Path, partial: Path, layer: Layer, workers: int) -> Ledger:
    """Embed everything at ``path`` into ``output``; parts lie in ``partial`` until all are there.

    Raises:
        Refusal: nothing there could be embedded.
    """
    about = {"identity": bundle.identity, "layer": layer}
    settled(partial, about)
    todo: deque[Part] = deque()
    count = old = 0

    def missing(bar: Any) -> Iterator[Item]:
        nonlocal count, old
        for part in parts(items(path.expanduser(), bundle.input)):
            count = part.number + 1
            if is_there(partial, part):
                old += 1
                bar.update(len(part.items))
                continue
            todo.append(part)
            yield from part.items

    total = None if path.is_file() else sum(isinstance(item, Record) for item in _listed(path.expanduser()))
    with tqdm(total=total, desc=f"embed {output.name}", unit=" files", mininterval=0.5) as bar:
        found: list[Pixels | Lost | None] = []
        for _, outcome in judged(missing(bar), bundle.input, workers, on_canvases):
            found.append(outcome)
            bar.update()
            if len(found) == len(todo[0].items):
                write_part(bundle, partial, todo.popleft(), found, layer)
                found = []
    if old:
        print(f"embed {output}: went on after {old} of {count} parts")
    ledger = Ledger()
    stored = [part_file(partial, number) for number in range(count)]
    kept = accounted(stored, ledger)
    if not kept:
        shutil.rmtree(partial)  # parts of refusals alone
        told = f" ({one_line(ledger.summary())}: {one_line(ledger.first())})" if ledger.counted() else ""
        refused = f"--input {path}: no {bundle.input.word} in it that could be embedded{told}"
        raise Refusal(f"{refused}{ledger.left(ledger_of(output), refused)}")
    names = (name for file in stored for name in described_part(file)["names"])
    text = json.dumps(ledger.plain(), indent=1, ensure_ascii=False)
    ledger_of(output).write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
    write_vectors(output, Stored(kept, bundle.dim(layer), str(path), bundle.card, layer), map(values_of, stored), names)
    shutil.rmtree(partial)
    return ledger


def _listed(path: Path) -> Iterator[Item]:
    """Files of a folder for the bar's total; members of archives are not known beforehand."""
    return (item for item, _ in walked(path)) if path.is_dir() else iter(())
