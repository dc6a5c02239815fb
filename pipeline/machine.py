"""What this machine offers: settings that change speed and never a result, so they are in no spec and no DVC command.

Read from an untracked ``machine.yaml`` in the working folder, then from LATENT_* environment variables, which win.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from pipeline.spec import Fault, Refusal, Rule, Spec, SpecError, parse, read_yaml

FILE = Path("machine.yaml")
PREFIX = "LATENT_"

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4  # of glibc's mallopt


class Machine(Spec):
    """Hardware settings; every one has a default that works."""

    processes: int | None = Field(default=None, ge=1, le=1024)
    """Ranks that the training stage starts; null: one a GPU, or one on a CPU."""
    nodes: int = Field(default=1, ge=1, le=1024)
    """Machines that train together, this one the first; the others join it with torchrun."""
    meeting: str | None = Field(default=None, pattern=r"^[^:\s]+:\d+$")
    """host:port of this machine, at which the others join."""
    device: Literal["cpu", "cuda"] | None = None
    """Where tensors live; null: a GPU where there is one."""
    threads: int | None = Field(default=None, ge=1, le=1024)
    """Compute threads of each rank; null: the cores that this process may use, divided by the ranks."""

    workers: int | None = Field(default=None, ge=1, le=1024)
    """Threads of each rank that decode pictures while it trains, and processes that shard; null: one a core."""
    micro_batch: int | None = Field(default=None, ge=1)
    """Samples of each rank whose activations are in memory at once; null: all. The gradient is that of the whole batch,
    for one more forward pass."""
    resident_gib: int = Field(default=4, ge=0, le=4096)
    """GiB of decoded pictures that each rank may keep in memory; more are decoded anew in every epoch."""
    checkpoint_seconds: float | None = Field(default=None, ge=0)
    """Seconds between two checkpoints; 0: after every step; null: every 30 s, or as often as a thirtieth of the time
    allows where one costs more than a second."""
    collective_timeout: float = Field(default=600.0, gt=0)
    """Seconds that ranks wait for one that does not answer before they end with its name."""
    loggers: tuple[Literal["dvclive", "tensorboard", "wandb", "mlflow"], ...] = ()
    """Who else hears of every step, in the untracked work/logs/NAME; a comma between two in a variable."""

    def rules(self) -> Iterator[Rule]:
        if self.nodes > 1 and self.meeting is None:
            yield "meeting", "missing; where the other machines join this one, such as node1:29400"

    def ranks(self) -> int:
        """How many ranks to start on this machine."""
        import torch

        if self.processes is not None:
            return self.processes
        return max(1, torch.cuda.device_count()) if self.chosen_device() == "cuda" else 1

    def chosen_device(self) -> str:
        """``cuda`` where it is wanted or there, else ``cpu``.

        Raises:
            Refusal: a GPU is wanted, and there is none.
        """
        import torch

        if self.device == "cuda" and not torch.cuda.is_available():
            raise Refusal("device = cuda: no GPU is at hand; set device: cpu in machine.yaml, or LATENT_DEVICE=cpu")
        return self.device or ("cuda" if torch.cuda.is_available() else "cpu")

    def chosen_threads(self) -> int:
        """Compute threads for each rank."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return self.threads or max(1, cores // self.ranks())

    def chosen_workers(self) -> int:
        """Threads of each rank that decode."""
        return self.workers or self.chosen_threads()


def settle(machine: Machine) -> None:
    """Set compute threads, and keep freed memory in the process: giving large blocks back to the kernel after every
    step costs a third of a small network's time in page faults (glibc only; elsewhere nothing is done).
    """
    import torch

    torch.set_num_threads(machine.chosen_threads())
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    for option, value in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, 2**31 - 1), (_TOP_PAD, 2**26)):
        mallopt(option, value)


def read_machine(file: Path = FILE) -> Machine:
    """Read ``machine.yaml`` (if there) and LATENT_* variables.

    Raises:
        SpecError: an unknown key or variable, or a value that does not fit.
    """
    settings = read_yaml(file, may_be_empty=True) if file.exists() else {}
    machine: Machine = parse(settings, Machine, str(file))
    variables = {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}
    if variables:
        given = {key: _value(key, text) for key, text in ((_key(name), text) for name, text in variables.items())}
        try:
            machine = parse({**settings, **given}, Machine, "environment")
        except SpecError as error:
            faults = [
                Fault("environment", PREFIX + fault.path.upper(), fault.value, fault.remedy) for fault in error.faults
            ]
            raise SpecError(faults) from None
    return machine


def _key(variable: str) -> str:
    return variable.removeprefix(PREFIX).lower()


def _value(key: str, text: str) -> Any:
    """A variable's text as YAML would have it: a number where it is one, a list where the setting is one."""
    if key == "loggers":
        return [each.strip() for each in text.split(",") if each.strip()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
