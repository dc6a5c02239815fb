"""The collapse alarm: what it tells, and that looking changes nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small import SPACE, sharded, space, trained, training

import pipeline.training as loop
import stages.pretrain
from pipeline.alarm import APART, TEMPERATURE, VIEWS_EPOCH, alarm, effective_rank, look
from pipeline.audit.spectrum import spectrum
from pipeline.state import Row
from pipeline.training import start_network

HEALTHY = Row(
    step=200,
    epoch=1,
    loss=2.0,
    starts_at=4.0,
    learning_rate=1e-3,
    temperature=0.2,
    positive_similarity=0.9,
    negative_similarity=0.1,
    effective_rank=12.0,
    fixed_positive_similarity=0.9,
    fixed_negative_similarity=0.1,
    told_apart=0.4,
)
ONE = "all vectors are one: views of different pictures of a fixed set have a mean cosine of"


@given(n=st.integers(4, 20), dim=st.integers(2, 6), seed=st.integers(0, 999))
def test_the_effective_rank_is_the_audits(n: int, dim: int, seed: int) -> None:
    z = torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    unit = (z / z.norm(dim=1, keepdim=True)).numpy()
    assert effective_rank(z) == pytest.approx(spectrum(unit).effective_rank.value, rel=1e-9)


@pytest.mark.parametrize("dim", [2, 5, 8])
def test_known_effective_ranks(dim: int) -> None:
    axes = torch.cat([torch.eye(dim), -torch.eye(dim)])
    assert effective_rank(axes) == pytest.approx(dim)
    line = torch.outer(torch.tensor([1.0, -1.0, 2.0, -3.0]), torch.ones(dim))
    assert effective_rank(line) == pytest.approx(1)
    assert effective_rank(torch.ones(4, dim)) == 0
    assert effective_rank(torch.full((4, dim), math.nan)) == 0


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, None),
        ({"fixed_negative_similarity": 0.991}, f"{ONE} 0.991"),
        ({"negative_similarity": 0.991}, None),  # of a batch, whose statistics tell its pictures apart or not
        ({"effective_rank": 1.2}, "the vectors lie on a line: effective rank 1.20 on a fixed set of pictures"),
        ({"effective_rank": 1.2, "step": 199}, None),  # of the untrained network, perhaps
        ({"told_apart": 0.004}, "nothing is told apart: NT-Xent of a fixed set of pictures is 0.4% below log K"),
        ({"told_apart": -0.02}, "nothing is told apart: NT-Xent of a fixed set of pictures is -2.0% below log K"),
        ({"starts_at": math.nan, "loss": -0.5}, None),
        ({"starts_at": math.nan, "loss": -0.5, "told_apart": 0.0}, "nothing is told apart: "),  # without negatives too
        ({"epoch": 0, "fixed_negative_similarity": 1.0}, None),
        ({"epoch": 0, "step": 10 * APART, "fixed_negative_similarity": 1.0}, f"{ONE} 1.000"),
    ],
)
def test_the_alarm_says_what_it_saw(changes: dict[str, float], told: str | None) -> None:
    found = alarm(replace(HEALTHY, **changes))
    assert found == told or (found is not None and told is not None and found.startswith(told))


def test_the_stage_tells_each_kind_of_alarm_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = stages.pretrain.Log("mine", 300, tmp_path)
    for step, rank in ((250, 1.2), (251, 1.1), (252, 12.0)):
        log.told(replace(HEALTHY, step=step, effective_rank=rank))
    log.told(replace(HEALTHY, step=253, fixed_negative_similarity=0.995))
    log.close()
    told = [line for line in capsys.readouterr().err.replace("\r", "\n").splitlines() if line.startswith("step ")]
    assert told == [
        "step 250: the vectors lie on a line: effective rank 1.20 on a fixed set of pictures",
        f"step 253: {ONE} 0.995",
    ]
    assert len((tmp_path / "pretrain-0.jsonl").read_text().splitlines()) == 4


def test_a_look_tells_what_a_dense_matrix_tells() -> None:
    z = torch.randn(12, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    unit = z / z.norm(dim=1, keepdim=True)
    cosines = unit @ unit.T
    own = torch.arange(12) ^ 1
    other = ~(torch.eye(12, dtype=torch.bool) | torch.eye(12, dtype=torch.bool)[own])
    logits = (cosines / TEMPERATURE).masked_fill(torch.eye(12, dtype=torch.bool), -math.inf)
    loss = torch.nn.functional.cross_entropy(logits, own)
    found = look(z)
    assert found["fixed_positive_similarity"] == pytest.approx(float(cosines[torch.arange(12), own].mean()))
    assert found["fixed_negative_similarity"] == pytest.approx(float(cosines[other].mean()))
    assert found["told_apart"] == pytest.approx(1 - float(loss) / math.log(11))
    assert look(torch.ones(6, 4))["told_apart"] == pytest.approx(0, abs=1e-6)
    assert look(torch.full((6, 4), math.nan))["told_apart"] == 0


NORMED: dict[str, Any] = {"kind": "small_residual", "widths": [8, 16], "strides": [1, 2], "groups": None}
MOCO: dict[str, Any] = {
    "target": {"kind": "momentum", "m": 0.9, "schedule": "cosine"},
    "sampler": {"kind": "queue", "length": 40, "in_batch": False},
    "projection": {**SPACE["projection"], "norm": "batch"},
}


def dropping(*given: Any) -> Any:
    """The network of ``start_network`` with dropout before its head: what it draws must not depend on a look."""
    network = start_network(*given)
    network.projection = torch.nn.Sequential(torch.nn.Dropout(0.5), network.projection)
    return network


@pytest.mark.parametrize("kind", ["plain", "batch norm, dropout, momentum copy, queue"])
def test_looking_changes_no_bit_of_the_training(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = sharded(tmp_path / "shards")
    declared, spec = space(), training()
    if kind != "plain":
        declared, spec = space(**MOCO), training(encoder=NORMED, norm_group=4)
        monkeypatch.setattr(loop, "start_network", dropping)
    torch.manual_seed(5)
    rare = trained(shards, declared, spec)
    assert len({row.effective_rank for row in rare.curve}) == 1  # eight steps of a hundred
    monkeypatch.setattr(loop, "APART", 4)
    torch.manual_seed(6)
    looking = trained(shards, declared, spec)
    assert all(row.effective_rank > 1 for row in looking.curve)
    assert looking.curve[0].told_apart == looking.curve[3].told_apart != looking.curve[4].told_apart
    monkeypatch.setattr(loop, "looked_at", lambda *_: {"effective_rank": 0.0})
    torch.manual_seed(7)
    blind = trained(shards, declared, spec)
    losses = [row.loss for row in blind.curve]
    assert losses == [row.loss for row in looking.curve] == [row.loss for row in rare.curve]
    for name, value in blind.network.state_dict().items():
        assert np.array_equal(value.numpy(), looking.network.state_dict()[name].numpy()), name
        assert np.array_equal(value.numpy(), rare.network.state_dict()[name].numpy()), name


def test_the_fixed_pictures_are_the_same_at_every_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.Tensor] = []

    def kept(z: torch.Tensor) -> dict[str, float]:
        seen.append(z)
        return look(z)

    monkeypatch.setattr(loop, "APART", 1)
    monkeypatch.setattr(loop, "look", kept)
    still = {"kind": "sgd", "learning_rate": 1e-30, "momentum": 0.0, "weight_decay": 0.0}
    curve = trained(sharded(tmp_path / "shards"), space(), training(optimizer=still)).curve
    assert VIEWS_EPOCH < 0  # no epoch of the training has these views
    assert len(seen) == len(curve) == 8
    assert all(torch.equal(seen[0], other) for other in seen)
    assert len({row.positive_similarity for row in curve}) > 1  # the batch's own differ from step to step
