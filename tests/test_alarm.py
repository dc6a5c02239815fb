"""The collapse alarm: what it tells, and that looking changes nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small import sharded, space, trained, training

import pipeline.training as loop
import stages.pretrain
from pipeline.alarm import alarm, effective_rank
from pipeline.audit.spectrum import spectrum
from pipeline.state import Row

HEALTHY = Row(200, 1, 2.0, 4.0, 1e-3, 0.2, 0.9, 0.1, 12.0)


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
        (
            {"negative_similarity": 0.991},
            "all vectors are one: views of different pictures have a mean cosine of 0.991",
        ),
        ({"effective_rank": 1.2}, "the vectors lie on a line: effective rank 1.20 on a fixed set of pictures"),
        ({"effective_rank": 1.2, "step": 199}, None),  # of the untrained network, perhaps
        ({"loss": 3.97}, "nothing is told apart: the loss is 3.970, and 4.000 where all are alike"),
        ({"loss": 3.95}, None),
        ({"starts_at": math.nan, "loss": -0.5}, None),
        ({"epoch": 0, "negative_similarity": 1.0}, None),
    ],
)
def test_the_alarm_says_what_it_saw(changes: dict[str, float], told: str | None) -> None:
    assert alarm(replace(HEALTHY, **changes)) == told


def test_the_stage_tells_each_kind_of_alarm_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = stages.pretrain.Log("mine", 300, tmp_path)
    for step, rank in ((250, 1.2), (251, 1.1), (252, 12.0)):
        log.told(replace(HEALTHY, step=step, effective_rank=rank))
    log.told(replace(HEALTHY, step=253, negative_similarity=0.995))
    log.close()
    told = [line for line in capsys.readouterr().err.replace("\r", "\n").splitlines() if line.startswith("step ")]
    assert told == [
        "step 250: the vectors lie on a line: effective rank 1.20 on a fixed set of pictures",
        "step 253: all vectors are one: views of different pictures have a mean cosine of 0.995",
    ]
    assert len((tmp_path / "pretrain-0.jsonl").read_text().splitlines()) == 4


def test_looking_changes_no_bit_of_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = sharded(tmp_path / "shards")
    rare = trained(shards, space(), training())
    assert len({row.effective_rank for row in rare.curve}) == 1  # eight steps of a hundred
    monkeypatch.setattr(loop, "APART", 4)
    looking = trained(shards, space(), training())
    assert all(row.effective_rank > 1 for row in looking.curve)
    assert looking.curve[0].effective_rank == looking.curve[3].effective_rank != looking.curve[4].effective_rank
    monkeypatch.setattr(loop, "looked_at", lambda *_: {"effective_rank": 0.0})
    blind = trained(shards, space(), training())
    assert [row.loss for row in blind.curve] == [row.loss for row in looking.curve]
    for name, value in blind.network.state_dict().items():
        assert np.array_equal(value.numpy(), looking.network.state_dict()[name].numpy())
