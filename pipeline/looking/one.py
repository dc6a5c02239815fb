"""One file as a new user has it: a sound, a series or a picture, or why it is none, by what its ending names."""

from __future__ import annotations

import io
from typing import NamedTuple

import numpy as np

from pipeline.audio import Decoded
from pipeline.audio import decode as decode_sound
from pipeline.forms import FORMS, UNREAD, form, unheard
from pipeline.images import Unreadable, decode, decode_array
from pipeline.images.tiff import read_page, read_values
from pipeline.looking.series import Measured, measured
from pipeline.series.decoding import NUMPY, PARQUET, ZIP
from pipeline.series.decoding import decode as decode_series

SOUND = (b"RIFF", b"RF64", b"fLaC", b"OggS")
"""how sound files begin"""
HEARD = (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".m4a", ".aac", ".wma", ".aif", ".aiff")
PACKED = (".npy", ".npz", ".parquet", ".pq")
MEASURED = (*PACKED, ".csv", ".tsv")
TEXTS = (".txt", ".md", ".json", ".yaml", ".xml", ".dat", ".log")
READ = "read are pictures, sounds (wav, flac, ogg) and series (npy, npz, csv, tsv, parquet)"


class Pictured(NamedTuple):
    """A picture."""

    shape: tuple[int, ...]
    """height, width, channels"""
    values: np.ndarray | None = None
    """pixels of unknown range"""


def looked(name: str, content: bytes, array: bool) -> Decoded | Measured | Pictured:
    """What a file (or, with ``array``, a row of an array) is. Raises Unreadable, with what would help."""
    if not content:
        raise Unreadable("empty file", "0 bytes")
    if content[:4] in SOUND and content[8:12] != b"WEBP":
        return decode_sound(content)
    rows = measured(name, content, array)
    if rows is not None:
        return rows
    try:
        found = decode_array(content) if array else decode(content)
        return Pictured((*found.pixels.shape[:2], found.pixels.shape[2] - found.alpha))
    except Unreadable as fault:
        values = _values(content, array) if fault.reason == "values of unknown range" else None
        if values is not None:
            return Pictured(values.shape, values)
        raise fault if array else _fault(name.lower(), content, fault) from None


def _fault(name: str, content: bytes, fault: Unreadable) -> Unreadable:
    """Why a file is not what its ending names; ``fault`` is why it is no picture."""
    found = form(content)
    if name.endswith(HEARD) or found in UNREAD:
        return Unreadable("not a sound", unheard(content))
    if name.endswith(PACKED) and not content.startswith((NUMPY, ZIP, PARQUET)):
        return Unreadable("no series", f"by its ending, but by its bytes {found}; copy it again")
    if name.endswith(MEASURED):
        try:
            decode_series(content, None, time_first=True)
        except Unreadable as told:
            return told
        return Unreadable("no series", "no column of numbers in it but such as count time")
    if name.endswith(TEXTS) or (found in FORMS.values() and "picture" not in found):
        table = "; a table of measurements must end in .csv or .tsv" if found == "text" else ""
        return Unreadable("nothing that is read", f"{found}; {READ}{table}")
    return fault


def _values(content: bytes, array: bool) -> np.ndarray | None:
    try:
        return np.load(io.BytesIO(content)) if array else read_values(content, read_page(content))
    except (Unreadable, ValueError):
        return None
