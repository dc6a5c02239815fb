"""The page in a real browser: laboratory, sortable comparison, and that it asks for nothing and never complains."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from chromium import Browser
from reported import EVIL, audit_more, make, put, rows, write

from pipeline.report import charts
from pipeline.report.forms import FORMS
from pipeline.report.laboratory import crowd, false_negatives, negatives_of, same_class_share
from stages import report

STATES = [
    (64, 0.1, 0.7, 0.2),
    (2, 0.01, 1.0, -1.0),
    (65536, 0.003, -1.0, 1.0),
    (513, 0.07, 0.954127, -0.000715),
    (4096, 1.0, 0.3, 0.3),
    (1.5, 2.0, 0.0, 0.99),
]
HOSTILE = EVIL.replace("/", "").replace("\n", "")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page of three specs: a good one, a better one that failed, and one of a hostile name that was not judged."""
    folder, before = tmp_path_factory.mktemp("project"), Path.cwd()
    os.chdir(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(charts, "as_svg", lambda draw, words: f'<svg aria-label="{words}"></svg>')
        Path("specs").mkdir()
        names = ["digits", "better", HOSTILE]
        write(names)
        for name in names:
            make(name, "label")
        audit_more("digits", "label")
        better = Path("specs/better.yaml")
        better.write_text(better.read_text().replace("temperature: 0.1", "temperature: 0.2"))
        probed = [{**row, "accuracy": 0.99, "low": 0.98, "high": 1.0} for row in rows("label") if row["layer"] == "h"]
        put("probe", "better", "figures.json", {"rows": probed})
        put("judge", "better", "verdict.json", {"verdict": "failed", "thresholds": "a", "rows": []})
        for stage in ("probe", "judge", "export"):
            for file in (Path("work") / stage / HOSTILE).iterdir():
                file.unlink()
            (Path("work") / stage / HOSTILE).rmdir()
        report.main([])
    os.chdir(before)
    return (folder / "work/report.html").as_uri()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Browser]:
    """The page, opened; it must have asked for nothing and complained of nothing when the test is over."""
    browser.open(address)
    yield browser
    assert browser.errors == []
    assert [each for each in browser.requests if not each.startswith("data:")] == [address]


READ = """Object.fromEntries([...document.querySelectorAll("#laboratory data[data-lab]")]
    .map((each) => [each.dataset.lab, [Number(each.value), each.textContent, each.dataset.form]]))"""


def expected(state: tuple[float, float, float, float], share: float) -> dict[str, float]:
    batch, temperature, positive, negative = state
    negatives = negatives_of(batch)
    found, doubled = (crowd(negatives_of(each), temperature, positive, negative) for each in (batch, 2 * batch))
    return {
        **asdict(found),
        **{"batch": batch, "temperature": temperature, "positive": positive, "negative": negative},
        "negatives": negatives,
        "false_negatives": false_negatives(negatives, share),
        "doubled_batch": 2 * batch,
        "doubled_loss": doubled.loss,
        "dearer": doubled.loss - found.loss,
    }


def agree(shown: dict[str, list[Any]], numbers: dict[str, float]) -> None:
    for name, (value, text, form) in shown.items():
        assert value == pytest.approx(numbers[name], rel=1e-6, abs=1e-300), name
        whole = float(numbers[name]).is_integer() or form != "count"
        if whole and abs(value - numbers[name]) <= 1e-12 * abs(value):
            assert text.replace("\u00a0", " ") == FORMS[form](value).replace("\u00a0", " "), name
    assert {"loss", "log_k", "positive_share", "each_gradient", "all_gradient", "false_negatives"} <= set(shown)


@pytest.mark.parametrize("state", STATES)
def test_the_page_and_python_compute_the_same(browser: Browser, address: str, state: tuple[float, ...]) -> None:
    browser.open(f"{address}#crowd={','.join(map(repr, state))}")
    agree(browser.run(READ), expected(state, 0.1))  # type: ignore[arg-type]
    assert browser.errors == []


def test_a_grid_of_states_agrees_to_a_millionth(page: Browser) -> None:
    grid = [
        (negatives, temperature, positive, negative)
        for negatives in (1, 2, 126, 8190, 10**6)
        for temperature in (0.01, 0.05, 0.1, 0.5, 1.0)
        for positive in (-1.0, 0.0, 0.7, 1.0)
        for negative in (-1.0, -0.1, 0.2, 1.0)
    ]
    answers = page.run(f"{[list(each) for each in grid]}.map((each) => crowd(...each))")
    assert len(answers) == 400
    for point, answer in zip(grid, answers, strict=True):
        assert answer == pytest.approx(asdict(crowd(*point)), rel=1e-6, abs=1e-300), point


def test_a_bad_state_in_the_address_changes_nothing(browser: Browser, address: str) -> None:
    bad = ("", "1,2,3", "64,0.1,0.7,x", "64,0,0.7,0.2", "64,0.1,7,0.2", "1e99,0.1,0.7,0.2", "%,0.1,<b>,0", "64,,0,0")
    for text in bad:
        browser.open(f"{address}#crowd={text}")
        agree(browser.run(READ), expected((64, 0.1, 0.7, 0.2), 0.1))
        assert browser.errors == []


def test_the_example_has_a_green_bar_of_54_percent_and_a_loss_of_0_61(page: Browser) -> None:
    shown = page.run(READ)
    assert (shown["positive_share"][1].replace("\u00a0", " "), shown["loss"][1]) == ("54.1 %", "0.615")
    assert shown["loss"][0] == pytest.approx(0.614635, abs=5e-6)
    wide = page.run('[...document.querySelectorAll("[data-bar]")].map((each) => each.getBoundingClientRect().width)')
    assert wide[0] / (wide[0] + wide[1]) == pytest.approx(0.5408, abs=0.005)


def test_sliders_are_moved_by_keys_and_say_their_value_in_words(page: Browser) -> None:
    page.run('document.getElementById("lab-batch").focus()')
    page.press("ArrowRight", 39)
    agree(page.run(READ), expected((128, 0.1, 0.7, 0.2), 0.1))
    assert page.run('document.getElementById("lab-batch").getAttribute("aria-valuetext")') == "128"
    page.press("Tab", 9)
    assert page.run("document.activeElement.id") == "lab-temperature"
    page.press("ArrowLeft", 37)
    shown = page.run(READ)
    agree(shown, expected((128, 0.09, 0.7, 0.2), 0.1))
    unnamed = "[...document.querySelectorAll('#laboratory input, #laboratory select')].filter((e) => !e.labels.length)"
    assert page.run(f"{unnamed}.length") == 0


def test_raising_the_batch_raises_the_loss_and_the_page_says_so(page: Browser) -> None:
    before = page.run(READ)
    page.run('document.getElementById("lab-batch").focus()')
    page.press("ArrowRight", 39)
    after = page.run(READ)
    assert after["loss"][0] == pytest.approx(before["doubled_loss"][0], rel=1e-12)
    assert after["loss"][0] - before["loss"][0] == pytest.approx(before["dearer"][0], abs=1e-12)
    assert "without moving any pair" in page.run('document.querySelector("#laboratory .note").textContent')


def test_a_button_loads_what_a_run_measured_of_itself_and_explains_it(page: Browser) -> None:
    page.run("""[...document.querySelectorAll("#laboratory button.run")][0].focus()""")
    page.press("Enter", 13)
    share = same_class_share([700, 723])
    agree(page.run(READ), expected((128, 0.1, 0.954127, -0.000715), share))
    shown = "[...document.querySelectorAll('#laboratory [data-note]:not([hidden])')]"
    notes = page.run(f"{shown}.map((each) => each.innerText)")
    assert len(notes) == 1
    assert "Training of digits, last epoch" in notes[0]
    assert "0.228" in notes[0]
    page.run('document.getElementById("lab-positive").focus()')
    page.press("ArrowLeft", 37)
    assert page.run('document.querySelectorAll("#laboratory [data-note]:not([hidden])").length') == 0


def test_the_class_prior_is_chosen_from_the_data_cards(page: Browser) -> None:
    words = page.run('[...document.querySelectorAll("#lab-prior option")].map((each) => each.textContent)')
    assert words[1].startswith("label of digits: Σp² = 0.5")
    page.run('document.getElementById("lab-prior").focus()')
    page.press("ArrowDown", 40)
    agree(page.run(READ), expected((64, 0.1, 0.7, 0.2), same_class_share([700, 723])))


NAMES = '[...document.querySelectorAll("table.overview tbody tr")].map((row) => row.dataset.spec)'


def sort_by(page: Browser, words: str) -> str:
    """Press the button of a column; return its heading's aria-sort."""
    find = f"""[...document.querySelectorAll("table.overview th button")].find((e) => e.textContent === {words!r})"""
    page.run(f"{find}.focus()")
    page.press(" ", 32)
    assert page.run('document.querySelectorAll("[aria-sort=ascending], [aria-sort=descending]").length') == 1
    return str(page.run(f"{find}.parentElement.getAttribute('aria-sort')"))


def test_the_comparison_is_sorted_by_keys_and_what_has_no_value_stays_last(page: Browser) -> None:
    assert page.run(NAMES) == ["digits", "better", HOSTILE]
    assert sort_by(page, "moved: h") == "descending"
    assert page.run(NAMES) == ["better", "digits", HOSTILE]
    assert sort_by(page, "moved: h") == "ascending"
    assert page.run(NAMES) == ["digits", "better", HOSTILE]
    assert sort_by(page, "verdict") == "ascending"
    assert page.run(NAMES)[0] == "digits"
    assert sort_by(page, "space") == "ascending"
    assert set(page.run(NAMES)[1:]) == {"better", "digits"}
    assert page.run(NAMES).index("better") < page.run(NAMES).index("digits")


def test_what_differs_in_the_specs_is_marked(page: Browser) -> None:
    marked = page.run('[...document.querySelectorAll(".differing mark")].map((each) => each.textContent)')
    assert marked == ["0.2"]


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_window_and_text_stands_out(page: Browser, width: int, scheme: str) -> None:
    page.size(width, 900)
    page.scheme(scheme)
    assert page.run("document.documentElement.scrollWidth") <= width
    light = "((c) => c.match(/\\d+/g).slice(0, 3).reduce((sum, each) => sum + Number(each), 0))"
    style = "getComputedStyle(document.body)"
    ink, ground = page.run(f"[{light}({style}.color), {light}({style}.backgroundColor)]")
    assert abs(ink - ground) > 400
    assert (ground > 600) == (scheme == "light")


def test_a_hostile_name_is_text_alone(page: Browser) -> None:
    assert page.run("document.querySelectorAll('img[src=x]').length") == 0
    assert HOSTILE in page.run('document.getElementById("spec-3").querySelector("h2").textContent')
