"""The map and the gallery in a real browser: pointer, keys and buttons show the right sample, nothing is asked for."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import Browser
from reported import EVIL, SHADES, audit_more, make, write

from pipeline.report import charts
from stages import report


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page of two specs, the second with hostile labels; charts, which take most of the time, are not drawn."""
    folder, before = tmp_path_factory.mktemp("project"), Path.cwd()
    os.chdir(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(charts, "as_svg", lambda draw, words: f'<svg aria-label="{words}"></svg>')
        Path("specs").mkdir()
        write(["digits", "hostile"])
        for name, label in (("digits", "label"), ("hostile", EVIL)):
            make(name, label)
            audit_more(name, label)
        report.main([])
    os.chdir(before)
    return (folder / "work/report.html").as_uri()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Browser]:
    """The page, opened; it must have asked for nothing and complained of nothing when the test is over."""
    browser.open(address)
    browser.run("document.querySelector('#spec-1 svg.plane').scrollIntoView({block: 'center', behavior: 'instant'})")
    yield browser
    assert browser.errors == []
    assert [each for each in browser.requests if not each.startswith("data:")] == [address]


def place(page: Browser, at: int, spec: int = 1) -> tuple[float, float]:
    """Where the sample stands in the window, by the circle that the fixture places it on."""
    box = page.run(
        f"(() => {{ const r = document.querySelector('#spec-{spec} svg.plane').getBoundingClientRect();"
        "return [r.x, r.y, r.width, r.height]; })()"
    )
    angle = 2 * math.pi * at / SHADES
    middle, unit = (box[0] + box[2] / 2, box[1] + box[3] / 2), (box[2] - 2) / 2160
    return middle[0] + 1000 * unit * math.cos(angle), middle[1] + 1000 * unit * math.sin(angle)


def point(page: Browser, x: float, y: float, kind: str = "mouseMoved") -> None:
    page.send("Input.dispatchMouseEvent", type=kind, x=x, y=y)


def looked(page: Browser, spec: int = 1) -> dict[str, Any] | None:
    """What the page shows of a sample: its words, its place in the map, and the grey in the middle of its picture."""
    found: dict[str, Any] | None = page.run(
        f"""(() => {{
          const box = document.querySelector("#spec-{spec} .looked");
          if (box.hidden) return null;
          const [canvas, words] = [box.querySelector("canvas"), [...box.querySelectorAll("bdi")]];
          const middle = [Math.floor(canvas.width / 2), Math.floor(canvas.height / 2)];
          const off = new OffscreenCanvas(canvas.width, canvas.height);
          const copy = off.getContext("2d", {{ willReadFrequently: true }});
          copy.drawImage(canvas, 0, 0);
          const shade = copy.getImageData(...middle, 1, 1).data[0];
          return {{ at: Number(box.dataset.at), shade, words: words.map((each) => each.textContent) }};
        }})()"""
    )
    return found


PATHS = "[...document.querySelectorAll('#spec-1 svg.plane g path')]"


@pytest.mark.parametrize("at", [0, 5, 13, 23])
def test_a_sample_that_is_pointed_at_shows_its_picture_and_labels(page: Browser, at: int) -> None:
    point(page, *place(page, at))
    age = "–" if at == 0 else f"{at + 0.5}"
    label = "label" if at >= 12 else "0"
    words = [f"label: {label}", f"other: {'xyz'[at % 3]}", f"age: {age}", f"test {10 * at}"]
    found = looked(page)
    assert found is not None
    assert (found["at"], found["words"]) == (at, words)
    assert found["shade"] == pytest.approx(10 * at, abs=2)
    point(page, 5, 5)
    assert looked(page) is None


def test_arrow_keys_go_from_sample_to_sample_and_escape_hides(page: Browser) -> None:
    page.run("document.querySelector('#spec-1 .controls button:last-of-type').focus()")
    for _ in range(3):
        page.press("Tab", 9)
        if page.run("document.activeElement.matches('svg.plane')"):
            break
    first = looked(page)
    assert first is not None, "the map is reached by the tab key and shows a sample"
    page.press("ArrowRight", 39)
    page.press("ArrowRight", 39)
    right = looked(page)
    assert right is not None
    assert math.cos(2 * math.pi * right["at"] / SHADES) > math.cos(2 * math.pi * first["at"] / SHADES) - 1e-9
    seen = {right["at"]}
    for _ in range(4):
        page.press("ArrowUp", 38)
        found = looked(page)
        assert found is not None
        seen.add(found["at"])
    assert len(seen) >= 4
    page.press("Escape", 27)
    assert looked(page) is None


def test_the_other_map_another_column_and_a_class_can_be_chosen(page: Browser) -> None:
    paths = f"{PATHS}.map((each) => [each.getAttribute('class'), each.getAttribute('d')])"
    circle = page.run(paths)
    assert [each[0] for each in circle] == ["k0", "k1"]
    page.run("document.querySelector('#spec-1 [data-kind=principal]').click()")
    line = page.run(paths)
    assert line[0][1].startswith("M-1000,0")
    shown = page.run(
        "[...document.querySelectorAll('#spec-1 [data-of]')].map((each) => [each.dataset.of, each.hidden])"
    )
    assert shown == [["nearby", True], ["principal", False]]
    page.run(
        "(() => { const s = document.querySelector('#spec-1 .map select'); s.value = '1';"
        "s.dispatchEvent(new Event('change')); })()"
    )
    assert [each[0] for each in page.run(paths)] == ["k0", "k1", "k2"]
    legend = "[...document.querySelectorAll('#spec-1 .legend button')]"
    assert page.run(f"{legend}.map((each) => each.textContent.trim())") == ["x", "y", "z"]
    page.run(f"{legend}[1].click()")
    assert [each[0] for each in page.run(paths)] == ["k0 faint", "k1", "k2 faint"]
    assert page.run(f"{legend}.map((each) => each.getAttribute('aria-pressed'))") == ["false", "true", "false"]
    page.run(f"{legend}[1].click()")
    assert [each[0] for each in page.run(paths)] == ["k0", "k1", "k2"]


def test_the_script_draws_what_the_page_had_drawn_before(page: Browser) -> None:
    paths = f"{PATHS}.map((each) => [each.getAttribute('class'), each.getAttribute('d')])"
    before = page.run(paths)
    page.run("document.querySelector('#spec-1 [data-kind=nearby]').click()")
    assert page.run(paths) == before


def test_pictures_stand_where_their_samples_do(page: Browser) -> None:
    page.run("document.querySelector('#spec-1 [data-pictures]').click()")
    shade = page.run(
        """(() => {
          const layer = document.querySelector("#spec-1 canvas.pictures");
          const context = new OffscreenCanvas(layer.width, layer.height).getContext("2d", { willReadFrequently: true });
          context.drawImage(layer, 0, 0);
          return [...Array(24).keys()].map((at) => {
            const angle = (2 * Math.PI * at) / 24;
            const x = layer.width * (0.5 + (1000 * Math.cos(angle)) / 2160);
            const y = layer.height * 0.5 + (layer.width * 1000 * Math.sin(angle)) / 2160;
            return context.getImageData(Math.round(x), Math.round(y), 1, 1).data[0];
          });
        })()"""
    )
    assert shade == pytest.approx([10 * at for at in range(SHADES)], abs=3)
    page.run("document.querySelector('#spec-1 [data-pictures]').click()")
    assert page.run("document.querySelector('#spec-1 canvas.pictures').hidden")


def test_hostile_labels_are_text_in_the_map_too(page: Browser) -> None:
    page.run("document.querySelector('#spec-2 svg.plane').scrollIntoView({block: 'center', behavior: 'instant'})")
    point(page, *place(page, 20, spec=2))
    found = looked(page, spec=2)
    assert found is not None
    assert found["words"][0] == f"{EVIL}: {EVIL}"
    assert page.run("document.querySelectorAll('img[src=x]').length") == 0
    page.run("document.querySelectorAll('#spec-2 .legend button')[1].click()")
    assert page.run("document.querySelectorAll('#spec-2 .legend bdi')[1].textContent") == EVIL


def test_everything_that_can_be_pressed_has_a_name(page: Browser) -> None:
    unnamed = page.run(
        """[...document.querySelectorAll("button, a[href], input, select, [tabindex='0'], [role=img]")]
        .filter((each) => !(each.textContent.trim() || each.getAttribute("aria-label") || each.labels?.length
          || each.getAttribute("alt"))).map((each) => each.outerHTML.slice(0, 100))"""
    )
    assert unnamed == []


@pytest.mark.parametrize("width", [1280, 390])
def test_thumbnails_are_as_large_as_they_should_be_and_nothing_is_wider_than_the_window(
    page: Browser, width: int
) -> None:
    page.size(width, 900)
    sizes = page.run(
        "[...document.querySelectorAll('#spec-1 .pic')].filter((each) => each.offsetParent)"
        ".map((each) => { const r = each.getBoundingClientRect(); return [r.width, r.height]; })"
    )
    assert len(sizes) >= 10
    assert all(20 <= wide <= 90 and wide == pytest.approx(tall, abs=0.6) for wide, tall in sizes)
    wide = "[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1)"
    assert page.run(f"{wide}.filter((e) => !e.closest('.scroll, pre')).map((e) => e.outerHTML.slice(0, 90))") == []
    assert page.run("document.documentElement.scrollWidth") <= width
