"""Stage report: every result on one page, ``python -m stages.report``; whatever has not run is shown as such.

Reads specs/index.yaml, its specs and the folders of shard, check, pretrain, probe, audit, gallery, judge and export;
writes work/report.html, work/report/metrics.json (for ``dvc metrics``), work/report/curves and work/report/plots (for
``dvc plots``), and prints the kNN figures as a table. With ``--charts FOLDER`` it only writes the page's charts there,
as SVG files.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from pipeline.report.collect import collect
from pipeline.report.figures import figures, table
from pipeline.report.page import page
from pipeline.report.plotted import KINDS, plotted
from pipeline.report.standalone import write_charts
from pipeline.spec import Refusal
from stages import SPECS, WORK, output_folder, run, write_json


def main(arguments: list[str]) -> None:
    """Write page, metrics and curves of every spec in the index."""
    parser = argparse.ArgumentParser(prog="python -m stages.report", description=__doc__)
    parser.add_argument("--charts", type=Path, metavar="FOLDER", help="write the charts alone, as SVG, for a README")
    charts = parser.parse_args(arguments).charts
    results = collect(SPECS, WORK)
    if charts is not None:
        print(*write_charts(results, charts), sep="\n")
        return
    metrics = {result.name: figures(result) for result in results}
    text = page(results, metrics)
    with output_folder("report", "curves") as folder:
        for result in results:
            if result.curve_text:
                (folder / f"{result.name}.csv").write_text(result.curve_text, encoding="utf-8", newline="")
    with output_folder("report", "plots") as folder:
        for kind in KINDS:
            (folder / kind).mkdir()
        for result in results:
            for file, content in plotted(result).items():
                (folder / file).write_text(content, encoding="utf-8", newline="")
    write_json(WORK / "report" / "metrics.json", metrics)
    _replace(WORK / "report.html", text)
    print(table(results))
    print(f"report: {WORK / 'report.html'}")


def _replace(path: Path, text: str) -> None:
    """Write a whole file or leave the old one as it is."""
    if path.is_dir():
        raise Refusal(f"{path}: is a folder where the report should be; move it away and run again")
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        partial.write_text(text, encoding="utf-8", newline="")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


if __name__ == "__main__":
    run(main)
