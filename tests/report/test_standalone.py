"""The page's charts as files of their own: the same drawing with its colours, whatever specs and labels are called."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from xml.etree import ElementTree

import pytest
from reported import EVIL, make, write

from pipeline.report.standalone import DARK, LIGHT, plain, standalone
from stages import report

NAMESPACE = "{http://www.w3.org/2000/svg}"


def test_the_charts_of_the_page_are_files_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("specs").mkdir()
    name = EVIL.replace("/", "").replace("\n", "")
    write([name])
    make(name, EVIL)
    report.main([])
    page = Path("work/report.html").read_text(encoding="utf-8")
    before = Path("work/report/metrics.json").read_bytes()
    capsys.readouterr()
    report.main(["--charts", "charts"])
    files = sorted(Path("charts").iterdir())
    assert [Path(line) for line in sorted(capsys.readouterr().out.splitlines())] == files
    assert len(files) >= 8
    for file in files:
        assert re.fullmatch(r"[\w.-]+\.svg", file.name)
        text = file.read_text(encoding="utf-8")
        root = ElementTree.fromstring(text)
        assert root.tag == f"{NAMESPACE}svg"
        assert float(root.attrib["width"]) <= 460
        used, given = set(re.findall(r"var\(--(\w+)\)", text)), set(re.findall(r"--(\w+):", text))
        assert used <= given, used - given
        assert not root.findall(f".//{NAMESPACE}script")
    (loss,) = (file for file in files if file.name.endswith("-loss.svg"))
    lines = {each.attrib["d"] for each in ElementTree.fromstring(loss.read_text()).iter(f"{NAMESPACE}path")}
    assert max(lines, key=len) in " ".join(page.split())
    assert Path("work/report/metrics.json").read_bytes() == before


def test_files_have_the_colours_of_the_page() -> None:
    style = "".join((resources.files("pipeline.report") / f"{each}style.html").read_text() for each in ("", "gallery_"))
    for colours, start in ((LIGHT, 0), (DARK, style.index("prefers-color-scheme: dark"))):
        for name, value in colours.items():
            block = style if not name.startswith("k") else style[style.index("--k0: ") :]
            found = re.findall(rf"--{name}: (#\w+);", block)
            assert found[0 if start == 0 else 1] == value, name


def test_a_chart_of_any_size_has_a_small_file() -> None:
    text = standalone('<svg class="chart" role="img" aria-label="x" viewBox="0 0 920 460"><path d="M0,0"/></svg>')
    assert text.startswith('<svg xmlns="http://www.w3.org/2000/svg" width="460" height="230" class="chart"')
    assert text.endswith('</style><path d="M0,0"/></svg>\n')


@pytest.mark.parametrize(
    ("name", "shown"), [("a b/c", "a-b-c"), ("../..", "unnamed"), ("ä", "unnamed"), ("x.y", "x.y")]
)
def test_a_name_in_a_file_name_is_plain(name: str, shown: str) -> None:
    assert plain(name) == shown
