"""Hardware settings: from a file, then from the environment; never silently wrong, never in a result."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from pipeline.machine import Machine, read_machine, settle
from pipeline.spec import Refusal, SpecError


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("LATENT_")]:
        monkeypatch.delenv(name)


def test_without_settings_everything_has_a_default_that_works() -> None:
    machine = read_machine()
    assert machine == Machine()
    assert machine.chosen_device() == ("cuda" if torch.cuda.is_available() else "cpu")
    assert machine.ranks() == max(1, torch.cuda.device_count())
    assert machine.chosen_threads() >= 1


def test_the_environment_wins_over_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("machine.yaml").write_text("processes: 3\ndevice: cpu\n")
    assert read_machine() == Machine(processes=3, device="cpu")
    monkeypatch.setenv("LATENT_PROCESSES", "2")
    monkeypatch.setenv("LATENT_THREADS", "5")
    assert read_machine() == Machine(processes=2, device="cpu", threads=5)


def test_variables_are_read_as_yaml_would_read_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATENT_CHECKPOINT_SECONDS", "0.5")
    monkeypatch.setenv("LATENT_COLLECTIVE_TIMEOUT", "30")
    monkeypatch.setenv("LATENT_LOGGERS", "tensorboard, wandb")
    assert read_machine() == Machine(checkpoint_seconds=0.5, collective_timeout=30, loggers=("tensorboard", "wandb"))
    Path("machine.yaml").write_text("loggers: [mlflow]\ncheckpoint_seconds: null\n")
    monkeypatch.delenv("LATENT_LOGGERS")
    assert read_machine().loggers == ("mlflow",)


def test_ranks_share_the_cores() -> None:
    cores = len(os.sched_getaffinity(0))
    assert Machine(processes=1, device="cpu").chosen_threads() == cores
    assert Machine(processes=cores, device="cpu").chosen_threads() == 1
    assert Machine(processes=2 * cores, device="cpu").chosen_threads() == 1


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("LATENT_PROCESES", "2", "environment: LATENT_PROCESES = 2: unknown key; did you mean 'processes'?"),
        ("LATENT_PROCESSES", "0", "environment: LATENT_PROCESSES = 0: must be greater than or equal to 1"),
        ("LATENT_PROCESSES", "two", 'environment: LATENT_PROCESSES = "two": must be a valid integer'),
        ("LATENT_DEVICE", "gpu", "environment: LATENT_DEVICE = \"gpu\": must be 'cpu' or 'cuda'"),
    ],
)
def test_a_wrong_variable_is_one_line_with_its_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, line: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SpecError) as caught:
        read_machine()
    assert str(caught.value) == line


def test_a_wrong_file_is_told_as_the_file() -> None:
    Path("machine.yaml").write_text("processes: 0\nthread: 2\n")
    with pytest.raises(SpecError) as caught:
        read_machine()
    assert str(caught.value).splitlines() == [
        "machine.yaml: processes = 0: must be greater than or equal to 1",
        "machine.yaml: thread = 2: unknown key; did you mean 'threads'?",
    ]


def test_an_empty_file_sets_nothing() -> None:
    Path("machine.yaml").write_text("# nothing yet\n")
    assert read_machine() == Machine()


def test_settling_sets_the_threads() -> None:
    before = torch.get_num_threads()
    try:
        settle(Machine(threads=3))
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is at hand")
def test_a_gpu_that_is_not_there_is_told() -> None:
    with pytest.raises(Refusal, match="no GPU is at hand; set device: cpu"):
        Machine(device="cuda").chosen_device()
