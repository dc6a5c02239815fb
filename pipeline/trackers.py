"""Other loggers that hear of every step: accelerate's trackers, in the untracked work/logs/NAME, on rank 0 alone.

None of them has a say in a result: they are given numbers that have been written already, and no stage reads theirs.
"""

from __future__ import annotations

import importlib.util
import math
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipeline.spec import Refusal
from pipeline.state import Row


def check_loggers(loggers: tuple[str, ...]) -> None:
    """Raises Refusal where a logger's package is not installed."""
    for name in loggers:
        if importlib.util.find_spec(name) is None:
            remedy = f"pip install {name} (or this project's extra 'loggers'), or leave it out"
            raise Refusal(f"machine.yaml or LATENT_LOGGERS: loggers = {name}: its package is not installed; {remedy}")


class Trackers:
    """The loggers of one run; they are started by its first row, when the ranks have met."""

    def __init__(self, loggers: tuple[str, ...], name: str, folder: Path, settings: Mapping[str, Any]):
        self.loggers, self.name, self.folder = loggers, name, folder.absolute()
        self.settings = dict(flat(settings))
        self.running: list[Any] = []

    def told(self, row: Row) -> None:
        """Pass one step on."""
        if self.loggers and not self.running:
            self.running = [self._started(logger) for logger in self.loggers]
        if self.running:
            values = {name: value for name, value in asdict(row).items() if name != "step" and not math.isnan(value)}
            for tracker in self.running:
                tracker.log(values, step=row.step)

    def close(self) -> None:
        """End all of them."""
        for tracker in self.running:
            tracker.finish()

    def _started(self, logger: str) -> Any:
        from accelerate import tracking

        place = self.folder / logger
        place.mkdir(parents=True, exist_ok=True)
        tracker: Any
        try:
            if logger == "tensorboard":
                tracker = tracking.TensorBoardTracker(self.name, place)
            elif logger == "wandb":
                tracker = tracking.WandBTracker(
                    self.name, dir=str(place), mode=os.environ.get("WANDB_MODE", "offline"), settings={"silent": True}
                )
            elif logger == "mlflow":
                os.environ.setdefault("MLFLOW_TRACKING_URI", place.as_uri())  # or a server, where it is set
                os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
                tracker = tracking.MLflowTracker(self.name)
            else:
                tracker = tracking.DVCLiveTracker(
                    dir=str(place), save_dvc_exp=False, dvcyaml=None, report=None, monitor_system=False
                )
            tracker.start()
            tracker.store_init_configuration(self.settings)
        except Exception as error:  # another project's code and settings: its words, on one line
            words = " ".join(str(error).split()) or type(error).__name__
            raise Refusal(f"loggers = {logger}: it does not start ({words}); mend it or leave it out") from None
        return tracker


def flat(settings: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Nested settings as (dotted path, number or text)."""
    found: list[tuple[str, Any]] = []
    for name, value in settings.items():
        if isinstance(value, Mapping):
            found += flat(value, f"{prefix}{name}.")
        else:
            found.append((prefix + name, value if isinstance(value, (bool, int, float, str)) else str(value)))
    return found
