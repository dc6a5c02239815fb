"""Other loggers: they hear of every step, write where nothing is tracked, and change no bit of a run."""

from __future__ import annotations

import importlib.util
import math
import warnings
from dataclasses import fields
from pathlib import Path

import pytest
from small import sharded, space, trained, training

from pipeline import trackers
from pipeline.machine import Machine
from pipeline.shards import Shards
from pipeline.spec import Refusal
from pipeline.state import Row
from pipeline.trackers import Trackers, check_loggers, flat
from pipeline.training import Trained, train

LOGGERS = ("dvclive", "mlflow", "tensorboard", "wandb")
ROW = Row(**{each.name: 0 for each in fields(Row)} | {"loss": 1.0, "temperature": math.nan})
CPU = Machine(processes=1, device="cpu", threads=1)


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Shards:
    return sharded(tmp_path_factory.mktemp("shards") / "small")


@pytest.fixture(scope="module")
def quiet(shards: Shards) -> Trained:
    return trained(shards, space(), training())


@pytest.mark.parametrize("logger", LOGGERS)
def test_a_logger_hears_of_every_step_and_changes_nothing(
    logger: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: Shards, quiet: Trained
) -> None:
    pytest.importorskip(logger)
    monkeypatch.chdir(tmp_path)
    for name in ("WANDB_MODE", "MLFLOW_TRACKING_URI", "MLFLOW_ALLOW_FILE_STORE"):
        monkeypatch.setenv(name, "")  # put back after the test
        monkeypatch.delenv(name)
    given = Trackers((logger,), "x", tmp_path / "logs", {"space": {"temperature": 0.2, "sizes": [1, 2]}})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of another project
        run = train(space(), training(), shards, CPU, given.told)
        given.close()
    assert run.curve == quiet.curve
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]
    files = [path for path in (tmp_path / "logs" / logger).rglob("*") if path.is_file()]
    assert files
    if logger == "dvclive":
        table = next(path for path in files if path.name == "loss.tsv").read_text().splitlines()
        assert len(table) == 1 + len(run.curve)
    if logger == "mlflow":
        lines = next(path for path in files if path.name == "loss").read_text().splitlines()
        assert [float(line.split()[1]) for line in lines] == [row.loss for row in run.curve]


def test_a_missing_package_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Refusal) as caught:
        check_loggers(("wandb",))
    assert str(caught.value) == (
        "machine.yaml or LATENT_LOGGERS: loggers = wandb: its package is not installed; pip install wandb (or this "
        "project's extra 'loggers'), or leave it out"
    )
    check_loggers(())


def test_a_logger_that_does_not_start_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from accelerate import tracking

    class Broken:
        def __init__(self, *_: object) -> None:
            pass

        def start(self) -> None:
            raise ValueError("no\nserver")

    monkeypatch.setattr(tracking, "TensorBoardTracker", Broken, raising=False)
    given = Trackers(("tensorboard",), "x", tmp_path, {})
    with pytest.raises(Refusal, match=r"loggers = tensorboard: it does not start \(no server\)"):
        given.told(ROW)


def test_without_loggers_nothing_is_imported(tmp_path: Path) -> None:
    given = trackers.Trackers((), "x", tmp_path, {})
    given.told(ROW)
    given.close()
    assert list(tmp_path.iterdir()) == []


def test_settings_are_dotted_numbers_and_texts() -> None:
    assert flat({"a": {"b": 1, "c": None}, "d": [1, 2], "e": True}) == [
        ("a.b", 1),
        ("a.c", "None"),
        ("d", "[1, 2]"),
        ("e", True),
    ]
