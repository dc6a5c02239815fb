"""Stage audit: the geometry of h and z in work/embed/NAME, into work/audit/NAME/measures.json. It judges nothing."""

from __future__ import annotations

import argparse

from pipeline.audit import LAYERS, LOSS, Audit
from pipeline.audit.loss import loss_below_log_k
from pipeline.embeddings import Embeddings
from pipeline.rounding import rounded
from pipeline.spec import read_section
from stages import output_folder, output_of, read_json, refusal_before, run, spec_path, write_json, write_refusal


def main(arguments: list[str]) -> None:
    """Measure the space that the one argument names."""
    parser = argparse.ArgumentParser(prog="python -m stages.audit", description=__doc__)
    parser.add_argument("name", help="a spec's name or path")
    path = spec_path(parser.parse_args(arguments).name)
    audit = read_section(path, "audit", Audit)
    source, trained = output_of("embed", path.stem), output_of("pretrain", path.stem)
    refused = refusal_before(trained, source)
    if refused is not None:
        write_refusal("audit", path.stem, refused)
        return
    from pipeline.auditing import Report, measure_layer

    embeddings, report = Embeddings(source), Report()
    for layer in LAYERS:
        measure_layer(embeddings, layer, audit, report)
    report.add(LOSS, "train", loss_below_log_k(read_json(trained / "summary.json")))
    with output_folder("audit", path.stem) as folder:
        write_json(folder / "measures.json", rounded(report.content()))
    print(f"audit {path.stem}: {len(report.measures)} measures")


if __name__ == "__main__":
    run(main)
