"""A process that ends with another: what a killed ``dvc`` or a killed launcher started does not go on writing.

The kernel tells of an end at once (``pidfd``, Linux 5.3); elsewhere it is asked every second. This module imports
nothing heavy: it is read before everything else.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from pathlib import Path

LAUNCHED = "LAUNCHED_BY"
"""Variable: the process id of the launcher of a rank."""


def started_by() -> int | None:
    """The process that this one must not outlive: a rank's launcher, or the ``dvc`` that runs the stage; else None."""
    if LAUNCHED in os.environ:
        return int(os.environ[LAUNCHED])
    if "RANK" in os.environ:  # torchrun's agent
        return os.getppid()
    if "DVC_STAGE" not in os.environ:
        return None
    pid = os.getppid()  # dvc itself, or shells between: they have the variable, dvc has not
    while pid > 1 and _has(pid, b"DVC_STAGE="):
        pid = _parent(pid)
    return pid


def end_with(pid: int | None) -> None:
    """End this process, as if killed, when ``pid`` ends; at once if it has ended. None: nothing is done."""
    if pid is None:
        return
    if pid == 1:
        if os.getppid() != 1 or _name(1).startswith(("dvc", "python")):  # a container's first process may be dvc
            return
        _end()
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        _end()
    except (AttributeError, OSError):
        threading.Thread(target=_asked, args=(pid,), daemon=True, name="lifeline").start()
        return
    threading.Thread(target=_told, args=(handle,), daemon=True, name="lifeline").start()


def _told(handle: int) -> None:
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    waiting.poll()
    _end()


def _asked(pid: int) -> None:
    while True:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            _end()
        except PermissionError:
            pass
        time.sleep(1.0)


def _end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _has(pid: int, text: bytes) -> bool:
    try:
        return any(each.startswith(text) for each in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
    except OSError:
        return False


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 1


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
