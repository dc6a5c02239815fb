"""One writer at a time: an exclusive lock that names who holds it, and ends with its holder whatever kills it.

The lock is the kernel's (``flock``), so a killed holder leaves none behind. Where a file system has no such locks, the
process id, its start time and its host in the file say whether the holder still lives.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline.spec import Refusal

PATIENCE = 3.0
"""Seconds that a holder which is being killed may take to go."""
_HELD: set[Path] = set()


@contextmanager
def held(file: Path, what: str) -> Iterator[None]:
    """Hold the lock ``file`` while the block runs; inside itself it is held once.

    Raises:
        Refusal: another process holds it; it is named.
    """
    path = file.absolute()
    if path in _HELD:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        until = time.monotonic() + PATIENCE
        while not _taken(handle):
            if time.monotonic() > until:
                raise Refusal(f"{what}: {_holder(handle)} is writing it; wait for it or stop it, then run again")
            time.sleep(0.05)
        me = {"pid": os.getpid(), "started": started(os.getpid()), "host": socket.gethostname()}
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(me).encode(), 0)
        _HELD.add(path)
        yield
    finally:
        if path in _HELD:
            _HELD.discard(path)
            os.ftruncate(handle, 0)
        os.close(handle)


def started(pid: int) -> str | None:
    """When a process was started, as the kernel counts it; None where it is gone, or the system does not say."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def alive(pid: int, start: str | None) -> bool:
    """Whether the process with this id and start time still runs (a number is given anew in time)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    now = started(pid)
    return now is None or start is None or now == start


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
        told = _told(handle)  # a file system without locks: the file's word for it
        if "pid" not in told or told.get("host") != socket.gethostname():
            return "pid" not in told
        return not alive(int(told["pid"]), told.get("started"))
    return True


def _told(handle: int) -> dict[str, Any]:
    try:
        told = json.loads(os.pread(handle, 4096, 0) or b"{}")
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _holder(handle: int) -> str:
    told = _told(handle)
    if "pid" not in told:
        return "another process"
    where = "" if told.get("host") == socket.gethostname() else f" on {told.get('host')}"
    return f"process {told['pid']}{where}"
