"""The page's charts as small files of their own, for a README: SVG with its colours in it, light and dark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from markupsafe import Markup

from pipeline.report.drawings import drawings
from pipeline.report.map import dots, maps, view_box
from pipeline.report.result import Result

LIGHT = {
    **{"ink": "#1c1d20", "muted": "#63666d", "line": "#dfe0e3", "blue": "#0068ab", "orange": "#c05000"},
    **{"k0": "#0068ab", "k1": "#c05000", "k2": "#0b7a4b", "k3": "#a3348e", "k4": "#1f9bc4", "k5": "#8f7400"},
    **{"k6": "#b3261e", "k7": "#5b5f66", "kx": "#9aa0a8"},
}
DARK = {
    **{"ink": "#e9eaec", "muted": "#a0a4ac", "line": "#34373d", "blue": "#5cb6f2", "orange": "#f0994a"},
    **{"k0": "#5cb6f2", "k1": "#f0994a", "k2": "#4cc38a", "k3": "#e58bd2", "k4": "#8fe3f7", "k5": "#d9bd3c"},
    **{"k6": "#ff8a80", "k7": "#c3c7ce", "kx": "#70757d"},
}
"""The page's own colours (style.html, gallery_style.html); a test holds them equal."""
SINGLE = ("loss", "similarity", "apart", "rank", "histogram_h", "histogram_z", "mass", "spectrum")


def write_charts(results: Sequence[Result], folder: Path) -> list[Path]:
    """Write every chart of every spec as ``SPEC-CHART.svg`` and return the files; others in the folder stay."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for result in results:
        for name, svg in charts_of(result):
            files.append(folder / f"{plain(result.name)}-{plain(name)}.svg")
            files[-1].write_text(standalone(svg), encoding="utf-8", newline="")
    return files


def charts_of(result: Result) -> Iterator[tuple[str, str]]:
    """The name and the SVG of each chart that a spec's results allow."""
    drawn = drawings(result, "")
    yield from ((name, str(drawn[name])) for name in SINGLE if drawn.get(name))
    for (label, probe), chart in drawn["probes"].items():
        yield f"{probe}-{label}", str(chart)
    yield from ((f"few-{label}", str(chart)) for label, chart in drawn["few"].items())
    if result.gallery is not None and maps(result.gallery.map):
        box = Markup('<svg class="chart" role="img" aria-label="Map of h" viewBox="{}">{}</svg>')
        yield "map", str(box.format(view_box(result.gallery.map), dots(result.gallery.map)))


def standalone(svg: str) -> str:
    """An element of the page as a file that any viewer shows: with its namespace, its size and its colours."""
    width, height = (float(each) for each in re.findall(r'viewBox="\S+ \S+ (\S+) (\S+)"', svg)[0])
    scale = min(1.0, 460 / width)
    size = f'width="{scale * width:.0f}" height="{scale * height:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} '
    light, dark = (";".join(f"--{name}:{value}" for name, value in each.items()) for each in (LIGHT, DARK))
    fills = "".join(f".{name}{{fill:var(--{name})}}" for name in LIGHT if name.startswith("k"))
    style = f"svg{{{light};font-family:sans-serif}}@media(prefers-color-scheme:dark){{svg{{{dark}}}}}{fills}"
    start = svg.index(">") + 1
    return f"{head}{svg[len('<svg ') : start]}<style>{style}</style>{svg[start:]}\n"


def plain(name: str) -> str:
    """A name as part of a file's name: letters, digits, dots and dashes; anything else is a dash."""
    return re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII).strip("-.") or "unnamed"
