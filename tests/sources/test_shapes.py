"""Every factor of a drawn picture can be measured in the picture again."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.sources import Shapes
from pipeline.sources.shapes import (
    BACKGROUNDS,
    FIGURES,
    HUES,
    PLACE,
    SIZE,
    TURN,
    X,
    Y,
    colour,
    coverage,
    ground,
    picture,
    signed_distance,
)

NUMBERS = range(0, 240)


def figure(number: int) -> tuple[np.ndarray, np.ndarray, dict[str, str | float]]:
    """Pixels in [0, 1], the mask of the figure as seen (bright against its ground), and the labels."""
    pixels, labels = picture(0, number, None)
    values = pixels / 255
    chroma = values.max(-1) - values.min(-1)
    bright = values @ np.array([0.299, 0.587, 0.114]) > 0.42
    return values, bright | (chroma > 0.25), labels


def test_the_hue_label_is_the_hue_of_the_figures_mean_colour() -> None:
    for number in NUMBERS:
        values, mask, labels = figure(number)
        inner = mask & (coverage_of(labels) > 0.99)
        red, green, blue = values[inner].mean(axis=0)
        hue = 360 * colorsys.rgb_to_hsv(red, green, blue)[0]
        away = [abs((hue - 60 * place + 180) % 360 - 180) for place in range(len(HUES))]
        assert HUES[int(np.argmin(away))] == labels["hue"]


def coverage_of(labels: dict[str, str | float]) -> np.ndarray:
    return coverage(str(labels["shape"]), *(float(labels[name]) for name in ("size", "x", "y", "rotation")))


def test_place_and_size_are_centroid_and_area_of_the_covered_pixels() -> None:
    for number in NUMBERS:
        labels = picture(0, number, None)[1]
        cover = coverage_of(labels)
        area = cover.sum()
        assert area == pytest.approx(np.pi * float(labels["size"]) ** 2, rel=0.06)
        assert (cover * X).sum() / area == pytest.approx(labels["x"], abs=0.15)
        assert (cover * Y).sum() / area == pytest.approx(labels["y"], abs=0.15)


def test_place_is_read_from_the_picture_alone() -> None:
    for number in NUMBERS:
        _, mask, labels = figure(number)
        near = mask & (np.hypot(X - float(labels["x"]), Y - float(labels["y"])) < 11)
        assert X[near].mean() == pytest.approx(labels["x"], abs=0.8)
        assert Y[near].mean() == pytest.approx(labels["y"], abs=0.8)


def test_shape_and_rotation_are_those_of_the_best_matching_template() -> None:
    turns = np.linspace(*TURN, 31)
    right, errors = 0, []
    for number in NUMBERS[:60]:
        values, _, labels = figure(number)
        level = values @ np.array([0.299, 0.587, 0.114])
        at = [float(labels[name]) for name in ("size", "x", "y")]
        scores = {
            (name, turn): np.corrcoef(coverage(name, *at, turn).ravel(), level.ravel())[0, 1]
            for name in FIGURES
            for turn in turns
        }
        name, turn = max(scores, key=lambda key: scores[key])
        right += name == labels["shape"]
        errors.append(abs(turn - float(labels["rotation"])))
    assert right == 60
    assert np.median(errors) < 3


def test_each_background_has_a_texture_of_its_own() -> None:
    draws = np.array([0.5, 1.0, 0.1, 0.5, 0.2, 0.3])
    grounds = [ground(name, draws) for name in BACKGROUNDS]
    assert np.ptp(grounds[0]) == 0
    for position, left in enumerate(grounds):
        assert all(np.abs(left - right).mean() > 0.02 for right in grounds[:position])


def test_the_share_of_marked_pictures_is_the_watermarks_and_the_mark_is_seen() -> None:
    marked = 0
    for number in range(400):
        pixels, labels = picture(3, number, 0.25)
        corner = pixels[-5:-1, -5:-1]
        seen = set(np.unique(corner)) == {0, 255}
        assert seen == (labels["watermark"] == "present")
        marked += seen
    assert 70 < marked < 130
    assert "watermark" not in picture(3, 0, None)[1]


def test_a_picture_depends_on_seed_and_number_alone() -> None:
    few = [record.content for record in Shapes(kind="shapes", pictures=5, seed=1, watermark=None).records(None)]
    more = [record.content for record in Shapes(kind="shapes", pictures=9, seed=1, watermark=None).records(None)]
    other = [record.content for record in Shapes(kind="shapes", pictures=5, seed=2, watermark=None).records(None)]
    assert few == more[:5]
    assert len(set(more)) == 9
    assert not set(few) & set(other)


def test_factors_fill_their_ranges_independently() -> None:
    labels = [picture(0, number, None)[1] for number in range(1200)]
    names = ("size", "x", "y", "rotation")
    table = np.array([[float(label[name]) for name in names] for label in labels])
    for column, (low, high) in enumerate((SIZE, PLACE, PLACE, TURN)):
        assert low <= table[:, column].min() < low + 0.05 * (high - low)
        assert high >= table[:, column].max() > high - 0.05 * (high - low)
    shape = np.array([list(FIGURES).index(str(label["shape"])) for label in labels])
    hue = np.array([HUES.index(str(label["hue"])) for label in labels])
    together = np.corrcoef(np.column_stack([table, shape, hue]).T)
    assert np.abs(together - np.eye(6)).max() < 0.1
    assert np.bincount(shape, minlength=6).min() > 150


def test_raw_pixels_hardly_tell_the_shape() -> None:
    drawn = [picture(0, number, None) for number in range(1500)]
    pixels = np.stack([image for image, _ in drawn]).reshape(1500, -1) / 255.0
    pixels /= np.linalg.norm(pixels, axis=1, keepdims=True)
    shape = np.array([str(labels["shape"]) for _, labels in drawn])
    nearest = np.argmax(pixels[1200:] @ pixels[:1200].T, axis=1)
    assert (shape[:1200][nearest] == shape[1200:]).mean() < 0.5


@given(st.sampled_from(sorted(FIGURES)), st.floats(4, 8), st.floats(-30, 30))
def test_the_distance_to_an_outline_has_slope_one_and_is_negative_inside(name: str, size: float, turn: float) -> None:
    spin = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    outline = FIGURES[name] @ spin * size + 16
    distance = signed_distance(X, Y, outline)
    assert np.abs(np.diff(distance, axis=0)).max() <= 1 + 1e-9
    fine = np.meshgrid(np.arange(0, 32, 0.1), np.arange(0, 32, 0.1))
    assert (signed_distance(*fine, outline) < 0).sum() / 100 == pytest.approx(np.pi * size**2, rel=0.02)
    on = signed_distance(outline[:, 0], outline[:, 1], outline)
    assert np.abs(on).max() < 1e-6


@given(st.floats(0, 360), st.floats(0.3, 0.9))
def test_a_colour_has_the_luma_and_hue_that_were_asked_for(hue: float, luma: float) -> None:
    made = colour(hue, luma)
    assert made.min() >= -1e-12
    assert made.max() <= 1 + 1e-12
    assert made @ np.array([0.299, 0.587, 0.114]) == pytest.approx(luma)
    found = 360 * colorsys.rgb_to_hsv(*made)[0]
    assert abs((found - hue + 180) % 360 - 180) < 1e-6


def test_every_figure_stays_on_the_canvas() -> None:
    for name in FIGURES:
        for turn in np.linspace(*TURN, 13):
            for x, y in ((PLACE[0], PLACE[0]), (PLACE[1], PLACE[0]), (PLACE[0], PLACE[1]), (PLACE[1], PLACE[1])):
                area = coverage(name, SIZE[1], x, y, turn).sum()
                assert area == pytest.approx(np.pi * SIZE[1] ** 2, rel=0.06)
