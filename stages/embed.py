"""Embed every split once: ``python -m stages.embed NAME``.

Reads work/shard/DATA and work/pretrain/NAME; writes work/embed/NAME: SPLIT.LAYER.npy, float32 (N, D), for the splits
train and test and for the test images under the declared invariances, drawn twice with a fixed seed (view0, view1);
layers h, z, raw (pixels, pooled to at most 32 x 32) and untrained (h of the network before its first step); labels.
With options it embeds a folder, an archive or shards with a bundle (``--help``).
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

import numpy as np
from tqdm import tqdm

from pipeline.encoding import SPLITS, embed_splits, source_of
from pipeline.machine import read_machine, settle
from pipeline.shards import Shards
from pipeline.spec import read_yaml
from stages import output_folder, output_of, read_json, refusal_before, run, spec_path, write_json, write_refusal


def main(arguments: list[str]) -> None:
    """Write the vectors and labels of one spec, or with options those of whatever the options name."""
    if any(argument.startswith("-") for argument in arguments):  # no stage of the pipeline, so none of its dependencies
        import_module("pipeline.bundle.embedding").main(arguments)
        return
    parser = argparse.ArgumentParser(prog="python -m stages.embed", description=__doc__)
    parser.add_argument("name", help="a spec's name or path")
    path = spec_path(parser.parse_args(arguments).name)
    name = path.stem
    trained = output_of("pretrain", name)
    refused = refusal_before(trained)
    if refused is not None:
        write_refusal("embed", name, refused)
        return
    shards = Shards(output_of("shard", read_yaml(path)["data"]))
    described = read_json(trained / "network.json")
    machine = read_machine()
    settle(machine)
    images = sum(shards.card.splits[source_of(split)] for split in SPLITS)
    with output_folder("embed", name) as folder, tqdm(total=images, desc=f"embed {name}", unit=" samples") as bar:
        weights = trained / "weights.safetensors"
        for (split, layer), vectors in embed_splits(shards, described, weights, machine.chosen_device(), bar.update):
            np.save(folder / f"{split}.{layer}.npy", vectors)
        labels: dict[str, Any] = {
            f"{split}.{column}": values
            for split in ("train", "test")
            for column, values in shards.labels(split).items()
        }
        np.savez(folder / "labels.npz", **labels)
        write_json(
            folder / "columns.json",
            {column: {"kind": each.kind, "classes": each.classes} for column, each in shards.card.columns.items()},
        )


if __name__ == "__main__":
    run(main)
