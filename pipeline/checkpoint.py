"""Checkpoints: a training run's tensors on disk, so that a kill at any instant loses minutes and damages nothing.

A checkpoint is a folder, ``step-00000120`` with ``state.safetensors`` and ``state.json`` (step, bytes, SHA-256). It is
written under a hidden name, flushed to the disk and renamed, so it is there whole or not at all; two are kept, and of a
finished training the last, until a later one of the same spec is finished: a run killed before its output is on record
only writes that again. What is damaged is passed over with a notice. No pickle: nothing in it can execute code.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from torch import Tensor

KEPT = 2
"""Checkpoints of a run that stay: the newest, and one to fall back on."""
SHARE = 1 / 30
"""Of the time since the last one that the next may cost, where no interval is set."""
FIRST = 30.0
"""Seconds to the first one, and at least between two, where no interval is set."""
FINISHED = "finished"
"""An empty file in the folder of a training that came to its end."""


class Checkpoints:
    """The checkpoints of one run, in a folder of its own.

    Args:
        folder: made when the first is saved.
        seconds: between two; 0: after every step; None: as often as a thirtieth of the time allows, and every 30 s.
        say: hears notices, a line each.
    """

    def __init__(self, folder: Path, seconds: float | None, say: Callable[[str], None]):
        self.folder, self.seconds, self.say = folder, seconds, say
        self.cost = 0.0
        self.last = time.monotonic()

    def newest(self) -> bytes | None:
        """The newest whole checkpoint's tensors, as safetensors bytes; None if there is none."""
        for hidden in self.folder.glob(".*"):  # what a kill left half written or half removed
            shutil.rmtree(hidden, ignore_errors=True)
        for path in reversed(self._all()):
            content = _read(path)
            if isinstance(content, bytes):
                return content
            self.say(f"{path}: {content}; it is passed over, the one before it is tried")
        return None

    def due(self) -> bool:
        """Whether it is time for the next one."""
        interval = self.seconds if self.seconds is not None else max(FIRST, self.cost / SHARE)
        return time.monotonic() - self.last >= interval

    def save(self, step: int, tensors: Mapping[str, Tensor]) -> None:
        """Keep the state after ``step`` steps; older ones than the one before it go."""
        started = time.monotonic()
        write_checkpoint(self.folder / f"step-{step:08d}", step, tensors)
        for old in self._all()[:-KEPT]:
            _discard(old)
        self.last = time.monotonic()
        self.cost = self.last - started

    @property
    def finished(self) -> bool:
        """Whether the training has come to its end, and its output was written, before."""
        return (self.folder / FINISHED).is_file()

    def finish(self) -> None:
        """The training is over and its output written: keep its last state alone, and no finished one of other settings
        of the same spec. Unfinished ones stay."""
        for old in self._all()[:-1]:
            _discard(old)
        if self.folder.is_dir():
            (self.folder / FINISHED).touch()
        for other in sorted(self.folder.parent.glob("*")):
            over = other.name.startswith(".") or (other / FINISHED).is_file()
            if over and other != self.folder and _spec_of(other) == _spec_of(self.folder):
                _discard(other)

    def _all(self) -> list[Path]:
        return sorted(path for path in self.folder.glob("step-*") if path.is_dir())


def write_checkpoint(final: Path, step: int, tensors: Mapping[str, Tensor]) -> None:
    """Write one checkpoint folder: whole and on the disk, or not at all."""
    from safetensors.torch import save

    content = save({name: value.detach().cpu().contiguous() for name, value in tensors.items()})
    about = {"step": step, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    partial = final.with_name(f".{final.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        _flushed(partial / "state.safetensors", content)
        _flushed(partial / "state.json", (json.dumps(about, indent=1) + "\n").encode())
        _flush_folder(partial)
        if final.exists():  # a damaged one, or one of a run that went back
            shutil.rmtree(final)
        partial.rename(final)
        _flush_folder(final.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def read_checkpoint(path: Path) -> bytes | None:
    """The tensors of one checkpoint folder, as safetensors bytes; None where it is missing or damaged."""
    content = _read(path)
    return content if isinstance(content, bytes) else None


def _read(path: Path) -> bytes | str:
    """The tensors' bytes, or why they cannot be used."""
    try:
        about = json.loads((path / "state.json").read_bytes())
        content = (path / "state.safetensors").read_bytes()
        bytes_, digest = about["bytes"], about["sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"damaged checkpoint ({type(error).__name__})"
    if len(content) != bytes_:
        return f"damaged checkpoint ({len(content)} bytes instead of {bytes_})"
    if hashlib.sha256(content).hexdigest() != digest:
        return "damaged checkpoint (its SHA-256 differs)"
    return content


def _spec_of(folder: Path) -> str:
    """The spec that a run's folder, SPEC-FINGERPRINT, is of; what a kill left of its removal included."""
    return folder.name.removeprefix(".").removesuffix(".old").rpartition("-")[0]


def _discard(folder: Path) -> None:
    """Remove a folder: at once under its name, then in peace."""
    gone = folder if folder.name.startswith(".") else folder.with_name(f".{folder.name}.old")
    if gone != folder:
        shutil.rmtree(gone, ignore_errors=True)
        folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def _flushed(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _flush_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
