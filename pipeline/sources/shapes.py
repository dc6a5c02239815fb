"""Procedural 32x32 RGB pictures of one figure on a textured ground, made from known factors, every factor a label.

Pictures of known factors let the whole pipeline be held against the truth (the idea of dSprites: L. Matthey et al.,
2017). Here place, size, turn, hue and ground vary so much that raw pixels hardly tell the figure. A picture is a
function of (seed, its number) alone, by the counter-based generator Philox (J. Salmon et al., SC 2011). Edges are
antialiased by the signed distance to the outline (I. Quilez, "2D distance functions").

Legend: V vertices. Coordinates in pixels, x to the right, y down, the canvas from 0 to 32.
"""

from __future__ import annotations

import colorsys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from pipeline.images import Pixels, encode_png
from pipeline.sources.record import ColumnKind, Record
from pipeline.spec import Spec

Floats = npt.NDArray[np.float64]
Labels = dict[str, str | float]

SIDE = 32
HUES = ("red", "yellow", "green", "cyan", "blue", "magenta")  # 60 degrees apart; red is at 0
BACKGROUNDS = ("plain", "stripes", "checks", "waves")
SIZE = (5.0, 6.4)  # radius of the disc of equal area, pixels
PLACE = (10.3, 21.7)  # centre of area, pixels, so that no figure leaves the canvas
TURN = (-30.0, 30.0)  # degrees, clockwise; less than half of any figure's symmetry
LUMA = (0.299, 0.587, 0.114)  # ITU-R 601
X, Y = np.meshgrid(np.arange(SIDE) + 0.5, np.arange(SIDE) + 0.5)  # the middle of every pixel, (32, 32)
FACTORS: dict[str, ColumnKind] = {
    "shape": "class",
    "hue": "class",
    "size": "number",
    "x": "number",
    "y": "number",
    "rotation": "number",
    "background": "class",
    "red": "class",
    "side": "class",
}
CELLS = 4  # cells a side of a mark, one pixel each


class Shapes(Spec):
    """Pictures of one of six figures; each factor is a column: shape, hue, size, x, y, rotation, background.

    Two columns follow from these: ``red`` (whether the figure's red is above its grey, which a grey picture does not
    tell: all figures are equally light) and ``side`` (left or right of the middle).
    """

    kind: Literal["shapes"]
    pictures: int = Field(ge=2, le=10_000_000)
    """how many"""
    seed: int = Field(ge=0, lt=2**63)
    watermark: float | None = Field(gt=0, le=1)
    """share of pictures with a mark in the lower right corner (column ``watermark``: absent, present); null: none"""
    mark: Literal["same", "own"] = "same"
    """same: all marks are one cross; own: every picture has a pattern of its own, drawn by its number"""
    embedded: ClassVar[bool] = True
    splits_itself: ClassVar[bool] = False

    def columns(self) -> dict[str, ColumnKind]:
        """Name and kind of every label column."""
        return {**FACTORS, "watermark": "class"} if self.watermark is not None else dict(FACTORS)

    def count(self) -> int | None:
        """How many pictures there are, where that is known before any data is read."""
        return self.pictures

    def records(self, raw: Path | None) -> Iterator[Record]:
        """Yield every picture as a 32x32 PNG; picture i is the same whatever ``pictures`` is. ``raw`` is not read."""
        for number in range(self.pictures):
            pixels, labels = picture(self.seed, number, self.watermark, self.mark)
            yield Record(f"shape-{number:08d}", encode_png(pixels), labels)


def picture(
    seed: int, number: int, watermark: float | None, mark: Literal["same", "own"] = "same"
) -> tuple[Pixels, Labels]:
    """Draw the factors of one picture, then the picture: pixels (32, 32, 3) uint8 and every factor."""
    rng = np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, number, 0]))
    u = rng.random(20)
    shape = list(FIGURES)[int(u[0] * len(FIGURES))]
    hue = int(u[1] * len(HUES))
    background = BACKGROUNDS[int(u[2] * len(BACKGROUNDS))]
    size, x, y, rotation = (
        float(low + (high - low) * part) for part, (low, high) in zip(u[3:7], (SIZE, PLACE, PLACE, TURN), strict=True)
    )
    labels: Labels = {"shape": shape, "hue": HUES[hue], "size": size, "x": x, "y": y, "rotation": rotation}
    labels |= {"background": background, "side": "left" if x < SIDE / 2 else "right"}
    paint = colour(60 * hue + 24 * u[7] - 12, 0.62 + 0.1 * u[8])
    labels["red"] = "more" if paint[0] > paint @ LUMA else "less"
    cover = coverage(shape, size, x, y, rotation)[..., None]  # (32, 32, 1)
    canvas = ground(background, u[10:16])[..., None] * (1 - cover) + paint * cover  # (32, 32, 3)
    canvas = canvas + 0.08 * (rng.random((SIDE, SIDE, 3)) - 0.5)
    if watermark is not None:
        marked = bool(u[16] < watermark)
        labels["watermark"] = "present" if marked else "absent"
        if marked:
            canvas[-1 - CELLS : -1, -1 - CELLS : -1] = pattern(u[17], mark)[..., None]
    return np.rint(255 * np.clip(canvas, 0, 1)).astype(np.uint8), labels


def pattern(u: float, mark: Literal["same", "own"]) -> Floats:
    """A mark (4, 4) of zeros and ones: a cross, or the bits of a uniform number."""
    if mark == "same":
        return np.where(np.eye(CELLS, dtype=bool) | np.eye(CELLS, dtype=bool)[::-1], 1.0, 0.0)
    return ((int(u * 2 ** (CELLS * CELLS)) >> np.arange(CELLS * CELLS)) % 2).reshape(CELLS, CELLS).astype(np.float64)


def colour(hue: float, luma: float) -> Floats:
    """The purest colour (3,) of a hue (degrees) and a luma (ITU-R 601), in [0, 1]: brightness does not tell the hue."""
    pure = np.array(colorsys.hsv_to_rgb(hue / 360 % 1, 1.0, 1.0))
    found = float(pure @ LUMA)
    return pure * (luma / found) if found > luma else pure + (1 - pure) * ((luma - found) / (1 - found))


def coverage(shape: str, size: float, x: float, y: float, rotation: float) -> Floats:
    """How much of each pixel the figure covers: (32, 32) in [0, 1]."""
    turn = np.radians(rotation)
    spin = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    outline = FIGURES[shape] @ spin * size + (x, y)  # (V, 2)
    covered: Floats = np.clip(0.5 - signed_distance(X, Y, outline), 0.0, 1.0)
    return covered


def ground(background: str, u: Floats) -> Floats:
    """Grey level of the ground at every pixel, (32, 32) in [0, 1], from six uniform numbers."""
    level, contrast = 0.18 + 0.06 * u[0], 0.1 + 0.06 * u[1]
    angle, period = np.pi * u[2], 2.5 + u[3]
    along = (X * np.cos(angle) + Y * np.sin(angle)) / period + u[4]
    across = (Y * np.cos(angle) - X * np.sin(angle)) / period + u[5]
    wave, other = np.sin(2 * np.pi * along), np.sin(2 * np.pi * across)
    textures: dict[str, Floats] = {
        "plain": np.zeros_like(wave),
        "stripes": np.clip(3 * wave, -1, 1),
        "checks": np.clip(6 * wave * other, -1, 1),
        "waves": 0.6 * (wave + np.sin(2 * np.pi * (0.7 * along + 0.4 * other))),
    }
    grey: Floats = np.clip(level + contrast * textures[background], 0.0, 1.0)
    return grey


def signed_distance(x: Floats, y: Floats, outline: Floats) -> Floats:
    """Distance of the points (x, y), each (...), to a polygon (V, 2); negative inside."""
    (left, top), (edge_x, edge_y) = outline.T, (np.roll(outline, -1, axis=0) - outline).T  # each (V,)
    from_x, from_y = x[..., None] - left, y[..., None] - top  # (..., V)
    along = np.clip((from_x * edge_x + from_y * edge_y) / (edge_x**2 + edge_y**2), 0, 1)
    nearest = np.sqrt(((from_x - along * edge_x) ** 2 + (from_y - along * edge_y) ** 2).min(-1))
    straddles = (from_y < 0) != (from_y < edge_y)
    crossings = straddles & ((edge_x * from_y > edge_y * from_x) == (edge_y > 0))
    inside = crossings.sum(-1) % 2 == 1
    return np.asarray(np.where(inside, -nearest, nearest), dtype=np.float64)


def _arc(radius: float, first: float, last: float, count: int, down: float = 0.0) -> Floats:
    """Points (count, 2) of a circle around (0, down), from angle first to last (degrees, 0 is up, clockwise)."""
    angle = np.radians(np.linspace(first, last, count))
    return np.stack([radius * np.sin(angle), down - radius * np.cos(angle)], axis=1)


def _figures() -> dict[str, Floats]:
    """The outline (V, 2) of every figure, unturned, its centre of area at (0, 0) and its area that of the unit disc.

    With equal areas, size says nothing of the shape.
    """
    bar, wing = 0.36, 0.95
    half = [(bar, -1), (bar, -bar), (1, -bar), (1, bar), (bar, bar), (bar, 1)]
    head = [(0, -1), (wing, 0), (0.4, 0), (0.4, 1)]
    star = np.stack([_arc(1, 0, 288, 5), _arc(0.42, 36, 324, 5)], axis=1).reshape(10, 2)
    outlines = {
        "triangle": _arc(1, 0, 240, 3),
        "square": _arc(1, 45, 315, 4),
        "star": star,
        "cross": np.array(half + [(-x, -y) for x, y in half]),
        "arrow": np.array(head + [(-x, y) for x, y in head[:0:-1]]),
        "moon": np.concatenate([_arc(1, 40.5, 319.5, 24), _arc(0.7, 291.8, 68.2, 16, down=-0.5)]),
    }
    return {name: _unit_area(outline) for name, outline in outlines.items()}


def _unit_area(outline: Floats) -> Floats:
    following = np.roll(outline, -1, axis=0)
    cross = outline[:, 0] * following[:, 1] - following[:, 0] * outline[:, 1]  # (V,)
    area = cross.sum() / 2
    centre = ((outline + following) * cross[:, None]).sum(axis=0) / (6 * area)
    return np.asarray((outline - centre) * np.sqrt(np.pi / abs(area)))


FIGURES = _figures()
