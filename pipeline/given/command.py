"""``python -m stages.audit`` for what people have already: vectors, an encoder by name or file, a bundle.

    --embeddings h.npy [--labels y.csv] [--views v0.npy v1.npy]
    --encoder timm:resnet18 --samples FOLDER [--labels y.csv] [--declared SPEC]
    --bundle work/export/digits --samples FOLDER

Prints what it finds, and writes to --output: measures.json and geometry.json as an audit has them, figures.json of
probes (where there are labels), ledger.json, curation lists; of a bundle drift.json, the samples against its card.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from pipeline.curation.lists import LONGEST
from pipeline.drift import Drift
from pipeline.given import read_rows
from pipeline.given.labels import read_labels
from pipeline.given.measures import measure, probed, table
from pipeline.given.output import writable, write_audit, written
from pipeline.given.rows import Given, given
from pipeline.ledger import Ledger, Unsharded
from pipeline.sources.names import one_line
from pipeline.spec import Refusal

OUTPUT = Path("work") / "given"
OF_ENCODER = ("weights", "size", "mean", "std")
ALLOWED = {
    "embeddings": ("views", "labels", "output"),
    "encoder": ("samples", "declared", "labels", "output", *OF_ENCODER),
    "bundle": ("samples", "labels", "reference", "output"),
}
"""What goes with each of the three."""


def main(arguments: list[str]) -> None:
    """Audit what the command line names."""
    options = _parser().parse_args(arguments)
    if options.name is not None:
        raise Refusal(f"audit {options.name}: a spec's name goes alone; leave it out, or leave out the options")
    kinds = [kind for kind in ALLOWED if getattr(options, kind) is not None]
    if len(kinds) != 1:
        raise Refusal("audit: give a spec's name, or one of --embeddings FILE, --encoder NAME and --bundle FOLDER")
    kind = kinds[0]
    others = {name for names in ALLOWED.values() for name in names}
    for name in sorted(others - set(ALLOWED[kind])):
        if getattr(options, name) is not None:
            raise Refusal(f"--{name}: does not go with --{kind}; leave it out")
    if kind != "embeddings" and options.samples is None:
        raise Refusal(f"--{kind} {getattr(options, kind)}: give what it is to read, as --samples FOLDER")
    named = Path(getattr(options, kind).replace(":", "-")).stem
    output = options.output or OUTPUT / (named if kind == "embeddings" else f"{named}-{options.samples.stem}")
    writable(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    no_drift: list[Drift] = []
    with tempfile.TemporaryDirectory(prefix=".audit-", dir=output.parent) as place:
        folder = Path(place)
        if kind == "embeddings":
            space, drift = _embeddings(options), no_drift
        else:
            from pipeline.given.encoded import audit_samples

            try:
                space, drift = audit_samples(options, kind, folder)
            except Unsharded as refusal:
                beside = output.with_name(f"{output.name}.ledger.json")
                raise Refusal(one_line(refusal.left(beside))) from None
        _report(space, drift, output, kind != "embeddings", folder)


def _embeddings(options: Any) -> Given:
    """Vectors that were made elsewhere."""
    file = Path(options.embeddings)
    rows = read_rows(file)
    views = [read_rows(view, len(rows), file) for view in options.views or ()]
    if any(view.shape[1] != rows.shape[1] for view in views):
        raise Refusal(f"--views: must have the {rows.shape[1]} dimensions of {file}")
    texts, names = {}, None
    if options.labels is not None:
        labels = read_labels(options.labels, len(rows), file)
        texts = {column: (labels.kind(column), values) for column, values in labels.columns.items()}
        names = labels.names or None
    both = (views[0], views[1]) if views else None
    return given(file.stem, rows, both, texts, names, None, Ledger(), [f"{len(rows)} rows of {rows.shape[1]}"])


def _report(space: Given, drift: list[Drift], output: Path, made_here: bool, folder: Path) -> None:
    """Measure, print and write."""
    for line in space.told:
        print(one_line(line))
    if space.ledger.refused:
        print(one_line(f"{space.ledger.summary()}; {output / 'ledger.json'} names them"))
    report = measure(space)
    probes = folder / "probes"
    probes.mkdir()
    figures, numbers = probed(space, probes) if space.columns and len(space.rows) > 1 else ([], [])
    content: dict[str, Any] = {"measures.json": report.content(), "geometry.json": report.geometry()}
    content["about.json"] = {"name": space.name, "told": space.told}
    if space.columns:
        content["figures.json"] = {"rows": figures, "numbers": numbers}
    if drift:
        content["drift.json"] = {"rows": [each.plain() for each in drift]}
    with written(output) as target:
        lists = write_audit(target, space, content, made_here)
    for line in (*table(report, figures, numbers), *(each.line() for each in drift)):
        print(one_line(line))
    told = ", ".join(_listed(name, count, len(space.rows)) for name, count in lists.items())
    print(f"to look at, the worst first: {told or 'nothing could be listed'} ({output / 'curation'})")
    print(f"audit {space.name}: {len(report.measures)} measures of {len(space.rows)} rows, in {output}")


def _listed(name: str, count: int, rows: int) -> str:
    """How long a list is; that of outliers is an order, which every sample has a place in."""
    if name == "outliers":
        of = f"all {rows}" if count == rows else f"{count} of {rows}"
        return f"outliers ({of} rows in order of their distance from others, no verdict on any)"
    return f"{name.replace('_', ' ')} {f'{count} or more' if count >= LONGEST else count}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m stages.audit", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?", help="a spec's name or path, alone: the stage of the pipeline")
    parser.add_argument("--embeddings", metavar="FILE", help="vectors (N, D), .npy or .npz")
    parser.add_argument("--views", metavar="FILE", type=Path, nargs=2, help="two views of each row's sample (N, D)")
    parser.add_argument("--labels", metavar="FILE", type=Path, help="CSV, one row a vector, or .npy")
    parser.add_argument("--encoder", metavar="NAME", help="timm:MODEL, torchvision:MODEL or FILE.onnx")
    parser.add_argument("--weights", metavar="FILE", help=".safetensors of the model, or none; default: published")
    parser.add_argument("--size", type=_side, help="pixels of the canvas's side; default: the model's")
    parser.add_argument("--mean", type=float, nargs="+", help="of each channel, in [0, 1]; default: the model's")
    parser.add_argument("--std", type=_spread, nargs="+", help="of each channel, in [0, 1]; default: the model's")
    parser.add_argument("--bundle", metavar="FOLDER", help="what the export stage wrote")
    samples = "a folder or archive of pictures, or of whatever else a bundle reads (--images is its older name)"
    parser.add_argument("--samples", "--images", metavar="PATH", type=Path, help=samples)
    parser.add_argument("--declared", metavar="SPEC", help="a spec whose invariances make two views of each sample")
    parser.add_argument("--reference", metavar="FILE", type=Path, help="h of samples that the bundle was meant for")
    parser.add_argument("--output", metavar="FOLDER", type=Path, help=f"default: {OUTPUT}/NAME")
    return parser


def _side(text: str) -> int:
    side = int(text)
    if not 1 <= side <= 4096:
        raise argparse.ArgumentTypeError("must lie between 1 and 4096")
    return side


def _spread(text: str) -> float:
    spread = float(text)
    if not spread > 0:
        raise argparse.ArgumentTypeError("must be above 0")
    return spread
