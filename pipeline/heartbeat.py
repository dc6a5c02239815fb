"""Signs of life of each rank, in a file a rank, so that one that dies or hangs can be named by the others.

A thread of the rank writes a line every second: who it is, which step it is at, and how many collective operations it
has begun. A dead or stopped rank writes no more; one that is busy elsewhere has begun fewer of them.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline.lock import alive, started

EVERY = 1.0
"""Seconds between two signs."""
WIDTH = 200
"""Bytes of a sign: always written in one piece."""


class Heartbeat:
    """This rank's signs: ``step`` is set by the loop."""

    def __init__(self, folder: Path, rank: int, begun: Callable[[], int]):
        folder.mkdir(parents=True, exist_ok=True)
        self.step, self.begun = 0, begun
        self.who = {"pid": os.getpid(), "started": started(os.getpid()), "host": socket.gethostname()}
        self.file = os.open(_file(folder, rank), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        self._beat(0)
        threading.Thread(target=self._go_on, daemon=True, name="heartbeat").start()

    def _go_on(self) -> None:
        beat = 0
        while True:
            time.sleep(EVERY)
            beat += 1
            self._beat(beat)

    def _beat(self, beat: int) -> None:
        told = {**self.who, "step": self.step, "begun": self.begun(), "beat": beat}
        os.pwrite(self.file, json.dumps(told).ljust(WIDTH).encode(), 0)


def lost(folder: Path, ranks: int, me: int | None) -> str | None:
    """Which rank the others wait for, as a sentence; None where it cannot be told. Takes three seconds."""
    before = [_read(folder, rank) for rank in range(ranks)]
    time.sleep(3 * EVERY)
    after = [_read(folder, rank) for rank in range(ranks)]
    for what, test in (("died", _dead), ("does not answer", _silent)):
        for rank in range(ranks):
            if rank != me and test(before[rank], after[rank]):
                return f"rank {rank}{_who(after[rank])} {what}"
    begun = [told["begun"] if told else None for told in after]
    known = [count for count in begun if count is not None]
    if known and min(known) < max(known):
        rank = begun.index(min(known))
        return f"rank {rank}{_who(after[rank])} is busy and does not join the others"
    return None


def _dead(_: dict[str, Any] | None, now: dict[str, Any] | None) -> bool:
    here = now is not None and now["host"] == socket.gethostname()
    return here and now is not None and not alive(now["pid"], now["started"])


def _silent(before: dict[str, Any] | None, now: dict[str, Any] | None) -> bool:
    return now is None or (before is not None and before["beat"] == now["beat"])


def _who(told: dict[str, Any] | None) -> str:
    return "" if told is None else f" (process {told['pid']} on {told['host']}, at step {told['step']})"


def _file(folder: Path, rank: int) -> Path:
    return folder / f"{rank}.json"


def _read(folder: Path, rank: int) -> dict[str, Any] | None:
    try:
        told: dict[str, Any] = json.loads(_file(folder, rank).read_bytes())
    except (OSError, ValueError):
        return None
    return told
