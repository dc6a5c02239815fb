"""One process a rank on this machine: started, watched, and ended together.

A rank that fails ends the others, and the error names it. Ranks are in the launcher's process group, so what kills it
kills them; a launcher that is killed alone takes them along (``lifeline``). On several machines this one is the first
of torchrun's nodes, and the others join it with torchrun itself.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pipeline.heartbeat import lost
from pipeline.lifeline import LAUNCHED
from pipeline.spec import Refusal

GRACE = 5.0
"""Seconds that a rank has to end when it is asked to."""
LOST = 75
"""Exit code of a rank that waited for another in vain."""
AGAIN = "run again to go on from the last checkpoint"


def launch(command: Sequence[str], ranks: int, environment: dict[str, str], signs: Path, told: Path) -> None:
    """Run a command once a rank and wait for all.

    Args:
        command: of a rank.
        ranks: how many.
        environment: added to this process's.
        signs: folder of the ranks' heartbeats.
        told: file in which a rank says what it refuses.

    Raises:
        Refusal: what a rank refused, or which rank failed and how.
    """
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    told.unlink(missing_ok=True)
    for old in signs.glob("*.json"):
        old.unlink()
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # where the ranks meet; the port is free
    meeting = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
        LAUNCHED: str(os.getpid()),
    }
    if sys.platform == "linux":  # a host name that does not resolve is no hindrance
        meeting["GLOO_SOCKET_IFNAME"] = "lo"
    started: list[subprocess.Popen[bytes]] = []
    try:
        for rank in range(ranks):
            own = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            started.append(subprocess.Popen(command, env={**os.environ, **environment, **meeting, **own}))
        while not all(process.poll() == 0 for process in started):
            if any(process.poll() for process in started):
                raise Refusal(_reason(started, signs, told))
            time.sleep(0.05)
    finally:
        _end(started)


def launch_on_nodes(
    command: Sequence[str], ranks: int, nodes: int, meeting: str, environment: dict[str, str], told: Path
) -> None:
    """Run a command once a rank on this machine, the first of several, as ``torchrun --node-rank 0`` would.

    Args:
        command: of a rank, after the interpreter.
        ranks: on this machine.
        nodes: machines.
        meeting: host:port of this machine, at which the others join.
        environment: added to this process's.
        told: file in which a rank says what it refuses.

    Raises:
        Refusal: what a rank refused, or that one of this machine failed.
    """
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    told.unlink(missing_ok=True)
    os.environ.update(environment)
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    config = LaunchConfig(
        min_nodes=nodes,
        max_nodes=nodes,
        nproc_per_node=ranks,
        run_id="none",  # torchrun's own, where none is given
        rdzv_backend="static",
        rdzv_endpoint=meeting,
        rdzv_configs={"rank": 0, "timeout": 86400},
        max_restarts=0,
    )
    try:
        elastic_launch(config, sys.executable)(*command)
    except ChildFailedError as failed:
        if told.is_file():
            raise Refusal(told.read_text(encoding="utf-8")) from None
        rank, first = failed.get_first_failure()
        raise Refusal(f"rank {rank} failed (exit code {first.exitcode}); its message is above; {AGAIN}") from None


def _reason(started: Sequence[subprocess.Popen[bytes]], signs: Path, told: Path) -> str:
    time.sleep(0.2)  # those that fail together
    codes = {rank: process.poll() for rank, process in enumerate(started)}
    killed = {rank: -code for rank, code in codes.items() if code is not None and code < 0}
    if told.is_file():
        return told.read_text(encoding="utf-8")
    hung = lost(signs, len(started), None) if signal.SIGABRT in killed.values() else None  # what a GPU's ranks do
    if hung is not None:
        return f"{hung}; {AGAIN}"
    for rank, number in killed.items():
        return f"rank {rank} died ({signal.Signals(number).name}); the others were ended; {AGAIN}"
    failed = {rank: code for rank, code in codes.items() if code}
    rank, code = next(((rank, code) for rank, code in failed.items() if code != LOST), next(iter(failed.items())))
    return f"rank {rank} failed (exit code {code}); its message is above; the others were ended"


def _end(started: Sequence[subprocess.Popen[bytes]]) -> None:
    running = [process for process in started if process.poll() is None]
    for process in running:
        process.terminate()
    until = time.monotonic() + GRACE
    for process in running:
        try:
            process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:  # stopped, or deep in a library
            process.kill()
            process.wait()
