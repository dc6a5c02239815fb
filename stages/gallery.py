"""Pictures of a trained space for its report: ``python -m stages.gallery NAME``.

Reads work/embed/NAME, work/shard/DATA and the lists in work/audit/NAME; writes work/gallery/NAME: gallery.json (two
maps of h of the test samples, principal plane and t-SNE; neighbours on h and on the raw input; the first of the
audit's lists) and the thumbnails of all of these, map.webp and pictures.webp.
"""

from __future__ import annotations

import argparse
import json

from pipeline.embeddings import Embeddings
from pipeline.gallery.build import build
from pipeline.shards import Shards
from pipeline.spec import read_yaml
from stages import output_folder, output_of, refusal_before, run, spec_path, write_refusal


def main(arguments: list[str]) -> None:
    """Write the gallery of one spec."""
    parser = argparse.ArgumentParser(prog="python -m stages.gallery", description=__doc__)
    parser.add_argument("name", help="a spec's name or path")
    path = spec_path(parser.parse_args(arguments).name)
    source, audited = output_of("embed", path.stem), output_of("audit", path.stem)
    refused = refusal_before(source, audited)
    if refused is not None:
        write_refusal("gallery", path.stem, refused)
        return
    content = read_yaml(path)
    shards = Shards(output_of("shard", content["data"]))
    preserves = content["space"]["preserves"]
    with output_folder("gallery", path.stem) as folder:
        found = build(folder, Embeddings(source), shards, audited, preserves)
        text = json.dumps(found, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        (folder / "gallery.json").write_text(text + "\n", encoding="utf-8")
    drawn, asked = len(found["map"]["rows"]), len(found["nearest"]["queries"])
    print(f"gallery {path.stem}: {drawn} points on the map, neighbours of {asked}, {len(found['lists'])} lists")


if __name__ == "__main__":
    run(main)
