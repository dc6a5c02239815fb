"""The gallery on the page: each sample with its own picture and words, numbers as in the file, gaps and damage told."""

from __future__ import annotations

import base64
import html
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from reported import EVIL, SHADES, audit_more, made, make, put, write

from pipeline.report.map import COLOURS, SHOWN, SIGNS, colour_of, sign_of
from pipeline.report.readers import PNG


def held() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(Path("work/gallery/digits/gallery.json").read_text())
    return content


def numbers(content: Any) -> set[float]:
    if isinstance(content, dict):
        return set().union(*map(numbers, content.values()))
    if isinstance(content, list):
        return set().union(*map(numbers, content))
    return {float(content)} if isinstance(content, (int, float)) and not isinstance(content, bool) else set()


def part(text: str, start: str, end: str) -> str:
    return text[text.index(start) : text.index(end, text.index(start))]


def cells(text: str) -> list[tuple[str, int]]:
    """Every thumbnail: its words, and its cell as the style places it on a sheet of 6 x 4."""
    found = re.findall(r'aria-label="([^"]*)" title="([^"]*)" style="background-position:([\d.]+)% ([\d.]+)%"', text)
    assert all(label == title for label, title, _, _ in found)
    return [
        (html.unescape(label), round(float(down) * 3 / 100) * 6 + round(float(across) * 5 / 100))
        for label, _, across, down in found
    ]


def test_every_number_of_the_gallery_is_one_of_its_file(project: Path) -> None:
    text, _ = made()
    shown = re.findall(r'<data value="([^"]+)"', part(text, "<h3>The map</h3>", "<h3>What the network saw</h3>"))
    assert len(shown) >= 7
    assert {float(value) for value in shown} <= numbers(held()) | {float(SHADES)}
    again = part(text, "To be looked at again", "</details>")
    assert {0.859375, 0.203125, 37.0} <= {float(value) for value in re.findall(r'<data value="([^"]+)"', again)}


def test_every_thumbnail_is_the_cell_of_its_sample_and_says_what_it_is(project: Path) -> None:
    text, _ = made()
    shown = cells(text)
    assert ("label (test 17)", 1) in shown
    assert ("0 (test 18)", 2) in shown
    for words, cell in (
        ("label, cosine 0.938 (train 15)", 3),
        ("0, cosine 0.922 (train 20)", 4),
        ("label, x (test 6: label.png)", 6),
        ("label, x (train 9: label.png)", 9),
    ):
        assert (words, cell) in shown
    asked = part(text, 'class="asked"', "<h3>Worst")
    marks = re.findall(r'<div class="(same|other)">', asked)
    assert marks == ["same", "other", "other", "same", "other", "same", "same", "other"]


def test_the_map_is_drawn_without_a_script_a_sign_and_a_colour_for_each_class(project: Path) -> None:
    text, _ = made()
    plane = part(text, '<svg class="plane"', "</svg>")
    paths = dict(re.findall(r'<path class="(k\w)" d="([^"]+)"', plane))
    assert list(paths) == ["k0", "k1"]
    for code, line in enumerate(paths.values()):
        own = [f"M{round(1000 * x)},{round(1000 * y)}{SIGNS[code]}" for x, y in held()["map"]["nearby"]["points"]]
        assert line == "".join(own[12 * code : 12 * code + 12])
    assert re.findall(r"<bdi>([^<]+)</bdi>", part(text, '<ul class="legend">', "</ul>")) == ["0", "label"]
    assert part(text, "<select", "</select>").count("<option") >= 2


def test_forty_classes_differ_in_sign_or_colour_and_the_rest_are_grey() -> None:
    assert len({(sign_of(code), colour_of(code)) for code in range(SHOWN)}) == SHOWN
    assert COLOURS * len(SIGNS) == SHOWN
    assert {(sign_of(code), colour_of(code)) for code in (SHOWN, SHOWN + 7)} == {(SIGNS[0], "kx")}


def test_what_the_script_reads_is_the_gallery_with_the_telling_column_first(project: Path) -> None:
    _, page = made()
    (told,) = (json.loads(str(each["data-map"])) for _, each in page.elements if "data-map" in each)
    found = held()["map"]
    assert told["sheet"] == [6, 16, 16]
    assert [each["name"] for each in told["columns"]] == ["label", "other"]
    assert told["columns"][0]["codes"] == found["labels"]["label"]["codes"]
    assert told["numbers"] == [{"name": "age", "values": found["labels"]["age"]["values"]}]
    assert told["rows"] == found["rows"]
    assert told["maps"]["principal"][:4] == [
        round(1000 * each) for pair in found["principal"]["points"][:2] for each in pair
    ]


def test_sheets_stand_in_the_page_once_each(project: Path) -> None:
    text, _ = made()
    for sheet in ("map", "pictures"):
        assert base64.b64encode(Path(f"work/gallery/digits/{sheet}.webp").read_bytes()).decode() in text
    assert text.count("data:image/webp") == 2


def test_hostile_names_in_a_gallery_are_text(project: Path) -> None:
    write(["digits"])
    make("digits", EVIL)
    audit_more("digits", EVIL)
    text, page = made()
    assert not any(key.startswith("on") for _, attributes in page.elements for key in attributes)
    assert not page.open
    assert [
        each["src"] for tag, each in page.elements if tag == "img" and not str(each["src"]).startswith("data:")
    ] == []
    (told,) = (json.loads(str(each["data-map"])) for _, each in page.elements if "data-map" in each)
    assert told["columns"][0]["name"] == EVIL
    assert f"{EVIL}, x (test 6: {EVIL}.png)" in {words for words, _ in cells(text)}


def test_a_gallery_that_has_not_run_is_named_and_everything_else_is_there(project: Path) -> None:
    shutil.rmtree("work/gallery")
    _, page = made()
    assert "There is no map and no gallery: stage gallery has not run." in page.text
    assert "37 entries: far from all" in page.text
    assert "What the network saw" in page.text


def test_a_space_that_collapsed_has_no_map_and_still_its_neighbours_on_the_raw_input(project: Path) -> None:
    content = held()
    content["map"] |= {"rows": [], "principal": None, "nearby": None, "labels": {}, "note": "all rows are equal"}
    content["sheets"]["map"]["count"] = 0
    for query in content["nearest"]["queries"]:
        del query["layers"]["h"]
    content["nearest"]["note"] = "h: all rows are equal"
    put("gallery", "digits", "gallery.json", content)
    text, page = made()
    assert "There is no map: all rows are equal." in page.text
    assert "Not found: h: all rows are equal." in page.text
    assert ("label (test 17)", 1) in cells(text)
    assert "damaged" not in page.text


def test_a_space_without_a_map_says_why(project: Path) -> None:
    content = held()
    content["map"] |= {"rows": [], "principal": None, "nearby": None, "labels": {}, "note": "all rows are equal"}
    content["nearest"] |= {"queries": [], "column": None, "note": "h: all rows are equal"}
    content["sheets"]["map"]["count"] = 0
    put("gallery", "digits", "gallery.json", content)
    _, page = made()
    assert "There is no map: all rows are equal." in page.text
    assert "There are no neighbours: h: all rows are equal." in page.text
    assert "damaged" not in page.text


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda content: content["map"]["rows"].pop(), "a place for each sample"),
        (lambda content: content["map"]["labels"]["label"]["codes"].__setitem__(0, 2), "other codes than those"),
        (lambda content: content["map"]["labels"]["age"]["values"].pop(), "a label for each sample"),
        (lambda content: content["nearest"]["queries"][0].__setitem__("cell", SHADES), "not on its sheet"),
        (lambda content: content["nearest"]["queries"][0].__setitem__("code", 9), "a class that there is not"),
        (lambda content: content["sheets"]["pictures"].__setitem__("columns", 0), "no size"),
        (lambda content: content["sheets"].pop("map"), "sheets.map: field required"),
    ],
)
def test_a_gallery_that_contradicts_itself_is_damaged(project: Path, change: Any, told: str) -> None:
    content = held()
    change(content)
    put("gallery", "digits", "gallery.json", content)
    _, page = made()
    assert "gallery: damaged or incomplete." in page.text
    assert told in page.text


def test_a_sheet_that_is_no_picture_is_damaged(project: Path) -> None:
    Path("work/gallery/digits/map.webp").write_bytes(b"<svg onload=alert(1)>")
    text, page = made()
    assert "map.webp: no WebP" in page.text
    assert "PHN2Zy" not in text


def test_views_stand_role_by_role_or_in_pairs_where_an_earlier_version_wrote_them(project: Path) -> None:
    text, page = made()
    rows = part(text, '<div class="rows">', "</div>")
    assert re.findall(r"<span>([^<]+)</span>", rows) == ["as stored", "view 1", "view 2"]
    assert rows.count(base64.b64encode(PNG).decode()[:10]) == 3
    for file in Path("work/pretrain/digits").glob("view-*.png"):
        file.unlink()
    _, page = made()
    assert "The views that the network really saw" in page.text


def test_a_role_that_is_no_picture_is_damaged(project: Path) -> None:
    Path("work/pretrain/digits/view-01-view_1.png").write_text("<svg>")
    _, page = made()
    assert "view-01-view_1.png: no PNG" in page.text


def test_lineage_names_spec_data_code_and_versions(project: Path) -> None:
    _, page = made()
    for words in ("e" * 16, "f" * 64, "Trained with python 3.11.0, torch 2.4.0."):
        assert words in page.text
    (Path("work/pretrain/digits") / "lineage.json").unlink()
    _, page = made()
    assert "e" * 16 not in page.text


def test_the_ledger_and_the_classes_are_charts_of_their_numbers(project: Path) -> None:
    text, _ = made()
    rows = re.findall(r'<span class="(kept|gone)" style="width:([\d.]+)%"></span><data value="(\d+)"', text)
    assert rows == [("kept", "99.83", "1797"), ("gone", "0.1667", "3")]
    wide = re.findall(r'<span class="kept" style="width:([\d.]+)px"></span><data value="(\d+)"', text)
    assert [(float(width), int(value)) for width, value in wide] == [
        (pytest.approx(100 * value / 723, abs=0.01), value) for value in (700, 200, 723, 174)
    ]


def test_a_data_set_of_another_modality_is_told_by_its_own_contract(project: Path) -> None:
    file = Path("work/shard/digits/index.json")
    content = json.loads(file.read_text())
    content["input"] = {"kind": "audio", "rate": 8000, "seconds": 0.75, "longer": EVIL}
    file.write_text(json.dumps(content))
    _, page = made()
    assert f"brought to audio (rate 8000, seconds 0.75, longer {' '.join(EVIL.split())})." in page.text


def test_a_large_picture_of_a_stage_is_a_small_one_of_the_page_and_looks_the_same() -> None:
    import io

    import numpy as np
    from PIL import Image

    from pipeline.report.pieces import LARGE, address

    random = np.random.default_rng(0).integers(0, 256, (20, 20, 3), dtype=np.uint8)
    smooth = np.asarray(Image.fromarray(random).resize((400, 400), Image.Resampling.BICUBIC))
    file = io.BytesIO()
    Image.fromarray(smooth).save(file, "PNG")
    assert len(file.getvalue()) > LARGE
    kind, _, content = address(file.getvalue()).partition(";base64,")
    assert kind == "data:image/webp"
    small = base64.b64decode(content)
    assert len(small) < len(file.getvalue()) / 3
    assert np.abs(np.asarray(Image.open(io.BytesIO(small)), dtype=int) - smooth).mean() < 6
    assert address(PNG + b"x") == f"data:image/png;base64,{base64.b64encode(PNG + b'x').decode()}"


def test_how_far_pictures_are_told_apart_is_drawn_where_it_was_looked_at(project: Path) -> None:
    _, page = made()
    assert "Told apart while training" not in page.text
    file = Path("work/pretrain/digits/curve.csv")
    head, *lines = file.read_text().splitlines()
    file.write_text("\n".join([f"{head},told_apart", *(f"{line},0.5" for line in lines), ""]))
    _, page = made()
    assert "Told apart while training" in page.text
