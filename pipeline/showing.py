"""Pictures of the declared invariances, before any training: what each does, how strongly, and all of them together.

One page an invariance: rows are samples, then several draws, then the first draw at rising strengths. One page of the
views as training makes them, role by role. The views come from the same loader as training's.

n samples; images (n, C, h, w) float in [0, 1].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from pydantic import BaseModel
from torch import Tensor
from torch.nn import functional

from pipeline.keys import permutation
from pipeline.loading import ViewLoader
from pipeline.pictures import save_png, to_rgb
from pipeline.shards import Shards
from pipeline.space import LatentSpace
from pipeline.spec import Refusal
from pipeline.views import Invariance
from pipeline.views.roles import Partners, Role, with_partners

SPLIT, SEED, EPOCH = "test", 0, -1  # an epoch that no training has
DRAWS = 4
STRENGTHS = (0.25, 0.5, 1.0)
TILE = (112, 160)  # pixels of a tile's longer side, from and to
PAPER, INK, FAINT = (255, 255, 255), (24, 24, 27), (113, 113, 122)
GAP, APART, MARGIN = 4, 16, 16
TEXT, SMALL = 14, 12  # pixels of the fonts


@dataclass(frozen=True)
class Column:
    """Images under a heading; a column that begins a band stands apart."""

    heading: str
    images: Tensor
    band: bool = False


def show_views(space: LatentSpace, shards: Shards, folder: Path, samples: int) -> list[Path]:
    """Write a page for each declared invariance and one of all together; the same call writes the same bytes.

    Args:
        space: what is declared.
        shards: whose test split is shown.
        folder: what stands in it as PNG is replaced.
        samples: rows of a page, at most.

    Returns:
        The files, in the order of the declaration; the last is all.png.

    Raises:
        Refusal: no row is asked for, or user code fails.
    """
    if samples < 1:
        raise Refusal(f"--samples {samples}: must be 1 or more")
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    codes = shards.labels(SPLIT)[space.views.column] if isinstance(space.views, Partners) else None
    rows = np.arange(shards.card.splits[SPLIT]) if codes is None else with_partners(codes)
    rows = np.sort(rows[permutation(SEED, 0, len(rows))[:samples]])
    pictures = shards.card.input.pictures
    plain = Column("sample", pictures(shards.batch(SPLIT, rows)))
    files = []
    for number, invariance in enumerate(space.declared()):
        files.append(folder / f"{number:02d}-{invariance.kind}.png")
        save_png(page([written(invariance)], [plain, *_bands(invariance, shards, rows)]), files[-1])
    files.append(folder / "all.png")
    titles = [
        line
        for role in space.roles()
        for line in (f"{role.name}:", *(f"- {written(each)}" for each in role.invariances))
    ]
    loader = ViewLoader(shards, SPLIT, space.roles(), SEED, codes=codes, resident=0)
    save_png(page(titles, [plain, *_together(space.roles(), loader, rows)]), files[-1])
    return files


def _bands(invariance: Invariance, shards: Shards, rows: np.ndarray) -> list[Column]:
    """Several draws of one invariance, then the first of them at each strength."""
    drawn = _views(shards, rows, invariance, tuple(range(DRAWS)))
    columns = [Column(f"draw {number + 1}", drawn[number], number == 0) for number in range(DRAWS)]
    for strength in STRENGTHS:
        (weaker,) = _views(shards, rows, invariance.at(strength), (0,))
        columns.append(Column(f"strength {strength:g}", weaker, strength == STRENGTHS[0]))
    return columns


def _views(shards: Shards, rows: np.ndarray, invariance: Invariance, views: tuple[int, ...]) -> list[Tensor]:
    loader = ViewLoader(shards, SPLIT, [Role("shown", views, (invariance,))], SEED, resident=0)
    (images,) = loader.views(EPOCH, rows)
    images = shards.card.input.pictures(images)
    return [images[position :: len(views)] for position in range(len(views))]


def _together(roles: Sequence[Role], loader: ViewLoader, rows: np.ndarray) -> list[Column]:
    """The views of every role, at the size that they have."""
    names = {view: (role, place) for role in roles for place, view in enumerate(role.views)}
    columns = []
    for views, images in zip(loader.view_numbers(), loader.views(EPOCH, rows), strict=True):
        seen = loader.shards.card.input.pictures(images)
        for position, view in enumerate(views):
            role, place = names[view]
            heading = f"{role.name} {place + 1}" if len(role.views) > 1 else role.name
            columns.append(Column(heading, seen[position :: len(views)], place == 0))
    return columns


def page(titles: Sequence[str], columns: Sequence[Column]) -> Tensor:
    """Titles above columns of images with their headings: one picture (H', W', 3) uint8."""
    text, small = ImageFont.load_default(TEXT), ImageFont.load_default(SMALL)
    factor = _factor(max(max(column.images.shape[-2:]) for column in columns))
    tiles = [_tiles(column.images, factor) for column in columns]
    tall = max(each.shape[1] for each in tiles)
    widths = [
        max(each.shape[2], round(small.getlength(column.heading))) for column, each in zip(columns, tiles, strict=True)
    ]
    lefts, right = [], MARGIN
    for column, width in zip(columns, widths, strict=True):
        lefts.append(right + (APART if column.band else 0))
        right = lefts[-1] + width + GAP
    width = max(right - GAP + MARGIN, 720)
    lines = [line for title in titles for line in _wrapped(title, text, width - 2 * MARGIN)]
    head = MARGIN + len(lines) * (TEXT + 6) + 8
    top = head + SMALL + 6
    rows = len(columns[0].images)
    canvas = Image.new("RGB", (width, top + rows * (tall + GAP) - GAP + MARGIN), PAPER)
    draw = ImageDraw.Draw(canvas)
    for number, line in enumerate(lines):
        draw.text((MARGIN, MARGIN + number * (TEXT + 6)), line, INK, text)
    for column, left, each in zip(columns, lefts, tiles, strict=True):
        draw.text((left, head), column.heading, FAINT, small)
        for row, tile in enumerate(each):
            place = (left, top + row * (tall + GAP) + (tall - tile.shape[0]) // 2)
            canvas.paste(Image.fromarray(tile), place)
    return torch.from_numpy(np.array(canvas))


def written(value: Any) -> str:
    """A value as it stands in YAML, on one line; fields at their defaults are left out, but a probability is told."""
    if isinstance(value, BaseModel):
        fields = {
            name: getattr(value, name)
            for name, field in type(value).model_fields.items()
            if name == "kind" or getattr(value, name) != field.default or (name == "probability" and field.default != 1)
        }
        return f"{{{', '.join(f'{name}: {written(each)}' for name, each in fields.items())}}}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {written(each)}' for name, each in value.items())}}}"
    if isinstance(value, (tuple, list, frozenset)):
        return f"[{', '.join(map(written, sorted(value) if isinstance(value, frozenset) else value))}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


def _factor(side: int) -> float:
    """By what pictures are enlarged (a whole number) or shrunk for their longer side to be readable."""
    return -(-TILE[0] // side) if side <= TILE[1] else TILE[1] / side


def _tiles(images: Tensor, factor: float) -> np.ndarray:
    """images (n, C, h, w) → (n, h', w', 3) uint8."""
    pixels = to_rgb(images.detach().cpu().float()).clamp(0, 1)
    if factor >= 1:
        pixels = pixels.repeat_interleave(int(factor), 2).repeat_interleave(int(factor), 3)
    else:
        size = [max(1, round(side * factor)) for side in pixels.shape[-2:]]
        pixels = functional.interpolate(pixels, size, mode="bilinear", antialias=True, align_corners=False)
    return (pixels.permute(0, 2, 3, 1) * 255).round().to(torch.uint8).contiguous().numpy()


def _wrapped(text: str, font: Any, width: int) -> list[str]:
    """Lines of a text that fit, broken at spaces; what goes on is indented."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if font.getlength(longer) > width and lines[-1].strip():
            lines.append(f"    {word}")
        else:
            lines[-1] = longer
    return lines
