"""An encoder or a bundle over a folder or archive of samples: vectors, labels, views, and a bundle's drift.

A bundle knows its invariances, so two views of every sample are drawn by them, but for code, which no bundle executes;
another encoder has none but those of a spec that is named (``--declared``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from pipeline.bundle import Bundle, load
from pipeline.drift import Drift, Reference, drift_of_channels, drift_of_vectors, summary
from pipeline.given import read_rows
from pipeline.given.encoder import GivenEncoder, Preprocessing, open_encoder
from pipeline.given.labels import matched, read_labels
from pipeline.given.rows import Given, given
from pipeline.given.samples import Encoded, encode_all, place_of, sharded, texts_of
from pipeline.machine import read_machine, settle
from pipeline.samples import several
from pipeline.shard_names import Names
from pipeline.shards import Shards
from pipeline.sources import ColumnKind, Item
from pipeline.space import LatentSpace
from pipeline.spec import Refusal, parse, read_section
from pipeline.views import Invariance, codes, misfit

Views = tuple[tuple[Invariance, ...], tuple[Invariance, ...]]


def audit_samples(options: Any, kind: str, folder: Path) -> tuple[Given, list[Drift]]:
    """Encode samples and gather what is known of them.

    Args:
        options: of the command line.
        kind: encoder or bundle.
        folder: an empty one, for the shards.

    Raises:
        Refusal: the encoder or the samples cannot be used; one line says why.
    """
    machine = read_machine()
    settle(machine)
    bundle = load(options.bundle) if kind == "bundle" else None
    if bundle is None:
        given_here = Preprocessing(options.size, options.mean, options.std)
        encoder = open_encoder(options.encoder, options.weights, given_here, machine.chosen_device())
        views, remark = (None, "") if options.declared is None else (_declared(options.declared), "")
    else:
        encoder, (views, remark) = _of_bundle(bundle), _views_of(bundle)
    canvas = encoder.canvas
    for invariance in dict.fromkeys(each for view in views or () for each in view):
        reason = misfit(invariance, canvas.channels, canvas.size)
        if reason is not None:
            raise Refusal(f"--declared {options.declared}: {invariance.kind}: {reason}")
    told = [f"{encoder.name}: {encoder.told}", *([remark] if remark else [])]

    def files(items: Iterable[Item]) -> Iterable[Item]:
        bar: Iterable[Item] = tqdm(items, desc="decode", unit=" files", mininterval=0.5)
        return bar

    place = folder / "shards"
    place.mkdir()
    workers = machine.workers or machine.chosen_workers()
    shards, ledger, found = sharded(options.samples, encoder, place, workers, files)
    told.append(found)
    count = sum(shards.card.splits.values()) * (1 if views is None else 3)
    with tqdm(total=count, desc="encode", unit=f" {several(canvas.word)}", mininterval=0.5) as bar:
        encoded = encode_all(shards, encoder, views, workers, bar.update)
    names = _names(shards, len(encoded.rows))
    texts = _texts(shards, options.labels, names)
    train = np.arange(len(names)) < shards.card.splits["train"]
    space = given(
        encoder.name,
        encoded.rows,
        encoded.views,
        texts,
        names,
        train,
        ledger,
        told,
        lambda row: shards.image(*place_of(shards, row)),
    )
    return space, [] if bundle is None else list(_drift(bundle, encoded, space, options.reference))


def _texts(shards: Shards, file: Path | None, names: list[str]) -> dict[str, tuple[ColumnKind, list[str]]]:
    """The label columns: of a table, or those that were found beside the samples."""
    if file is not None:
        labels = read_labels(file, None, "")
        return {column: (labels.kind(column), values) for column, values in matched(labels, names).items()}
    return texts_of(shards)


def _names(shards: Shards, count: int) -> list[str]:
    called = Names(shards)
    return [called(*place_of(shards, row)) for row in range(count)]


def _of_bundle(bundle: Bundle) -> GivenEncoder:
    import torch

    @torch.inference_mode()
    def encode(batch: torch.Tensor) -> np.ndarray:
        return bundle.network.encode(batch).float().numpy()

    canvas = bundle.input
    told = f"bundle {bundle.card['identity'][:8]}; {several(canvas.word)} of {' x '.join(map(str, canvas.shape))}"
    return GivenEncoder(str(bundle.card.get("name", "bundle")), canvas, encode, told)


def _views_of(bundle: Bundle) -> tuple[Views | None, str]:
    """What the two views of a bundle's card go through; none, and why, where this machine cannot make them."""
    try:
        space: LatentSpace = parse(bundle.card["space"], LatentSpace, "card.json", "space")
    except Refusal as refusal:
        return None, f"no views are drawn: {str(refusal).splitlines()[0]}"
    files = ", ".join(sorted({code.file for _, code in codes(space)}))
    if files:
        return None, f"no views are drawn: the card declares code ({files}), which no bundle executes"
    return (space.through(0), space.through(1)), ""


def _declared(name: str) -> Views:
    """What the two views of a spec go through."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else Path("specs") / f"{name}.yaml"
    space: LatentSpace = read_section(path, "space", LatentSpace)
    return space.through(0), space.through(1)


def _drift(bundle: Bundle, encoded: Encoded, space: Given, file: Path | None) -> Iterator[Drift]:
    """The samples against the card: channels of the input always, vectors where there is something to compare with."""
    network = bundle.card["network"]
    trained = bundle.card["data"]["splits"]["train"]
    yield from drift_of_channels(encoded.channels, network["mean"], network["std"], trained)
    if file is not None:
        reference = summary(read_rows(file))
        space.told.append(f"drift: vectors against {file}, channels against the card")
    elif bundle.card.get("reference") is not None:
        reference = parse(bundle.card["reference"], Reference, "card.json", "reference")
        space.told.append(f"drift: against the card's reference of {reference.count} test {several(bundle.input.word)}")
    else:
        remedy = "give --reference h.npy (vectors of samples that it was meant for) to compare vectors"
        space.told.append(f"drift: the card holds no reference of vectors, so channels alone are compared; {remedy}")
        return
    yield from drift_of_vectors(space.rows, reference)
