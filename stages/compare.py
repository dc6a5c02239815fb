"""Compare two runs: ``python -m stages.compare A B`` (specs that are embedded, two bundles, or two .npy of equal rows).

Says whether they are one space, shows what differs in their specs, and how their vectors of the same test images agree:
linear CKA, orthogonal Procrustes distance, overlap of nearest neighbours, beside controls. Bundles hold no pictures:
``--samples PATH`` gives some. Writes work/compare/A--B/agreement.json; no stage of the pipeline reads it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pipeline.bundle.comparing import compare_bundles, is_bundle
from pipeline.comparing import Pair, agreement, differences, sameness, table
from pipeline.embeddings import Embeddings
from pipeline.rounding import rounded
from pipeline.shards import read_card, sha256
from pipeline.space import LatentSpace
from pipeline.spec import Refusal, digest, read_section, read_spec, read_yaml
from pipeline.specification import Specification, resolved
from stages import output_folder, output_of, read_json, refusal_before, run, spec_path, write_json

FILES = (".npy", ".npz")
LAYERS = ("h", "z")


def main(arguments: list[str]) -> None:
    """Compare what the two arguments name."""
    parser = argparse.ArgumentParser(prog="python -m stages.compare", description=__doc__)
    parser.add_argument("first", metavar="A", help="a spec's name or path, a bundle, or a file of vectors (N, D)")
    parser.add_argument("second", metavar="B", help="the same of the other run")
    parser.add_argument("--samples", "--images", type=Path, help="what two bundles are compared on: a folder, …")
    given = parser.parse_args(arguments)
    sides = (given.first, given.second)
    are_bundles = [is_bundle(side) for side in sides]
    if any(are_bundles):
        if not all(are_bundles):
            raise Refusal(f"compare {sides[0]} {sides[1]}: {sides[are_bundles.index(False)]} is no bundle; give two")
        _write(sides, *compare_bundles(sides, given.samples))
        return
    if given.samples is not None:
        raise Refusal("--samples: goes with two bundles; specs are compared on their own test samples")
    are_files = [Path(side).suffix in FILES for side in sides]
    if are_files[0] != are_files[1]:
        raise Refusal(f"compare {sides[0]} {sides[1]}: give two specs, or two .npy files of the same rows")
    _write(sides, *(_files(*map(Path, sides)) if are_files[0] else _specs(*map(spec_path, sides))))


def _write(sides: tuple[str, str], content: dict[str, Any], lines: list[str]) -> None:
    """Write and print what was found."""
    first, second = (Path(side).stem for side in sides)
    with output_folder("compare", f"{first}--{second}") as folder:
        write_json(folder / "agreement.json", rounded(content))
    print(*lines, *(table(content["rows"]) if content["rows"] else ()), sep="\n")


def _files(first: Path, second: Path) -> tuple[dict[str, Any], list[str]]:
    """Two files of vectors, of which nothing but the rows is known."""
    from pipeline.given import read_rows

    a, b = read_rows(first), read_rows(second)
    if len(a) != len(b):
        raise Refusal(f"{first} has {len(a)} rows, {second} {len(b)}: row i must be the same sample in both files")
    same = a.shape == b.shape and bool((a == b).all())
    told = "the same vectors" if same else "other vectors; that row i is the same sample in both is taken on trust"
    rows = list(agreement([Pair(first.stem, second.stem, a, b)]))
    return {"same": same, "told": told, "differences": [], "rows": rows}, [told]


def _specs(first: Path, second: Path) -> tuple[dict[str, Any], list[str]]:
    """Two specs, both embedded on the same pictures."""
    embedded = [_embedded(path) for path in (first, second)]
    cards = [read_card(output_of("shard", read_yaml(path)["data"])) for path in (first, second)]
    if cards[0].fingerprint != cards[1].fingerprint:
        on = zip((first, second), cards, strict=True)
        each = [f"{path.stem} on {card.name} ({card.fingerprint[:8]})" for path, card in on]
        raise Refusal(f"{each[0]}, {each[1]}: other test images, so no row has a partner; give both the same data set")
    for space, card in zip(embedded, cards, strict=True):
        if len(space.features("test", "h")) != card.splits["test"]:
            found = f"{len(space.features('test', 'h'))} test rows, but the data set has {card.splits['test']}"
            raise Refusal(f"{space.folder}: {found}; run `dvc repro`")
    same, told = sameness(_hashes(first), _hashes(second))
    texts = [resolved(read_spec(path, Specification)) for path in (first, second)]
    changed = differences(texts[0], texts[1], (str(first), str(second)))
    a, b = embedded
    names = (first.stem, second.stem) if first.stem != second.stem else (str(first), str(second))
    pairs = [
        Pair(f"{names[0]}.{layer}", f"{names[1]}.{layer}", a.features("test", layer), b.features("test", layer))
        for layer in LAYERS
    ]
    untrained = a.features("test", "untrained")
    pairs.append(Pair(f"{names[0]}.h", f"{names[0]}.untrained", pairs[0].a, untrained))
    content = {"same": same, "told": told, "differences": changed, "rows": list(agreement(pairs))}
    return content, [told, *(changed or ["the specs are equal"])]


def _embedded(path: Path) -> Embeddings:
    folder = output_of("embed", path.stem)
    refused = refusal_before(output_of("pretrain", path.stem), folder)
    if refused is not None:
        raise Refusal(f"{path.stem}: has no vectors; {refused['stage']} refused it: {refused['reason']}")
    return Embeddings(folder)


def _hashes(path: Path) -> dict[str, str]:
    """What makes h what it is, by hash; as the identity of a bundle does it."""
    trained = output_of("pretrain", path.stem)
    described = {name: value for name, value in read_json(trained / "network.json").items() if name != "views"}
    space: LatentSpace = read_section(path, "space", LatentSpace)
    weights = trained / "weights.safetensors"
    if not weights.is_file():
        raise Refusal(f"{weights}: not there; `dvc checkout` brings it back, `dvc repro` makes it anew")
    return {"declaration": space.identity(), "network": digest(described), "weights": sha256(weights)}


if __name__ == "__main__":
    run(main)
