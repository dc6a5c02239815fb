"""Raw files to canvases, in processes of their own: nothing heavy is imported here, so that they start quickly."""

from __future__ import annotations

from pathlib import Path

from pipeline.intake import FAULTS, Lost, Work, lost
from pipeline.modalities import Modality
from pipeline.samples import Values


def on_canvases(work: list[Work], canvas: Modality) -> list[Values | Lost]:
    """Each raw record on the canvas, pictures (C, H, W) uint8, or why it is none; runs in a process of its own."""
    return [_on_canvas(content, array, canvas) for content, array in work]


def _on_canvas(content: bytes | Path, array: bool, canvas: Modality) -> Values | Lost:
    try:
        raw = content if isinstance(content, bytes) else content.read_bytes()
        return canvas.raw(raw, array)
    except FAULTS as fault:
        return lost(fault)
