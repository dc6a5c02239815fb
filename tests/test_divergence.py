"""Numbers that are none: no step is made, the samples are named, the last good checkpoint stays, a replay shows it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from small import CPU, sharded, space, training
from torch import Tensor

import pipeline.step as steps
import pipeline.training as loop
from pipeline.batches import Batches
from pipeline.checkpoint import Checkpoints
from pipeline.divergence import Diverged
from pipeline.replay import record, replayed
from pipeline.shards import Shards
from pipeline.spec import Refusal
from pipeline.training import train

STEP = 3


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Shards:
    return sharded(tmp_path_factory.mktemp("shards") / "small")


def samples_of(shards: Shards, step: int) -> list[int]:
    return next(batch.samples for batch in Batches(space(), 16, 2, 0, shards, CPU).after(step)).tolist()


def diverged(shards: Shards, kept: Checkpoints | None = None) -> Diverged:
    with pytest.raises(Diverged) as caught:
        train(space(), training(), shards, CPU, lambda row: None, kept)
    return caught.value


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_vector_that_is_no_number_names_its_sample(
    shards: Shards, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: float
) -> None:
    calls = 0
    original = steps.wide

    def wide(z: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        z = original(z)
        if calls == STEP + 1:
            z = z.clone()
            z[5, 2] = z[21, 0] = value  # views of the third and the eleventh sample
        return z

    monkeypatch.setattr(steps, "wide", wide)
    found = diverged(shards, Checkpoints(tmp_path / "run", 0, print))
    batch = samples_of(shards, STEP)
    assert found.samples == [batch[2], batch[10]]
    assert found.batch == batch
    assert str(found) == f"step {STEP}: z is no longer finite (samples {batch[2]}, {batch[10]} of train)"
    assert (tmp_path / "run" / f"step-{STEP:08d}").is_dir(), "the state before the step"
    assert not (tmp_path / "run" / f"step-{STEP + 1:08d}").exists()


def test_a_loss_that_is_no_number_names_the_samples_whose_it_is(
    shards: Shards, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = steps.reduced
    calls = 0

    def reduced(terms: Any) -> tuple[Tensor, float]:
        nonlocal calls
        calls += 1
        if calls == STEP + 1:
            terms[0].values.data[8] = math.inf
        return original(terms)

    monkeypatch.setattr(steps, "reduced", reduced)
    found = diverged(shards)
    assert found.samples == [samples_of(shards, STEP)[4]]
    assert str(found).startswith(f"step {STEP}: the loss is inf (sample {found.samples[0]} of train")


def test_a_gradient_that_is_no_number_names_the_weight_and_the_batch_and_no_weight_moves(
    shards: Shards, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = loop.check_gradient
    before: dict[str, Tensor] = {}

    def check_gradient(network: Any, batch: Any) -> None:
        if batch.step == STEP:
            before.update({name: value.clone() for name, value in network.state_dict().items()})
            network.projection[0].weight.grad[0, 0] = math.nan
        original(network, batch)

    monkeypatch.setattr(loop, "check_gradient", check_gradient)
    found = diverged(shards)
    assert found.samples == []
    batch = samples_of(shards, STEP)
    named = ", ".join(map(str, batch[:8]))
    assert str(found) == (
        f"step {STEP}: the gradient of projection.0.weight is no longer finite "
        f"(a batch of 16: samples {named} and 8 more of train)"
    )
    assert found.state is not None
    after = found.state.network.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_replay_makes_the_batch_again_and_diverges_again(shards: Shards, tmp_path: Path) -> None:
    wild = {"kind": "sgd", "learning_rate": 1e30, "momentum": 0.0, "weight_decay": 0.0}
    spec = training(optimizer=wild, schedule={"kind": "constant"})
    with pytest.raises(Diverged) as caught:
        train(space(), spec, shards, CPU, lambda row: None)
    record(caught.value, tmp_path)
    assert json.loads((tmp_path / "diverged.json").read_text())["batch"] == samples_of(shards, 1)
    lines = list(replayed(space(), spec, shards, CPU, tmp_path))
    assert lines[0] == f"{caught.value.what}; once more, on one process:"
    assert lines[-2] == f"  again: {caught.value.what}"
    assert f"  sample {caught.value.samples[0]}: pixels " in "\n".join(lines)
    assert (tmp_path / "diverged.png").is_file()


def test_a_replay_of_nothing_or_of_another_network_is_one_line(shards: Shards, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="not there; no run of this spec has diverged"):
        list(replayed(space(), training(), shards, CPU, tmp_path))
    (tmp_path / "diverged.json").write_text('{"what": "x", "step": 1, "epoch": 0, "samples": [], "batch": [0, 1]}')
    with pytest.raises(Refusal, match="not the state of this spec's network"):
        list(replayed(space(), training(), shards, CPU, tmp_path))
