"""A contact sheet: small pictures in rows, one or two an entry, with a line or two of words below each entry.

It lies beside a table for those who open that: a list of the audit, what ``stages.search`` found. The report shows
thumbnails of its own (``pipeline.gallery``). The same entries give the same bytes; no date is in a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from pipeline.images import Pixels, thumbnail

SIDE = 88
"""pixels of a picture's longer side, at most"""
GAP, APART, MARGIN, FONT, LINE = 2, 14, 14, 11, 14
PAPER, INK, FAINT = (255, 255, 255), (24, 24, 27), (113, 113, 122)
WIDTH = 1100
"""pixels, at most"""


@dataclass(frozen=True)
class Entry:
    """Pictures beside each other, (C, H, W) uint8 each, and what is said of them."""

    pictures: Sequence[Pixels]
    words: Sequence[str]


def contact_sheet(title: str, entries: Sequence[Entry], file: Path) -> None:
    """Write the page as PNG; entries run from left to right, then down.

    Args:
        entries: at least one, all with the same number of pictures and of words.
    """
    text, small = ImageFont.load_default(FONT + 2), ImageFont.load_default(FONT)
    across = len(entries[0].pictures)
    cell = max(across * (SIDE + GAP) - GAP, 132)
    columns = max(1, min(len(entries), (WIDTH - 2 * MARGIN + APART) // (cell + APART)))
    tall = SIDE + len(entries[0].words) * LINE + APART
    rows = -(-len(entries) // columns)
    head = MARGIN + LINE + APART
    width = max(columns * (cell + APART) - APART, round(text.getlength(title))) + 2 * MARGIN
    page = Image.new("RGB", (width, head + rows * tall + MARGIN - APART), PAPER)
    draw = ImageDraw.Draw(page)
    draw.text((MARGIN, MARGIN), title, INK, text)
    for number, entry in enumerate(entries):
        row, column = divmod(number, columns)
        left, top = MARGIN + column * (cell + APART), head + row * tall
        for place, picture in enumerate(entry.pictures):
            tile = Image.fromarray(thumbnail(picture, SIDE))
            corner = (left + place * (SIDE + GAP) + (SIDE - tile.width) // 2, top + (SIDE - tile.height) // 2)
            page.paste(tile, corner)
        for line, words in enumerate(entry.words):
            under = (left, top + SIDE + 2 + line * LINE)
            draw.text(under, fitted(words, small, cell), FAINT if line else INK, small)
    page.save(file, optimize=True)


def fitted(words: str, font: Any, width: int) -> str:
    """Words that fit into a width, the middle left out where they do not."""
    if font.getlength(words) <= width:
        return words
    for kept in range(len(words) - 1, 1, -1):
        shorter = f"{words[: kept // 2]}…{words[len(words) - (kept - kept // 2) :]}"
        if font.getlength(shorter) <= width:
            return shorter
    return words[:1]
